"""What is done with the jobs of an exporter beside answering.

They are folded after the start, saved as snapshots, written as rows once they are over; the segments of
closed ones are put together, and deleted when they are old.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ett_exporter.breath import breathe
from ett_exporter.clock_readings import DAY_S, is_worth_writing, read_on
from ett_exporter.closed import LONGEST_WINDOW_S, ClosedJob, is_settled
from ett_exporter.errors import StoreError
from ett_exporter.jobs import Jobs, alone
from ett_exporter.live import LiveJob, is_silent
from ett_exporter.places import Snapshot
from ett_exporter.settings import Settings
from ett_exporter.snapshots import code_format
from ett_exporter.store import Store

_log = logging.getLogger("ett_exporter.upkeep")

SAVED_AT_ONCE = 50
LOOK_AGAIN_AFTER = 0.1
"""A silent job is asked again whether it is over when it has been silent for longer by this share."""


class Upkeep:
    """The work, in pieces that one thread calls; each goes on as long as `go_on` says so.

    Every piece raises `StoreError` where the database fails: nothing is lost, call again.
    """

    def __init__(self, jobs: Jobs, store: Store, settings: Settings) -> None:
        self._jobs = jobs
        self._store = store
        self._settings = settings
        self.is_ready = False
        """Whether every job that was known at the start is folded."""
        self._closed_at = -math.inf
        """When jobs were closed last (Unix seconds)."""

    def build(self, go_on: Callable[[], bool] = lambda: True) -> None:
        """Fold all jobs that were not asked for yet."""
        for job in self._jobs.live():
            if not go_on():
                return
            with alone(job.job_id):
                job.build()
        self.is_ready = True

    def save_snapshots(self, unsaved_events: int, go_on: Callable[[], bool] = lambda: True) -> None:
        """Save the jobs with the most events that no snapshot holds, until no more than this are left."""
        waiting = sorted((job for job in self._jobs.live() if job.unsaved_events), key=_unsaved, reverse=True)
        left = sum(map(_unsaved, waiting))
        while left > unsaved_events and waiting and go_on():
            jobs, waiting = waiting[:SAVED_AT_ONCE], waiting[SAVED_AT_ONCE:]
            counts = list(map(_unsaved, jobs))
            left -= sum(counts)
            try:
                self._store.save_snapshots(list(_snapshots(jobs)), code_format())
            except StoreError:
                for job, count in zip(jobs, counts, strict=True):
                    job.not_saved(count)
                raise

    def close_jobs(self, now: float, go_on: Callable[[], bool] = lambda: True) -> None:
        """Write the rows of jobs that have ended, and let go of those behind every window.

        Of those that a window still holds, only what many jobs are asked for stays in memory. A window may
        hold again what it had left, where the clock was set back since the last call.
        """
        if now < self._closed_at:
            self._take_back(now)
        self._closed_at = now
        for job in self._jobs.live():
            if go_on() and is_silent(job.last_received_at, now, self._settings.ended_grace_s):
                with alone(job.job_id):
                    self._close(job, now)

    def _take_back(self, now: float) -> None:
        """Have the jobs in memory again that a window holds now, as the clock was set back."""
        for job in self._jobs.all():
            if isinstance(job, ClosedJob) and not is_settled(job.end, now):
                self._jobs.in_memory(job.job_id)

    def _close(self, job: LiveJob, now: float) -> None:
        through = job.last_received_at
        waits = 0 <= now - job.looked_at < LOOK_AGAIN_AFTER * (job.looked_at - through)
        if job.closed_through != through and (waits or not self._write_rows(job, through, now)):
            return
        if is_settled(job.closed_end, now):
            self._jobs.let_go(job, through)
        else:
            job.unload(now)

    def _write_rows(self, job: LiveJob, through: float, now: float) -> bool:
        """Write the rows of a job that is over; False where it is not, goes on, or waits for its order."""
        page = job.page(now)
        if page is None or not page.view.account.finished:
            job.looked_at = now
            return False
        if job.is_late:
            return False
        if not self._store.close_job(page, through, job.snapshot(), code_format()):
            return False
        job.closed_through, job.closed_end = through, page.view.account.end
        return True

    def merge_segments(self, now: float, go_on: Callable[[], bool] = lambda: True) -> None:
        """Put the segments of closed jobs together, a few in each transaction."""
        for job_id in self._store.mergeable():
            if not go_on():
                return
            with alone(job_id):
                job = self._jobs.in_memory(job_id)
                merge = partial(self._store.merge, job_id, self._jobs.delivered)
                while go_on() and job.while_closed(merge):
                    breathe()
                self._close(job, now)

    def prune(self, now: float, go_on: Callable[[], bool] = lambda: True) -> None:
        """Delete the segments of closed jobs of which nothing came for the whole retention."""
        if not (self._settings.retain_s and self._may_delete(now)):
            return
        before = now - self._settings.retain_s
        for job_id in self._store.prunable(before, now - LONGEST_WINDOW_S):
            if isinstance(self._jobs.by_id[job_id], ClosedJob):
                self._store.begin_pruning(job_id, before)
        for job_id in self._store.half_pruned():
            while go_on() and self._store.prune(job_id):
                pass

    def _may_delete(self, now: float) -> bool:
        """Whether the clock may be deleted by."""
        last = self._store.clock_reading()
        reading = read_on(last, now)
        if is_worth_writing(last, reading):
            self._store.write_clock_reading(reading)
        if last is not None and reading.steady_since == now:
            _log.warning(
                "the clock leapt %.1f days %s since it was read last; nothing is deleted for a week",
                abs(now - last.read_at) / DAY_S,
                "back" if now < last.read_at else "ahead",
            )
        return reading.is_steady


def _snapshots(jobs: Iterable[LiveJob]) -> Iterator[Snapshot]:
    """Snapshots of jobs, as far as they can be made."""
    for job in jobs:
        made = None
        with alone(job.job_id):
            made = job.snapshot()
        if made is not None:
            yield made


def _unsaved(job: LiveJob) -> int:
    return job.unsaved_events
