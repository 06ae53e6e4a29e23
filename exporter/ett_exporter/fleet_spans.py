"""Where the time of many jobs went between moments that follow each other: each job is read once for all.

    edges      0           10            20
    job a          training 8  |  stalled 2        parts: training 8 in "0", stalled 2 in "1"

The whole of each job is the sum of its parts in whole nanoseconds, so parts add up to the whole. Jobs that
were over before the first moment, or began after the last, are not looked at. What was read is kept
(`spreads.py`), and the sums are only changed by jobs that have changed (`running_sums.py`). Those of the
questions that come again and again go on while nobody asks (`followed.py`).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager

from ett_exporter.breath import breathe
from ett_exporter.followed import PUT_AT_ONCE, Followed, Shape, SumsOfAll
from ett_exporter.recent import Recent
from ett_exporter.running_sums import RunningSums
from ett_exporter.service import Service
from ett_exporter.spreads import MOST_KEPT, Spreads
from ett_exporter.views import JobView

RUNNING = 2
"""Questions about some of the jobs that were asked last, whose sums go on: some 1.5 kB a job each."""
KEEP_UP_FOR_S = 0.0125
KEEP_UP_EVERY_S = 0.05
"""A fifth of one processor, at most, goes into sums that go on; next to nothing where no view is new."""
MEET_FOR_S = 0.05
"""And half of one while some jobs are in none of them yet, as after a start."""
SLICE_S = 0.05
"""Who waits for jobs that are missing lets others at the sums so often."""


class FleetSpans:
    """The sums over the jobs of one service; any thread may call."""

    def __init__(
        self, service: Service, most: int = MOST_KEPT, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._service = service
        self._monotonic = monotonic
        self._spreads = Spreads(service, most)
        self._running: Recent[tuple[tuple[float, ...], bool, Hashable], RunningSums] = Recent(RUNNING)
        self._followed = Followed()
        self._lock = threading.Lock()

    @contextmanager
    def sums(  # noqa: PLR0913 - which jobs, which time, how long
        self,
        views: Sequence[JobView],
        edges: Sequence[float],
        now: float,
        which: Hashable = None,
        *,
        by_state: bool = True,
        for_s: float = math.inf,
        known: Collection[str] = (),
    ) -> Iterator[tuple[RunningSums, int]]:
        """The sums of some jobs in each part between `edges` (Unix seconds), and how many jobs they lack.

        `which` says what jobs they are, where the same ones may be asked for again between these edges. Jobs
        are read for `for_s` seconds, those first that were never read: who asks again finds more of them. Of
        those `known` by name is there what these sums had of them (`knows`).
        Without `by_state` jobs are of one kind whatever state they are in, and a new state changes no sums.
        """
        running = self._running_sums(tuple(edges), which, by_state=by_state)
        begin, end = edges[0], edges[-1]
        views = [view for view in views if view.account.end >= begin and view.account.start < end]
        go_on = self._before(self._monotonic() + for_s)
        with running.lock:
            running.keep_only({*known, *map(_name_of, views)})
            new = sorted(filter(running.is_new, views), key=lambda view: running.knows(view.account.job_id))
            for number, view in enumerate(new):
                if not go_on():
                    break
                running.put(view, self._spreads.of_job(view, running.edges, now))
                if number % PUT_AT_ONCE == 0:
                    breathe()
            yield running, sum(not running.knows(job_id) for job_id in (*known, *map(_name_of, views)))

    def knows(
        self, edges: tuple[float, ...], which: Hashable, *, by_state: bool = True
    ) -> Callable[[str], bool]:
        """Whether a job is in the sums of some jobs that were asked for before."""
        with self._lock:
            running = self._running.get((edges, by_state, which))
        return running.knows if running is not None else lambda _job_id: False

    def going_on(self, edges: tuple[float, ...], now: float, *, by_state: bool = False) -> SumsOfAll | None:
        """The sums of all jobs between edges, kept up from now on; None where jobs count that left memory."""
        with self._lock:
            return self._followed.asked(edges, now, by_state=by_state)

    def moving(self, shape: Shape, now: float) -> SumsOfAll:
        """The sums of all jobs in the parts of a shape as they are now, kept up from now on."""
        with self._lock:
            return self._followed.going_on(shape, now)

    @contextmanager
    def of_all(
        self, sums: SumsOfAll, now: float, for_s: float, wait_s: float
    ) -> Iterator[tuple[RunningSums, int]]:
        """Such sums, and how many jobs they lack that nobody has read yet.

        What is new goes in for `for_s` seconds; for jobs that are missing one waits up to `wait_s`.
        """
        began_s, roster = self._monotonic(), self._service.roster
        until_s = began_s + for_s
        while True:
            with sums.running.lock:
                sums.take(roster, self._spreads, now, self._before(until_s))
                missing = sums.missing()
                left_s = began_s + wait_s - self._monotonic()
                if not missing or left_s <= 0:
                    yield sums.running, missing
                    return
            breathe()
            until_s = self._monotonic() + min(SLICE_S, left_s)

    def keep_up(self) -> None:
        """Put into the sums that go on what is new, for a bounded time.

        Raises:
            StoreError: a job has to be read from the store, and cannot be.
        """
        now, began_s = self._service.clock(), self._monotonic()
        with self._lock:
            due = self._followed.due(now)
        for sums in due:
            go_on = self._before(began_s + (KEEP_UP_FOR_S if sums.is_ready else MEET_FOR_S))
            with sums.running.lock:
                if not sums.take(self._service.roster, self._spreads, now, go_on):
                    return

    def _before(self, moment_s: float) -> Callable[[], bool]:
        return lambda: self._monotonic() < moment_s

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


def _name_of(view: JobView) -> str:
    return view.account.job_id
