"""What is done with the jobs of an exporter beside answering.

They are folded after the start, saved as snapshots, written as rows once they are over; the segments of
closed ones are put together, and deleted when they are old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ett_exporter.breath import breathe
from ett_exporter.closed import LONGEST_WINDOW_S, ClosedJob, is_settled
from ett_exporter.errors import StoreError
from ett_exporter.jobs import Jobs, alone
from ett_exporter.live import LiveJob
from ett_exporter.places import Snapshot
from ett_exporter.settings import Settings
from ett_exporter.snapshots import code_format
from ett_exporter.store import Store

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

        Of those that a window still holds, only what many jobs are asked for stays in memory.
        """
        for job in self._jobs.live():
            if go_on() and now - job.last_received_at > self._settings.ended_grace_s:
                with alone(job.job_id):
                    self._close(job, now)

    def _close(self, job: LiveJob, now: float) -> None:
        through = job.last_received_at
        if job.closed_through != through and (now < job.look_at or not self._write_rows(job, through, now)):
            return
        if is_settled(job.closed_end, now):
            self._jobs.let_go(job, through)
        else:
            job.unload(now)

    def _write_rows(self, job: LiveJob, through: float, now: float) -> bool:
        """Write the rows of a job that is over; False where it is not, or goes on."""
        page = job.page(now)
        if page is None or not page.view.account.finished:
            job.look_at = now + LOOK_AGAIN_AFTER * (now - through)
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
        if not self._settings.retain_s:
            return
        before = now - self._settings.retain_s
        for job_id in self._store.prunable(before, now - LONGEST_WINDOW_S):
            if isinstance(self._jobs.by_id[job_id], ClosedJob):
                self._store.begin_pruning(job_id, before)
        for job_id in self._store.half_pruned():
            while go_on() and self._store.prune(job_id):
                pass


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
