"""The time of one job between moments that follow each other, read from the job only where something is new.

    edges      0           10            20
    job a          training 8  |  stalled 2        parts: training 8, stalled 2

Time alone changes nothing of jobs that are over, and of those that train only the part that goes on
(`cuts.py`). As one part after the other begins, only those are read of a job that are new.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from ett_core.accounting import AttemptAccount, JobAccount
from ett_core.accounting.account import in_nanoseconds
from ett_exporter.breath import breathe
from ett_exporter.cuts import Table, signs_of
from ett_exporter.recent import AtHand
from ett_exporter.running_sums import NOTHING, Kept, Nanoseconds, Spread
from ett_exporter.service import Service
from ett_exporter.views import JobView

Key: TypeAlias = tuple[str, int, float, float]

MOST_KEPT = 30_000
"""Jobs that are over, and cuts of others, at some 1 kB each."""


class _Read(msgspec.Struct, frozen=True):
    """What was read of a job that is over while these were its attempts."""

    attempts: Sequence[AttemptAccount]
    edges: tuple[float, ...]
    amounts: Sequence[Nanoseconds]

    def between(self, edges: tuple[float, ...], account: JobAccount) -> Sequence[Nanoseconds] | None:
        """The same between edges that have moved on by whole parts; None where more has to be read."""
        if account.attempts is not self.attempts or edges[0] not in self.edges:
            return None
        gone = self.edges.index(edges[0])
        left = self.edges[gone:]
        if left != edges[: len(left)] or (gone and account.end > left[-1]):
            return None
        return [*self.amounts[gone:], *({} for _ in range(gone))]


class Spreads:
    """Reads the jobs of one service; any thread may call."""

    def __init__(self, service: Service, most: int = MOST_KEPT) -> None:
        self._service = service
        self._read: AtHand[Key, _Read] = AtHand(most)
        self._kept: AtHand[Key, Kept] = AtHand(most)

    def of_job(self, view: JobView, edges: tuple[float, ...], now: float) -> Spread:
        """The time of a job in each part; it is read only where an edge cuts it."""
        account = view.account
        if account.end <= edges[0] or account.start >= edges[-1] or edges[0] >= edges[-1]:
            return NOTHING
        place = bisect_right(edges, account.start) - 1
        if place >= 0 and account.end <= edges[place + 1]:
            parts: list[Nanoseconds] = [{} for _ in edges[1:]]
            parts[place] = in_nanoseconds(account.components)
            return Spread(None, 0, parts)
        if not account.finished:
            return self._of_live_job(account, edges, now)
        return Spread(None, 0, self._of_finished_job(account, edges, now))

    def _of_finished_job(
        self, account: JobAccount, edges: tuple[float, ...], now: float
    ) -> Sequence[Nanoseconds]:
        key = _key(account.job_id, edges)
        known = self._read.get(key)
        amounts = None if known is None else known.between(edges, account)
        if amounts is None:
            spans = self._service.spans(account.job_id, now, edges)
            amounts = [in_nanoseconds(part) for part in spans]
            breathe()
        self._read.put(key, _Read(account.attempts, edges, amounts))
        return amounts

    def _of_live_job(self, account: JobAccount, edges: tuple[float, ...], now: float) -> Spread:
        """As `of_job`: what stands, the part that goes on, and only what is new from the job itself."""
        key = _key(account.job_id, edges)
        kept = self._kept.get(key)
        if kept is None or not self._is_of(kept, account, edges):
            return self._cut(key, None, edges, now) or NOTHING
        first = kept.parts_after(edges[0])
        if first + 1 == len(edges):
            return Spread(kept, first, ())
        if account.end <= edges[first + 1] and (latest := kept.goes_on(account)) is not None:
            return Spread(kept, first, [latest])
        return self._cut(key, kept, edges, now) or self._cut(key, None, edges, now) or NOTHING

    def _is_of(self, kept: Kept, account: JobAccount, edges: tuple[float, ...]) -> bool:
        """Whether what is kept of a job stands, and is about the same parts, as far as they had begun."""
        return (
            kept.begins_like(edges)
            and account.as_of >= kept.as_of
            and signs_of(account) == kept.signs
            and self._service.stands(account.job_id, kept.serial)
        )

    def _cut(self, key: Key, kept: Kept | None, edges: tuple[float, ...], now: float) -> Spread | None:
        """The job in each part, the first of which may be kept; None where these stand no more by then."""
        parts = [] if kept is None else kept.parts_from(edges[0])
        cut = self._service.cut(key[0], now, edges[len(parts) :])
        breathe()
        if cut is None:
            return Spread(None, 0, [in_nanoseconds(p) for p in self._service.spans(key[0], now, edges)])
        signs = signs_of(cut.account)
        if kept is not None and (kept.signs != signs or not self._service.stands(key[0], kept.serial)):
            return None
        amounts = [*parts, *map(in_nanoseconds, cut.parts)]
        if not cut.serial:
            return Spread(None, 0, amounts)
        told = len(parts) + cut.told
        table = Table([*amounts[:told], cut.before_told])
        new = Kept(edges, told, signs, cut.serial, cut.account.as_of, table)
        self._kept.put(key, new)
        return Spread(new, told, amounts[told:])


def _key(job_id: str, edges: tuple[float, ...]) -> Key:
    """Under which a job is kept: the same as parts of one size go on.

    >>> _key("a", (0.0, 10.0, 20.0)) == _key("a", (10.0, 20.0, 30.0)) != _key("a", (12.0, 22.0, 32.0))
    True
    """
    span_s = edges[-1] - edges[0]
    return job_id, len(edges), span_s, edges[-1] % (span_s / (len(edges) - 1))
