"""Where the time of many jobs went between moments that follow each other: each job is read once for all.

    edges      0           10            20
    job a          training 8  |  stalled 2        parts: training 8 in "0", stalled 2 in "1"

The whole of each job is the sum of its parts in whole nanoseconds, so parts add up to the whole. Jobs that
were over before the first moment, or began after the last, are not looked at. What was read is kept: time
alone changes nothing of jobs that are over, and of those that train only the part that goes on (`cuts.py`).
As one part after the other begins, only those are read of a job that are new, and the sums are only changed
by jobs that have changed (`running_sums.py`).
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from ett_core.accounting import AttemptAccount, JobAccount
from ett_core.accounting.account import in_nanoseconds
from ett_exporter.breath import breathe
from ett_exporter.cuts import Table, signs_of
from ett_exporter.recent import AtHand, Recent
from ett_exporter.running_sums import NOTHING, Kept, Nanoseconds, RunningSums, Spread
from ett_exporter.service import Service
from ett_exporter.views import JobView

PUT_AT_ONCE = 32
"""Jobs of which little is new, between pauses."""
MOST_KEPT = 30_000
"""Jobs that are over, and cuts of others, at some 1 kB each."""
RUNNING = 2
"""Questions that were asked last, whose sums go on: some 1.5 kB a job each."""


class _Read(msgspec.Struct, frozen=True):
    """What was read of a job while these were its attempts."""

    attempts: Sequence[AttemptAccount]
    amounts: Sequence[Nanoseconds]


class FleetSpans:
    """Reads the jobs of one service; any thread may call."""

    def __init__(self, service: Service, most: int = MOST_KEPT) -> None:
        self._service = service
        self._read: AtHand[tuple[str, tuple[float, ...]], _Read] = AtHand(most)
        self._kept: AtHand[tuple[str, int, float], Kept] = AtHand(most)
        self._running: Recent[tuple[tuple[float, ...], bool, Hashable], RunningSums] = Recent(RUNNING)
        self._lock = threading.Lock()

    @contextmanager
    def sums(
        self,
        views: Sequence[JobView],
        edges: Sequence[float],
        now: float,
        which: Hashable = None,
        *,
        by_state: bool = True,
    ) -> Iterator[RunningSums]:
        """The sums of some jobs in each part between `edges` (Unix seconds), and in all of them.

        `which` says what jobs they are, where the same ones may be asked for again between these edges.
        Without `by_state` jobs are of one kind whatever state they are in, and a new state changes no sums.
        """
        running = self._running_sums(tuple(edges), which, by_state=by_state)
        begin, end = edges[0], edges[-1]
        views = [view for view in views if view.account.end >= begin and view.account.start < end]
        with running.lock:
            for number, view in enumerate(running.new_of(views)):
                running.put(view, self._of_job(view, running.edges, now))
                if number % PUT_AT_ONCE == 0:
                    breathe()
            running.keep_only(views)
            yield running

    def _running_sums(self, edges: tuple[float, ...], which: Hashable, *, by_state: bool) -> RunningSums:
        if which is None:
            return RunningSums(edges, by_state=by_state)
        key = (edges, by_state, which)
        with self._lock:
            known = self._running.get(key)
            if known is None:
                known = RunningSums(edges, by_state=by_state)
                self._running.put(key, known)
            return known

    def _of_job(self, view: JobView, edges: tuple[float, ...], now: float) -> Spread:
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
        key = (account.job_id, edges)
        known = self._read.get(key)
        if known is None or known.attempts is not account.attempts:
            spans = self._service.spans(account.job_id, now, edges)
            known = _Read(account.attempts, [in_nanoseconds(part) for part in spans])
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


def edges_of(begin: float, end: float, parts: int) -> list[float]:
    """The edges of so many equal parts between two moments.

    >>> edges_of(0.0, 30.0, 3)
    [0.0, 10.0, 20.0, 30.0]
    """
    return [begin + (end - begin) * place / parts for place in range(parts)] + [end]
