"""The exporter without its servers: takes in segments, keeps them, answers from live jobs.

Any thread may call. A segment is first made durable, then folded; a crash between the two
loses nothing, because the live jobs are folded again from the store: each when it is first asked
for, and all of them, one after the other, by the upkeep.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ett_core.refusals import Refused
from ett_exporter.cuts import Cut
from ett_exporter.elsewhere import Elsewhere
from ett_exporter.ingest import Line, Rejected, Segment, by_writer, one_segment, read_permitted
from ett_exporter.jobs import Jobs
from ett_exporter.live import LiveJob, Taken, is_silent
from ett_exporter.noting import Noting
from ett_exporter.settings import Settings
from ett_exporter.store import Store
from ett_exporter.taking import OfJobs, Taking, by_job, together
from ett_exporter.tokens import EVERYTHING, Grant
from ett_exporter.upkeep import Upkeep
from ett_exporter.views import JobPage, JobView

REJECTED_SHOWN = 100
"""Rejected lines that an answer names; it counts them all."""
RENEW_FOR_S = 0.2
"""Seconds that go into making views of jobs new before an answer about many of them."""
SMALL_FLEET = 250
"""Jobs whose views can all be made new in that time."""
QUICKLY_S = 0.01
"""The same for larger fleets, and for answers that many readers ask for again and again."""
WAIT_S = 2.0
"""Seconds that an answer about many jobs waits for those that nobody has read since the start: less than
readers wait for it. After that it says how many are missing."""

REPORT_IT = "a fault of the exporter, whose log names the event"


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


class Known(NamedTuple):
    """Views of jobs, and how many jobs are in none of them, as they were not read yet."""

    views: list[JobView]
    missing: int


class Service:
    """All jobs of one exporter; `clock` gives Unix seconds."""

    def __init__(
        self, store: Store, settings: Settings | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.settings = settings or Settings()
        self.store = store
        self.clock = clock
        self.jobs = Jobs(store, self.settings.limits, clock())
        self.upkeep = Upkeep(self.jobs, store, self.settings)
        self.changes = self.jobs.changes
        """Which jobs changed, for readers that follow."""
        self.roster = self.jobs.roster
        """The jobs in memory, their views and what they add up to."""
        self._lock = threading.Lock()
        self._stats = IngestStats()
        self.elsewhere = Elsewhere(store, store.shard, self.settings.limits.jobs) if store.shard else None
        """The jobs of other replicas, where there are any."""
        self._taking = Taking(self.jobs, store, self.elsewhere)
        self._noting = Noting(store.noted_clocks, clock)

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
        for _ in self._keep_all(by_writer(lines)):
            pass

    def _accept(
        self, segments: Sequence[Segment], rejected: Sequence[Rejected], clock_offset_s: float | None
    ) -> Accepted:
        self._count(rejected_lines=len(rejected))
        fresh, refused = 0, list(rejected)
        for some, took in self._keep_all(segments):
            for of_job, taken in zip(some, took, strict=True):
                fresh += taken.fresh
                refused += _rejected(of_job, taken.refused)
            self._compare_clocks(some, clock_offset_s)
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
        return len(self.jobs.by_id)

    def views(self, now: float) -> list[JobView]:
        """Every job as of `now`, in the order in which they were first heard of."""
        return [view for job in self.jobs.all() if (view := job.view(now)) is not None]

    @property
    def is_small(self) -> bool:
        """Whether all views can be made new for an answer."""
        return len(self.roster) <= SMALL_FLEET

    def renew(self, now: float, wait_s: float = math.inf) -> None:
        """Make views new before an answer about many jobs: all of a small fleet, the oldest of a large one.

        To make all of those new would take long, and is done in between anyway (`Exposition.tick`). For the
        first views of jobs one waits up to `wait_s`; `roster.unmet` are missing then.
        """
        self.roster.renew(now, RENEW_FOR_S if self.is_small else QUICKLY_S, meet_for_s=wait_s)

    def known(self, now: float, since: float = -math.inf, *, wait_s: float = math.inf) -> Known:
        """The latest view of every job, in order of first hearing, after `renew`.

        Jobs that were over before `since` (Unix seconds) may be left out. Those that left memory are read
        from the store for as long as one waits; who asks again finds more of them.
        """
        until_s = time.monotonic() + wait_s
        self.renew(now, wait_s)
        found = self.jobs.views_since(now, since, lambda: time.monotonic() < until_s, lambda _job_id: False)
        return Known(found.views, found.unread + self.roster.unmet)

    def renewed(self, views: Iterable[JobView], now: float) -> list[JobView]:
        """The same jobs as of `now`; one that stays busy as it was."""
        jobs = ((view, self.jobs.by_id.get(view.account.job_id)) for view in views)
        return [(isinstance(job, LiveJob) and job.view_at_once(now)) or view for view, job in jobs]

    def is_shown(self, view: JobView, now: float) -> bool:
        """Whether a job is on /metrics: not where it ended longer than the grace ago."""
        last_received_at = self.jobs.by_id[view.account.job_id].last_received_at
        return not view.account.finished or not is_silent(last_received_at, now, self.settings.ended_grace_s)

    def view(self, job_id: str, now: float) -> JobView | None:
        """One job in one row as of `now`; None where it is unknown."""
        job = self.jobs.by_id.get(job_id)
        return job.view(now) if job else None

    @property
    def broken_jobs(self) -> int:
        """Jobs that cannot be accounted for: they show what was known before, if anything."""
        return sum(job.is_broken for job in self.jobs.live())

    def knows(self, job_id: str) -> bool:
        """Whether there is such a job."""
        return job_id in self.jobs.by_id

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
        job = self.jobs.by_id.get(job_id)
        return job.page(now, begin, end) if job else None

    def spans(self, job_id: str, now: float, edges: Sequence[float]) -> Sequence[Mapping[str, float]]:
        """Seconds of a job by component in each part between moments; none where it is unknown."""
        job = self.jobs.by_id.get(job_id)
        return job.spans(now, edges) if job else ()

    def cut(self, job_id: str, now: float, edges: Sequence[float]) -> Cut | None:
        """A live job between moments; None where it is unknown or no more live."""
        job = self.jobs.by_id.get(job_id)
        return job.cut(now, edges) if isinstance(job, LiveJob) else None

    def stands(self, job_id: str, serial: int) -> bool:
        """Whether a cut of a job still stands."""
        job = self.jobs.by_id.get(job_id)
        return isinstance(job, LiveJob) and job.stands(serial)

    def _keep_all(self, segments: Sequence[Segment]) -> Iterator[tuple[OfJobs, Sequence[Taken]]]:
        """Keep segments of any jobs, some jobs at a time; what came of each of those."""
        for some in together(segments):
            fitting, busy = self._taking.fitting(some, self.clock())
            if fitting:
                yield fitting, self._keep(fitting)
            if busy is not None:
                raise busy

    def _keep(self, some: OfJobs) -> Sequence[Taken]:
        """Keep segments of some jobs together, and fold them."""
        began = time.perf_counter()
        took = self._taking.take(some, self.clock())
        for of_job, taken in zip(some, took, strict=True):
            if taken.fresh and self.store.owns(of_job[0].job_id):
                self.changes.note(of_job[0].job_id)
        fresh = sum(taken.fresh for taken in took)
        self._count(
            events=fresh,
            segments=sum(map(len, some)),
            duplicates=sum(len(segment.lines) for of_job in some for segment in of_job) - fresh,
            rejected_lines=sum(len(taken.refused) for taken in took),
            store_writes=1,
            store_write_s=time.perf_counter() - began,
        )
        return took

    def _compare_clocks(self, some: OfJobs, offset_s: float | None) -> None:
        """Keep what is new of the clocks of writers."""
        if offset_s is not None and (news := self._noting.news(some, offset_s)):
            self._keep(by_job(self._noting.segments(news)))
            self.store.noted_clocks.note({key: each.noted for key, each in news.items()})

    def _count(self, **more: float) -> None:
        with self._lock:
            totals = {name: getattr(self._stats, name) + value for name, value in more.items()}
            self._stats = msgspec.structs.replace(self._stats, **totals)


def _rejected(segments: Iterable[Segment], refused: Sequence[Refused]) -> list[Rejected]:
    """The lines of a job that were kept, but count nowhere."""
    if not refused:
        return []
    lines = (line for segment in segments for line in segment.lines)
    numbers = {(line.event.writer, line.event.seq): line.number for line in lines}
    return [
        Rejected(numbers[each.writer, each.seq], _why_it_does_not_count(each))
        for each in refused
        if (each.writer, each.seq) in numbers
    ]


def _why_it_does_not_count(refused: Refused) -> str:
    if refused.is_fault:
        return f"kept, but counted nowhere ({refused.reason}): {REPORT_IT}"
    return f"kept, but not counted: {refused.reason}"
