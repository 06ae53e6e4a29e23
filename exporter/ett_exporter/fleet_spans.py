"""Where the time of many jobs went between moments that follow each other: each job is read once for all.

    edges      0           10            20
    job a          training 8  |  stalled 2        parts: training 8 in "0", stalled 2 in "1"

The whole of each job is the sum of its parts in whole nanoseconds, so parts add up to the whole. What
was read is kept: time alone changes nothing of jobs that are over, and of those that train only the part
that goes on (`cuts.py`). As one part after the other begins, only those are read of a job that are new,
and the sums are only changed by jobs that have changed (`running_sums.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

import msgspec

from ett_core.accounting import AttemptAccount, JobAccount
from ett_core.accounting.account import nanoseconds
from ett_exporter.breath import breathe
from ett_exporter.cuts import Table, signs_of
from ett_exporter.fleet_sums import Sums
from ett_exporter.recent import AtHand, Recent
from ett_exporter.running_sums import NOTHING, Kept, RunningSums, Spread
from ett_exporter.service import Service
from ett_exporter.views import JobView

KEPT_AT_ONCE = 16
"""Jobs of which nothing is read, between pauses."""
MOST_KEPT = 30_000
"""Jobs that are over, and cuts of others, at some 1 kB each."""
RUNNING = 2
"""Questions that were asked last, whose sums go on: some 1.5 kB a job each."""


class _Read(msgspec.Struct, frozen=True):
    """What was read of a job while these were its attempts."""

    attempts: Sequence[AttemptAccount]
    amounts: Sequence[Mapping[str, float]]


class FleetSpans:
    """Reads the jobs of one service; any thread may call."""

    def __init__(self, service: Service, most: int = MOST_KEPT) -> None:
        self._service = service
        self._read: AtHand[tuple[str, tuple[float, ...]], _Read] = AtHand(most)
        self._kept: AtHand[tuple[str, int, float], Kept] = AtHand(most)
        self._running: Recent[tuple[tuple[float, ...], Hashable], RunningSums] = Recent(RUNNING)
        self._lock = threading.Lock()

    @contextmanager
    def sums(
        self, views: Sequence[JobView], edges: Sequence[float], now: float, which: Hashable = None
    ) -> Iterator[Sums]:
        """The sums of some jobs in each part between `edges` (Unix seconds), and in all of them.

        `which` says what jobs they are, where the same ones may be asked for again between these edges.
        """
        running = RunningSums(tuple(edges)) if which is None else self._running_sums(tuple(edges), which)
        with running.lock:
            for number, view in enumerate(views):
                if not running.has(view):
                    running.put(view, self._of_job(view, running.edges, now))
                if number % KEPT_AT_ONCE == 0:
                    breathe()
            running.keep_only(views)
            yield running.sums

    def _running_sums(self, edges: tuple[float, ...], which: Hashable) -> RunningSums:
        with self._lock:
            known = self._running.get((edges, which))
            if known is None:
                known = RunningSums(edges)
                self._running.put((edges, which), known)
            return known

    def _of_job(self, view: JobView, edges: tuple[float, ...], now: float) -> Spread:
        """The seconds of a job in each part; it is read only where an edge cuts it."""
        account = view.account
        if account.end <= edges[0] or account.start >= edges[-1] or edges[0] >= edges[-1]:
            return NOTHING
        parts = list(pairwise(edges))
        if any(begin <= account.start and account.end <= end for begin, end in parts):
            return Spread(
                None,
                0,
                [
                    account.components if begin <= account.start and account.end <= end else {}
                    for begin, end in parts
                ],
            )
        if not account.finished:
            return self._of_live_job(account, edges, now)
        key = (account.job_id, edges)
        known = self._read.get(key)
        if known is None or known.attempts is not account.attempts:
            known = _Read(account.attempts, self._service.spans(account.job_id, now, edges))
            breathe()
            self._read.put(key, known)
        return Spread(None, 0, known.amounts)

    def _of_live_job(self, account: JobAccount, edges: tuple[float, ...], now: float) -> Spread:
        """As `_of_job`: what stands, the part that goes on, and only what is new from the job itself."""
        key = (account.job_id, len(edges), edges[-1] - edges[0])
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

    def _cut(
        self, key: tuple[str, int, float], kept: Kept | None, edges: tuple[float, ...], now: float
    ) -> Spread | None:
        """The job in each part, the first of which may be kept; None where these stand no more by then."""
        parts = [] if kept is None else kept.parts_from(edges[0])
        cut = self._service.cut(key[0], now, edges[len(parts) :])
        breathe()
        if cut is None:
            return Spread(None, 0, list(self._service.spans(key[0], now, edges)))
        signs = signs_of(cut.account)
        if kept is not None and (kept.signs != signs or not self._service.stands(key[0], kept.serial)):
            return None
        amounts = [*parts, *cut.parts]
        if not cut.serial:
            return Spread(None, 0, amounts)
        told = len(parts) + cut.told
        past = [{name: nanoseconds(amount) for name, amount in part.items()} for part in amounts[:told]]
        table = Table([*past, cut.before_told])
        new = Kept(edges, told, signs, cut.serial, cut.account.as_of, table)
        self._kept.put(key, new)
        return Spread(new, told, amounts[told:])


def edges_of(begin: float, end: float, parts: int) -> list[float]:
    """The edges of so many equal parts between two moments.

    >>> edges_of(0.0, 30.0, 3)
    [0.0, 10.0, 20.0, 30.0]
    """
    return [begin + (end - begin) * place / parts for place in range(parts)] + [end]
