"""The jobs in memory: their latest views, the oldest renewed first, and what they add up to.

Any thread may call. Views are made outside the lock, so that several threads renew different jobs
and nobody waits for a job that is busy. What renewing, reading the sums and asking what is new
cost depends on the jobs that changed, not on how many there are.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ett_exporter.breath import breathe
from ett_exporter.ledger import Ledger
from ett_exporter.live import LiveJob
from ett_exporter.views import JobView

SET_BACK_S = 1.0
"""Rounds of several threads may come in another order than their moments, by less than this."""
ANEW_AT_ONCE_S, ANEW_SHARE = 0.05, 0.1
"""Folding a job again from its history takes this share of the time at most where it takes longer than that:
of a job whose ranks send a backlog one after the other, the history would be read again and again. Who
waits for the first view of a job waits for no share."""
OF_THE_FUTURE_S = 60.0
"""A view that was made before the clock was set back counts as so old."""


class _Turn(NamedTuple):
    """When a job is to be renewed: the one with the oldest view first, then in the order of numbers."""

    as_of: float
    number: int
    job: LiveJob
    is_old: bool

    @property
    def is_first(self) -> bool:
        return self.as_of == -math.inf


class _Seen(NamedTuple):
    """A view and the number under which it was entered."""

    number: int
    view: JobView


class Roster:
    """The latest view of every job that is in memory."""

    def __init__(
        self, on_state: Callable[[str], None], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """`on_state` is told each job whose state another view shows."""
        self._on_state = on_state
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._was_met = threading.Condition(self._lock)
        self._meeting = 0
        """Threads that make the first view of a job."""
        self._jobs: dict[str, LiveJob] = {}
        self._unmet: set[LiveJob] = set()
        """Jobs of which nobody has made or asked for a view here."""
        self._turns: list[_Turn] = []
        self._silent: list[_Turn] = []
        """Jobs that had nothing to show when they were asked last."""
        self._passed_over: list[_Turn] = []
        """Jobs that are to be folded again, while others of them took their share of the time."""
        self._anew_from_s = -math.inf
        """When the next one may be folded again, by the monotonic clock."""
        self._latest: dict[str, _Seen] = {}
        """In the order of numbers."""
        self._number = 0
        self._now = -math.inf
        """The moment of the last round, to see that the clock was set back: views are of the future then."""
        self._ledger = Ledger()

    def add(self, job: LiveJob, *, is_old: bool) -> None:
        """A job is in memory from now on; one that `is_old` counts only what comes after its first view."""
        with self._lock:
            self._jobs[job.job_id] = job
            self._unmet.add(job)
            self._wait(job, is_old=is_old, view=None)

    def remove(self, job_id: str) -> None:
        """A job is in memory no more."""
        with self._lock:
            if (job := self._jobs.pop(job_id, None)) is not None:
                self._unmet.discard(job)
            self._latest.pop(job_id, None)
            self._ledger.drop(job_id)

    def __len__(self) -> int:
        """Jobs in memory."""
        return len(self._jobs)

    @property
    def unmet(self) -> int:
        """Jobs that are in no sums yet, as nobody has come to look at them since they are in memory."""
        return len(self._unmet)

    def renew(
        self, now: float, for_s: float, older_than_s: float = 0.0, *, meet_for_s: float = math.inf
    ) -> None:
        """Renew the oldest views as of `now`, for at most `for_s` seconds; none younger than `older_than_s`.

        Jobs that have no view yet come first, and for them there are `meet_for_s` seconds.

        Raises:
            StoreError: a job has to be read from the store, and cannot be.
        """
        began_s = self._monotonic()
        until_s, met_until_s = began_s + for_s, began_s + meet_for_s
        round_ = self._begin_round(now)
        while True:
            oldest = now - older_than_s
            if (now_s := self._monotonic()) >= until_s:
                if now_s >= met_until_s:
                    return
                oldest = -math.inf
            turn = self._next(round_, oldest)
            if turn is None:
                break
            is_awaited = turn.is_first and meet_for_s > 0.0
            if turn.job.is_stale and not is_awaited and now_s < self._anew_from_s:
                self._pass_over(turn)
            else:
                self._renew(turn, now)
                breathe()
        left_s = met_until_s - self._monotonic()
        with self._was_met:
            self._was_met.wait_for(lambda: not self._meeting, None if math.isinf(left_s) else left_s)

    def _renew(self, turn: _Turn, now: float) -> None:
        is_met, began_s = False, self._monotonic()
        try:
            turn.job.view_at_once(now)
            is_met = True
        finally:
            self._enter(turn, is_met=is_met)
            took_s = (ended_s := self._monotonic()) - began_s
            if took_s > ANEW_AT_ONCE_S:
                self._anew_from_s = ended_s + (took_s - ANEW_AT_ONCE_S) * (1.0 / ANEW_SHARE - 1.0)

    def _pass_over(self, turn: _Turn) -> None:
        """Leave a job as it is until the next round."""
        with self._lock:
            self._passed_over.append(turn)
            self._meeting -= turn.is_first
            self._was_met.notify_all()

    def since(self, number: int) -> tuple[int, list[JobView]]:
        """The views that came after a number, in their order, and the number to ask with the next time."""
        with self._lock:
            found = []
            for seen in reversed(self._latest.values()):
                if seen.number <= number:
                    break
                found.append(seen.view)
            return self._number, found[::-1]

    @contextmanager
    def sums(self) -> Iterator[Ledger]:
        """What the latest views add up to; nothing changes meanwhile."""
        with self._lock:
            yield self._ledger

    def oldest_as_of(self) -> float:
        """As of when the oldest view is; infinite where there is none."""
        with self._lock:
            turns = [*self._turns[:1], *self._passed_over]
            return min((turn.as_of for turn in turns), default=math.inf)

    def _begin_round(self, now: float) -> int:
        with self._lock:
            for turn in (*self._silent, *self._passed_over):
                heappush(self._turns, turn)
            self._silent, self._passed_over = [], []
            if now < self._now - SET_BACK_S:
                old = now - OF_THE_FUTURE_S
                self._turns = [turn._replace(as_of=old) if turn.as_of > now else turn for turn in self._turns]
                heapify(self._turns)
            self._now = now
            self._number += 1
            return self._number

    def _next(self, round_: int, oldest: float) -> _Turn | None:
        """The job whose turn it is; none that had one in this round or whose view is newer than `oldest`."""
        with self._lock:
            while self._turns and self._turns[0].number < round_ and self._turns[0].as_of <= oldest:
                turn = heappop(self._turns)
                if self._jobs.get(turn.job.job_id) is turn.job:
                    self._meeting += turn.is_first
                    return turn
            return None

    def _enter(self, turn: _Turn, *, is_met: bool) -> None:
        """Take in the view of a job as it is now; the job waits for its next turn."""
        job, view = turn.job, turn.job.known_view
        with self._lock:
            if is_met:
                self._unmet.discard(job)
            self._meeting -= turn.is_first
            self._was_met.notify_all()
            if self._jobs.get(job.job_id) is not job:
                return
            self._wait(job, is_old=turn.is_old, view=view)
            before = self._latest.get(job.job_id)
            if view is None or (before is not None and before.view is view):
                return
            self._latest.pop(job.job_id, None)
            self._latest[job.job_id] = _Seen(self._number, view)
            self._ledger.put(view, is_old=turn.is_old)
        if before is not None and before.view.account.state != view.account.state:
            self._on_state(job.job_id)

    def _wait(self, job: LiveJob, *, is_old: bool, view: JobView | None) -> None:
        self._number += 1
        as_of = -math.inf if view is None else min(view.account.as_of, self._now)
        turn = _Turn(as_of, self._number, job, is_old)
        if view is None:
            self._silent.append(turn)
        else:
            heappush(self._turns, turn)
