"""Where the time of many jobs went between moments that follow each other: each job is read once for all.

    edges      0           10            20
    job a          training 8  |  stalled 2        parts: training 8 in "0", stalled 2 in "1"

The whole of each job is the sum of its parts in whole nanoseconds, so parts add up to the whole. What
was read is kept: time alone changes nothing of jobs that are over, and of those that train only the part
that goes on (`cuts.py`). As one part after the other begins, only those are read of a job that are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from ett_core.accounting import AttemptAccount, JobAccount
from ett_core.accounting.account import in_seconds, nanoseconds, seconds
from ett_exporter.breath import breathe
from ett_exporter.cuts import Table, signs_of
from ett_exporter.fleet_sums import Sums, part_of
from ett_exporter.recent import AtHand
from ett_exporter.service import Service
from ett_exporter.views import JobView

WHOLE = "whole"
"""The name of all parts together among the windows of the sums; that of a part is its number."""
KEPT_AT_ONCE = 16
"""Jobs of which nothing is read, between pauses."""
MOST_KEPT = 30_000
"""Jobs that are over, and cuts of others, at some 1 kB each."""


class _Read(msgspec.Struct, frozen=True):
    """What was read of a job while these were its attempts."""

    attempts: Sequence[AttemptAccount]
    amounts: Sequence[Mapping[str, float]]


class _Kept(msgspec.Struct, frozen=True):
    """What stands of a live job."""

    edges: Sequence[float]
    told: int
    signs: int
    serial: int
    as_of: float
    parts: Table
    """Up to the edge before which all was told, and behind them all that the job had before that edge."""

    def parts_from(self, edge: float) -> list[Mapping[str, float]]:
        """The parts that stand from an edge on."""
        return self.parts.in_seconds(self.edges.index(edge))[:-1]

    def goes_on(self, account: JobAccount) -> Mapping[str, float] | None:
        """What the job has after those parts, as of a later account; None where that cannot be."""
        (before,) = self.parts.in_seconds(self.told)
        if before.keys() - account.components.keys():
            return None
        left = {
            name: nanoseconds(amount) - nanoseconds(before.get(name, 0.0))
            for name, amount in account.components.items()
        }
        if min(left.values(), default=0) < 0:
            return None
        return {name: seconds(amount) for name, amount in left.items() if amount}


class FleetSpans:
    """Reads the jobs of one service; any thread may call."""

    def __init__(self, service: Service, most: int = MOST_KEPT) -> None:
        self._service = service
        self._read: AtHand[tuple[str, tuple[float, ...]], _Read] = AtHand(most)
        self._kept: AtHand[tuple[str, int, float], _Kept] = AtHand(most)

    def sums(self, views: Iterable[JobView], edges: Sequence[float], now: float) -> Sums:
        """The sums of some jobs in each part between `edges` (Unix seconds), and in all of them."""
        sums = Sums()
        for number, view in enumerate(views):
            amounts = self._of_job(view, tuple(edges), now)
            windows = {str(place): part for place, part in enumerate(amounts) if part}
            sums.change(None, part_of(view, windows | {WHOLE: added_up(amounts)}))
            if number % KEPT_AT_ONCE == 0:
                breathe()
        return sums

    def _of_job(self, view: JobView, edges: tuple[float, ...], now: float) -> Sequence[Mapping[str, float]]:
        """The seconds of a job in each part; it is read only where an edge cuts it."""
        account = view.account
        if account.end <= edges[0] or account.start >= edges[-1] or edges[0] >= edges[-1]:
            return ()
        parts = list(pairwise(edges))
        if any(begin <= account.start and account.end <= end for begin, end in parts):
            return [
                account.components if begin <= account.start and account.end <= end else {}
                for begin, end in parts
            ]
        if not account.finished:
            return self._of_live_job(account, edges, now)
        key = (account.job_id, edges)
        known = self._read.get(key)
        if known is not None and known.attempts is account.attempts:
            return known.amounts
        amounts = self._service.spans(account.job_id, now, edges)
        breathe()
        self._read.put(key, _Read(account.attempts, amounts))
        return amounts

    def _of_live_job(
        self, account: JobAccount, edges: tuple[float, ...], now: float
    ) -> Sequence[Mapping[str, float]]:
        """As `_of_job`: what stands, the part that goes on, and only what is new from the job itself."""
        key = (account.job_id, len(edges), edges[-1] - edges[0])
        kept = self._kept.get(key)
        if kept is None or not self._is_of(kept, account, edges):
            return self._cut(key, [], edges, now) or ()
        parts = kept.parts_from(edges[0])
        if len(parts) + 1 == len(edges):
            return parts
        if account.end <= edges[len(parts) + 1] and (latest := kept.goes_on(account)) is not None:
            return [*parts, latest, *({} for _ in range(len(edges) - len(parts) - 2))]
        amounts = self._cut(key, parts, edges, now, kept)
        return self._cut(key, [], edges, now) or () if amounts is None else amounts

    def _is_of(self, kept: _Kept, account: JobAccount, edges: tuple[float, ...]) -> bool:
        """Whether what is kept of a job stands, and is about the same parts, as far as they had begun."""
        if edges[0] not in kept.edges[: kept.told + 1]:
            return False
        same = kept.edges[kept.edges.index(edges[0]) : kept.told + 1]
        return (
            tuple(same) == edges[: len(same)]
            and account.as_of >= kept.as_of
            and signs_of(account) == kept.signs
            and self._service.stands(account.job_id, kept.serial)
        )

    def _cut(
        self,
        key: tuple[str, int, float],
        parts: Sequence[Mapping[str, float]],
        edges: tuple[float, ...],
        now: float,
        kept: _Kept | None = None,
    ) -> list[Mapping[str, float]] | None:
        """The job in each part, the first of which are known; None where these stand no more by then."""
        cut = self._service.cut(key[0], now, edges[len(parts) :])
        breathe()
        if cut is None:
            return list(self._service.spans(key[0], now, edges))
        signs = signs_of(cut.account)
        if kept is not None and (kept.signs != signs or not self._service.stands(key[0], kept.serial)):
            return None
        amounts = [*parts, *cut.parts]
        if cut.serial:
            told = len(parts) + cut.told
            past = [{name: nanoseconds(amount) for name, amount in part.items()} for part in amounts[:told]]
            table = Table([*past, cut.before_told])
            self._kept.put(key, _Kept(edges, told, signs, cut.serial, cut.account.as_of, table))
        return amounts


def added_up(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The seconds of some parts together.

    >>> added_up([{"training": 0.1}, {"training": 0.2, "stalled": 1.0}])
    {'training': 0.3, 'stalled': 1.0}
    """
    totals: dict[str, int] = {}
    for part in parts:
        for component, amount in part.items():
            totals[component] = totals.get(component, 0) + nanoseconds(amount)
    return in_seconds(totals)


def edges_of(begin: float, end: float, parts: int) -> list[float]:
    """The edges of so many equal parts between two moments.

    >>> edges_of(0.0, 30.0, 3)
    [0.0, 10.0, 20.0, 30.0]
    """
    return [begin + (end - begin) * place / parts for place in range(parts)] + [end]
