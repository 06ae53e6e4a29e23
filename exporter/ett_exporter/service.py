"""The exporter without its servers: takes in segments, keeps them, answers from live jobs.

Any thread may call. A segment is first made durable, then folded; a crash between the two
loses nothing, because the live jobs are folded again from the store: each when it is first asked
for, and all of them, one after the other, by `build`.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain

import msgspec

from ett_core.events import AnyEvent
from ett_core.refusals import Refused
from ett_exporter.archive import FileArchive
from ett_exporter.breath import breathe
from ett_exporter.changes import ChangeLog
from ett_exporter.clocks import clock_event, is_noteworthy
from ett_exporter.closed import LONGEST_WINDOW_S, ClosedJob, is_settled
from ett_exporter.cuts import Cut
from ett_exporter.errors import StoreError
from ett_exporter.ingest import Line, Rejected, Segment, by_writer, one_segment, read_permitted
from ett_exporter.live import LiveJob, Taken
from ett_exporter.places import Place, Snapshot, Stored
from ett_exporter.recent import AtHand
from ett_exporter.roster import Roster
from ett_exporter.settings import Settings
from ett_exporter.snapshots import code_format
from ett_exporter.store import KnownJob, Store, raw_line
from ett_exporter.tokens import EVERYTHING, Grant
from ett_exporter.views import JobPage, JobView

REJECTED_SHOWN = 100
"""Rejected lines that an answer names; it counts them all."""


RENEW_FOR_S = 0.2
"""Seconds that go into making views of jobs new before an answer about many of them."""
SMALL_FLEET = 250
"""Jobs whose views can all be made new in that time."""
QUICKLY_S = 0.01
"""The same for larger fleets, and for answers that many readers ask for again and again."""

REPORT_IT = "a fault of the exporter, whose log names the event"
SAVED_AT_ONCE = 50
LOOK_AGAIN_AFTER = 0.1
"""A silent job is asked again whether it is over when it has been silent for longer by this share."""


_log = logging.getLogger("ett_exporter.service")


class BusyError(RuntimeError):
    """The exporter takes in no more for now; the sender tries again later."""


class Accepted(msgspec.Struct, frozen=True):
    """The answer to a segment, once what was good of it is durable."""

    accepted: int
    duplicates: int
    rejected: Sequence[Rejected]
    rejected_total: int


class IngestStats(msgspec.Struct, frozen=True):
    """What this process has taken in since it started."""

    events: int = 0
    segments: int = 0
    duplicates: int = 0
    rejected_lines: int = 0
    refused_requests: int = 0
    store_writes: int = 0
    store_write_s: float = 0.0


class _Past:
    """The past of a job, as the store holds it."""

    def __init__(self, store: Store, job_id: str, delivered: Callable[[], Place | None]) -> None:
        self._store = store
        self._job_id = job_id
        self.delivered = delivered

    def events(self) -> Iterable[AnyEvent]:
        return chain.from_iterable(self._store.events(self._job_id))

    def snapshot(self) -> Snapshot | None:
        return self._store.snapshot(self._job_id, code_format())

    def after(self, place: Place) -> Iterable[Stored]:
        return self._store.segments_after(self._job_id, place)


class Service:
    """All jobs of one exporter; `clock` gives Unix seconds."""

    def __init__(
        self, store: Store, settings: Settings | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.settings = settings or Settings()
        self.store = store
        self.clock = clock
        self._archive = FileArchive()
        self._closed_views: AtHand[ClosedJob, JobView] = AtHand(self.settings.limits.closed_views)
        self._jobs: dict[str, LiveJob | ClosedJob] = {}
        self._lock = threading.Lock()
        self._stats = IngestStats()
        self._writer = f"exporter-{secrets.token_hex(8)}"
        self._clock_seqs: dict[str, int] = {}
        self.changes = ChangeLog()
        """Which jobs changed, for readers that follow."""
        self.roster = Roster(self.changes.note)
        """The jobs in memory, their views and what they add up to."""
        self._is_ready = False
        self._delivered = store.horizon() if store.shard else None
        for known in store.jobs():
            self._jobs[known.job_id] = self._known_job(known)
            self.changes.note(known.job_id)

    def ingest(self, text: bytes, clock_offset_s: float | None = None, grant: Grant = EVERYTHING) -> Accepted:
        """Take in NDJSON lines of one writer; returns once they are durable.

        `clock_offset_s` is how far the sender's clock was seen ahead of ours, if it said. `grant` is
        what the sender may send.

        Raises:
            TooLargeError: there are too many lines.
            ForbiddenError: the sender may send none of them.
            BusyError: the job is one too many.
            StoreError: they could not be written; nothing of the segment counts.
        """
        lines, bad = read_permitted(text, self.settings.limits, grant)
        segment, strange = one_segment(lines)
        return self._accept([segment] if segment else [], [*bad, *strange], clock_offset_s)

    def ingest_events(
        self, text: bytes, clock_offset_s: float | None = None, grant: Grant = EVERYTHING
    ) -> Accepted:
        """Take in NDJSON lines of any jobs and writers; otherwise as `ingest`.

        Raises:
            BusyError, StoreError: as `ingest`; lines of other writers may be held already.
        """
        lines, bad = read_permitted(text, self.settings.limits, grant)
        return self._accept(by_writer(lines), bad, clock_offset_s)

    def ingest_lines(self, lines: Sequence[Line], rejected: int) -> None:
        """Take in lines of any writers, as a watched journal holds them; errors as `ingest`."""
        self._count(rejected_lines=rejected)
        for segment in by_writer(lines):
            self._keep(segment)

    def _accept(
        self, segments: Sequence[Segment], rejected: Sequence[Rejected], clock_offset_s: float | None
    ) -> Accepted:
        self._count(rejected_lines=len(rejected))
        fresh, refused = 0, list(rejected)
        for segment in segments:
            taken = self._keep(segment)
            fresh += taken.fresh
            refused += _rejected(segment, taken.refused)
            self._compare_clocks(segment, clock_offset_s)
        duplicates = sum(len(segment.lines) for segment in segments) - fresh
        shown = sorted(refused, key=lambda r: r.line)[:REJECTED_SHOWN]
        return Accepted(fresh - len(refused) + len(rejected), duplicates, shown, len(refused))

    def count_refused(self) -> None:
        """Count a request that was refused whole."""
        self._count(refused_requests=1)

    @property
    def stats(self) -> IngestStats:
        """What this process has taken in so far."""
        return self._stats

    @property
    def job_count(self) -> int:
        """Jobs known."""
        return len(self._jobs)

    def views(self, now: float) -> list[JobView]:
        """Every job as of `now`, in the order in which they were first heard of."""
        with self._lock:
            jobs = list(self._jobs.values())
        return [view for job in jobs if (view := job.view(now)) is not None]

    def known_views(self, now: float) -> list[JobView]:
        """The latest view of every job, in order of first hearing; those of a small fleet are renewed.

        Of a large one only some are: it would take long, and is done in between anyway (`exposition.Ticker`).
        """
        self.roster.renew(now, RENEW_FOR_S if len(self.roster) <= SMALL_FLEET else QUICKLY_S)
        with self._lock:
            jobs = list(self._jobs.values())
        views = (job.known_view if isinstance(job, LiveJob) else job.view(now) for job in jobs)
        return [view for view in views if view is not None]

    def renewed(self, views: Iterable[JobView], now: float) -> list[JobView]:
        """The same jobs as of `now`; one that stays busy as it was."""
        jobs = ((view, self._jobs.get(view.account.job_id)) for view in views)
        return [(isinstance(job, LiveJob) and job.view_at_once(now)) or view for view, job in jobs]

    def is_shown(self, view: JobView, now: float) -> bool:
        """Whether a job is on /metrics: not where it ended longer than the grace ago."""
        last_received_at = self._jobs[view.account.job_id].last_received_at
        return not view.account.finished or now - last_received_at <= self.settings.ended_grace_s

    def view(self, job_id: str, now: float) -> JobView | None:
        """One job in one row as of `now`; None where it is unknown."""
        job = self._jobs.get(job_id)
        return job.view(now) if job else None

    @property
    def broken_jobs(self) -> int:
        """Jobs that cannot be accounted for: they show what was known before, if anything."""
        return sum(job.is_broken for job in self._live_jobs())

    def knows(self, job_id: str) -> bool:
        """Whether there is such a job."""
        return job_id in self._jobs

    def whereabouts(self, job_id: str) -> str:
        """Who may know a job that is unknown here: empty, or words to add to a sentence."""
        shard = self.store.shard
        if shard is None or shard.holds(job_id):
            return ""
        return f"; it is one of the replica with --shard {shard.owner_of(job_id)}"

    def page(
        self, job_id: str, now: float, begin: float | None = None, end: float | None = None
    ) -> JobPage | None:
        """One job in full; None where it is unknown."""
        job = self._jobs.get(job_id)
        return job.page(now, begin, end) if job else None

    def spans(self, job_id: str, now: float, edges: Sequence[float]) -> Sequence[Mapping[str, float]]:
        """Seconds of a job by component in each part between moments; none where it is unknown."""
        job = self._jobs.get(job_id)
        return job.spans(now, edges) if job else ()

    def cut(self, job_id: str, now: float, edges: Sequence[float]) -> Cut | None:
        """A live job between moments; None where it is unknown or no more live."""
        job = self._jobs.get(job_id)
        return job.cut(now, edges) if isinstance(job, LiveJob) else None

    def stands(self, job_id: str, serial: int) -> bool:
        """Whether a cut of a job still stands."""
        job = self._jobs.get(job_id)
        return isinstance(job, LiveJob) and job.stands(serial)

    @property
    def is_ready(self) -> bool:
        """Whether every job that was known at the start is folded."""
        return self._is_ready

    def build(self, go_on: Callable[[], bool] = lambda: True) -> None:
        """Fold all jobs that were not asked for yet, as long as `go_on` says so.

        Raises:
            StoreError: the database cannot be read; call again.
        """
        for job in self._live_jobs():
            if not go_on():
                return
            with _alone(job.job_id):
                job.build()
        self._is_ready = True

    def save_snapshots(self, unsaved_events: int, go_on: Callable[[], bool] = lambda: True) -> None:
        """Save the jobs with the most events that no snapshot holds, until no more than this are left.

        Raises:
            StoreError: it could not be written; nothing is lost.
        """
        waiting = sorted((job for job in self._live_jobs() if job.unsaved_events), key=_unsaved, reverse=True)
        left = sum(map(_unsaved, waiting))
        while left > unsaved_events and waiting and go_on():
            jobs, waiting = waiting[:SAVED_AT_ONCE], waiting[SAVED_AT_ONCE:]
            counts = list(map(_unsaved, jobs))
            left -= sum(counts)
            try:
                self.store.save_snapshots(list(_snapshots(jobs)), code_format())
            except StoreError:
                for job, count in zip(jobs, counts, strict=True):
                    job.unsaved_events += count
                raise

    def close_jobs(self, now: float, go_on: Callable[[], bool] = lambda: True) -> None:
        """Write the rows of jobs that have ended, and let go of those behind every window.

        Of those that a window still holds, only what many jobs are asked for stays in memory.

        Raises:
            StoreError: it could not be written; nothing is lost.
        """
        for job in self._live_jobs():
            if go_on() and now - job.last_received_at > self.settings.ended_grace_s:
                with _alone(job.job_id):
                    self._close(job, now)

    def _close(self, job: LiveJob, now: float) -> None:
        through = job.last_received_at
        if job.closed_through != through and (now < job.look_at or not self._write_rows(job, through, now)):
            return
        if is_settled(job.closed_end, now):
            with self._lock:
                if self._jobs[job.job_id] is job and job.retire(through):
                    self._jobs[job.job_id] = self._closed_job(job.job_id, through, job.closed_end)
                    self.roster.remove(job.job_id)
        else:
            job.unload(now)

    def _write_rows(self, job: LiveJob, through: float, now: float) -> bool:
        """Write the rows of a job that is over; False where it is not, or goes on."""
        page = job.page(now)
        if page is None or not page.view.account.finished:
            job.look_at = now + LOOK_AGAIN_AFTER * (now - through)
            return False
        if not self.store.close_job(page, through, job.snapshot(), code_format()):
            return False
        job.closed_through, job.closed_end = through, page.view.account.end
        return True

    def merge_segments(self, now: float, go_on: Callable[[], bool] = lambda: True) -> None:
        """Put the segments of closed jobs together, a few in each transaction.

        Raises:
            StoreError: it could not be written; it goes on from there the next time.
        """
        for job_id in self.store.mergeable():
            if not go_on():
                return
            with _alone(job_id):
                with self._lock:
                    job = self._live(job_id, 0.0)
                while go_on() and job.while_closed(partial(self.store.merge, job_id, self._delivered)):
                    breathe()
                self._close(job, now)

    def prune(self, now: float, go_on: Callable[[], bool] = lambda: True) -> None:
        """Delete the segments of closed jobs of which nothing came for the whole retention.

        Raises:
            StoreError: it could not be written; it goes on from there the next time.
        """
        if not self.settings.retain_s:
            return
        before = now - self.settings.retain_s
        for job_id in self.store.prunable(before, now - LONGEST_WINDOW_S):
            if isinstance(self._jobs[job_id], ClosedJob):
                self.store.begin_pruning(job_id, before)
        for job_id in self.store.half_pruned():
            while go_on() and self.store.prune(job_id):
                pass

    def _known_job(self, known: KnownJob) -> LiveJob | ClosedJob:
        now = self.clock()
        if known.is_closed and known.end_time is not None and is_settled(known.end_time, now):
            return self._closed_job(known.job_id, known.last_received_at, known.end_time)
        job = LiveJob(known.job_id, known.last_received_at, self._past(known.job_id), self._archive)
        if known.is_closed and known.end_time is not None:
            job.closed_through, job.closed_end = known.closed_through, known.end_time
        self.roster.add(job, is_old=True)
        return job

    def _closed_job(self, job_id: str, last_received_at: float, end: float) -> ClosedJob:
        def read() -> JobPage:
            page = self.store.closed_job(job_id)
            assert page is not None  # noqa: S101 - it was written before this job was let go of
            return page

        return ClosedJob(job_id, last_received_at, end, read, self._closed_views)

    def _live(self, job_id: str, last_received_at: float) -> LiveJob:
        """The job in memory, from its past where it was not; the caller holds the lock."""
        job = self._jobs.get(job_id)
        if isinstance(job, LiveJob):
            return job
        received_at = job.last_received_at if job else last_received_at
        live = LiveJob(job_id, received_at, self._past(job_id), self._archive)
        if job is not None:
            live.closed_through, live.closed_end = job.last_received_at, job.end
        self._jobs[job_id] = live
        self.roster.add(live, is_old=job is not None)
        return live

    def follow(self) -> bool:
        """Take in what other replicas have made durable of our jobs; whether there may be more at once."""
        assert self._delivered is not None  # noqa: S101 - the caller knows that there are replicas
        arrivals = self.store.arrivals(self._delivered)
        for place, job_id in arrivals:
            if self.store.owns(job_id):
                with _alone(job_id):
                    self._deliver(place, job_id)
            self._delivered = place
        return bool(arrivals)

    def _deliver(self, place: Place, job_id: str) -> None:
        with self._lock:
            job = self._live(job_id, 0.0)
        if not job.deliver(place, lambda: self.store.segment(place.segment_id)):
            self._deliver(place, job_id)
        self.changes.note(job_id)

    def _live_jobs(self) -> list[LiveJob]:
        with self._lock:
            return [job for job in self._jobs.values() if isinstance(job, LiveJob)]

    def _keep(self, segment: Segment) -> Taken:
        now = self.clock()
        began = time.perf_counter()
        if self.store.owns(segment.job_id):
            taken = self._take(segment, now)
            if taken.fresh:
                self.changes.note(segment.job_id)
        else:
            taken = Taken(len(self.store.append(segment, now).events))
        self._count(
            events=taken.fresh,
            segments=1,
            duplicates=len(segment.lines) - taken.fresh,
            rejected_lines=len(taken.refused),
            store_writes=1,
            store_write_s=time.perf_counter() - began,
        )
        return taken

    def _take(self, segment: Segment, now: float) -> Taken:
        job = self._job(segment.job_id, now)
        taken = job.take(lambda: self.store.append(segment, now), now)
        return self._take(segment, now) if taken is None else taken

    def _job(self, job_id: str, now: float) -> LiveJob:
        """The live job; a new one, which shows with its first event, where it is unknown."""
        with self._lock:
            if not isinstance(self._jobs.get(job_id), LiveJob):
                live = len(self.roster)
                if live >= self.settings.limits.jobs:
                    raise BusyError(f"this exporter holds {live} jobs in memory, which is its limit")
            return self._live(job_id, now)

    def _past(self, job_id: str) -> _Past:
        return _Past(self.store, job_id, lambda: self._delivered)

    def _compare_clocks(self, segment: Segment, offset_s: float | None) -> None:
        if offset_s is None:
            return
        if is_noteworthy(offset_s, self.store.clock_offset_s(segment.job_id, segment.writer)):
            self._record_clock(segment, offset_s)

    def _record_clock(self, segment: Segment, offset_s: float) -> None:
        with self._lock:
            seq = self._clock_seqs.get(segment.job_id, 0)
            self._clock_seqs[segment.job_id] = seq + 1
        last = segment.lines[-1].event
        event = clock_event(last, writer=self._writer, seq=seq, now=self.clock(), offset_s=offset_s)
        self._keep(Segment(segment.job_id, self._writer, [raw_line(event)]))
        self.store.record_clock_offset(segment.job_id, segment.writer, offset_s)

    def _count(self, **more: float) -> None:
        with self._lock:
            totals = {name: getattr(self._stats, name) + value for name, value in more.items()}
            self._stats = msgspec.structs.replace(self._stats, **totals)


def _rejected(segment: Segment, refused: Sequence[Refused]) -> list[Rejected]:
    """The lines of a segment that were kept, but count nowhere."""
    if not refused:
        return []
    numbers = {(line.event.writer, line.event.seq): line.number for line in segment.lines}
    return [
        Rejected(numbers[each.writer, each.seq], f"kept, but counted nowhere ({each.reason}): {REPORT_IT}")
        for each in refused
        if (each.writer, each.seq) in numbers
    ]


def _snapshots(jobs: Iterable[LiveJob]) -> Iterator[Snapshot]:
    """Snapshots of jobs, as far as they can be made."""
    for job in jobs:
        made = None
        with _alone(job.job_id):
            made = job.snapshot()
        if made is not None:
            yield made


@contextmanager
def _alone(job_id: str) -> Iterator[None]:
    """What goes wrong with one job is logged and keeps nobody from the others; but the store concerns all."""
    try:
        yield
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 - one job, whatever came of it
        _log.exception("something is wrong with job %s", job_id)


def _unsaved(job: LiveJob) -> int:
    return job.unsaved_events
