"""The jobs of one exporter: those in memory, and those of which the store holds rows.

Any thread may call. What other replicas have made durable of our jobs is given to them by `follow`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from ett_exporter.archive import FileArchive
from ett_exporter.changes import ChangeLog
from ett_exporter.closed import ClosedJob, is_settled
from ett_exporter.errors import StoreError
from ett_exporter.live import LiveJob
from ett_exporter.past import StoredPast
from ett_exporter.places import Place
from ett_exporter.recent import AtHand
from ett_exporter.roster import Roster
from ett_exporter.settings import Limits
from ett_exporter.store import KnownJob, Store
from ett_exporter.views import JobPage, JobView

_log = logging.getLogger("ett_exporter.jobs")


class BusyError(RuntimeError):
    """The exporter takes in no more for now; the sender tries again later."""


class ViewsSince(msgspec.Struct):
    """Views of jobs, those that the caller knows by name, and how many were not read."""

    views: list[JobView]
    known: set[str]
    unread: int

    def add(self, view: JobView | None) -> None:
        """One more, if there is one."""
        if view is not None:
            self.views.append(view)


class Jobs:
    """Every job by its name."""

    def __init__(self, store: Store, limits: Limits, now: float) -> None:
        """Those that the store knows, as of `now`; each is folded when it is first asked for."""
        self._store = store
        self._limits = limits
        self._archive = FileArchive()
        self.closed_views: AtHand[ClosedJob, JobView] = AtHand(limits.closed_views)
        self.by_id: dict[str, LiveJob | ClosedJob] = {}
        """In the order in which they were first heard of."""
        self._lock = threading.Lock()
        self.changes = ChangeLog()
        """Which jobs changed, for readers that follow."""
        self.roster = Roster(self.changes.note)
        """The jobs in memory, their views and what they add up to."""
        self.delivered = store.horizon() if store.shard else None
        """Up to where everything of other replicas was given to the jobs; None without replicas."""
        for known in store.jobs():
            self.by_id[known.job_id] = self._known(known, now)
            self.changes.note(known.job_id)

    def all(self) -> list[LiveJob | ClosedJob]:
        """Every job, in the order in which they were first heard of."""
        with self._lock:
            return list(self.by_id.values())

    def live(self) -> list[LiveJob]:
        """Those in memory."""
        return [job for job in self.all() if isinstance(job, LiveJob)]

    def views_since(
        self, now: float, since: float, go_on: Callable[[], bool], is_known: Callable[[str], bool]
    ) -> ViewsSince:
        """The latest views of jobs that were not over before `since` (Unix seconds), and of some that were.

        Jobs of which the store has rows are read as long as `go_on` says so, and only where they are new to
        the caller; those that are at hand are given in any case.
        """
        found = ViewsSince([], set(), 0)
        for job in self.all():
            if isinstance(job, LiveJob):
                found.add(job.known_view)
            elif job.end >= since and is_known(job.job_id):
                found.known.add(job.job_id)
            elif job.end >= since and (job.is_at_hand or go_on()):
                found.add(job.view(now))
            elif job.end >= since:
                found.unread += 1
        return found

    def told(self, job_id: str, now: float) -> LiveJob:
        """The job in memory to which something comes; a new one, which shows with its first event.

        Raises:
            BusyError: it is one too many.
        """
        with self._lock:
            if not isinstance(self.by_id.get(job_id), LiveJob):
                live = len(self.roster)
                if live >= self._limits.jobs:
                    raise BusyError(f"this exporter holds {live} jobs in memory, which is its limit")
            return self._live(job_id, now)

    def in_memory(self, job_id: str) -> LiveJob:
        """The job in memory, whatever it was."""
        with self._lock:
            return self._live(job_id, 0.0)

    def let_go(self, job: LiveJob, through: float) -> None:
        """From now on the rows of a job stand for it, unless something came after `through`."""
        with self._lock:
            if self.by_id[job.job_id] is job and job.retire(through):
                self.by_id[job.job_id] = self._closed(job.job_id, through, job.closed_end)
                self.roster.remove(job.job_id)

    def follow(self) -> bool:
        """Take in what other replicas have made durable of our jobs; whether there may be more at once."""
        assert self.delivered is not None  # noqa: S101 - the caller knows that there are replicas
        arrivals = self._store.arrivals(self.delivered)
        for place, job_id in arrivals:
            if self._store.owns(job_id):
                with alone(job_id):
                    self._deliver(place, job_id)
            self.delivered = place
        return bool(arrivals)

    def _deliver(self, place: Place, job_id: str) -> None:
        job = self.in_memory(job_id)
        if not job.deliver(place, lambda: self._store.segment(place.segment_id)):
            self._deliver(place, job_id)
        self.changes.note(job_id)

    def past(self, job_id: str) -> StoredPast:
        """What is durable of a job."""
        return StoredPast(self._store, job_id, lambda: self.delivered)

    def _known(self, known: KnownJob, now: float) -> LiveJob | ClosedJob:
        if known.is_closed and known.end_time is not None and is_settled(known.end_time, now):
            return self._closed(known.job_id, known.last_received_at, known.end_time)
        job = LiveJob(known.job_id, known.last_received_at, self.past(known.job_id), self._archive)
        if known.is_closed and known.end_time is not None:
            job.closed_through, job.closed_end = known.closed_through, known.end_time
        self.roster.add(job, is_old=True)
        return job

    def _closed(self, job_id: str, last_received_at: float, end: float) -> ClosedJob:
        def read() -> JobPage:
            page = self._store.closed_job(job_id)
            assert page is not None  # noqa: S101 - it was written before this job was let go of
            return page

        return ClosedJob(job_id, last_received_at, end, read, self.closed_views)

    def _live(self, job_id: str, last_received_at: float) -> LiveJob:
        """The job in memory, from its past where it was not; the caller holds the lock."""
        job = self.by_id.get(job_id)
        if isinstance(job, LiveJob):
            return job
        received_at = job.last_received_at if job else last_received_at
        live = LiveJob(job_id, received_at, self.past(job_id), self._archive)
        if job is not None:
            live.closed_through, live.closed_end = job.last_received_at, job.end
        elif self.delivered is None:
            live.begin()
        self.by_id[job_id] = live
        self.roster.add(live, is_old=job is not None)
        return live


@contextmanager
def alone(job_id: str) -> Iterator[None]:
    """What goes wrong with one job is logged and keeps nobody from the others; but the store concerns all."""
    try:
        yield
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 - one job, whatever came of it
        _log.exception("something is wrong with job %s", job_id)
