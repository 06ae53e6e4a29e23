"""The query API without HTTP: from parameters to answers, read from a service in worker threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from ett_core.urgency import urgency
from ett_exporter.answer_types import Changes, Health, Jobs
from ett_exporter.answers import (
    attempts_answer,
    checkpoints_answer,
    compilations_answer,
    decisions_answer,
    job_failures_answer,
    page_answer,
    ranks_answer,
    timeline_answer,
)
from ett_exporter.cache_answers import caches_of_job, job_caches_answer
from ett_exporter.cache_types import Caches, JobCaches
from ett_exporter.job_rows import job_row, jobs_together
from ett_exporter.job_types import (
    Attempts,
    Checkpoints,
    Compilations,
    Decisions,
    Job,
    JobFailures,
    Ranks,
    Timeline,
)
from ett_exporter.outlines import STRETCHES_SHOWN, Outlines, coarsened
from ett_exporter.pages import page_of
from ett_exporter.queries import (
    ChangesQuery,
    Filter,
    JobsQuery,
    Nothing,
    Page,
    RowsQuery,
    SpanQuery,
    TimelineQuery,
)
from ett_exporter.service import WAIT_S, Known, Service
from ett_exporter.views import JobPage, JobView

ROWS_RENEWED = 50
"""Of a page of no more jobs than this each row is as of now, however large the fleet is."""


class UnknownJobError(LookupError):
    """There is no such job; the message says so."""


def meant(service: Service, jobs: Filter, since: float = -math.inf) -> Known:
    """The jobs that are meant, as far as they can be read while one waits.

    Those that were over before `since` (Unix seconds) may be left out.
    """
    known = service.known(service.clock(), since, wait_s=WAIT_S)
    return known._replace(views=jobs.chosen(known.views))


class Reads:
    """Answers from one service; any thread may call."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._outlines = Outlines(self._page)
        self._started_at = service.clock()

    def jobs(self, query: JobsQuery) -> Jobs:
        """Jobs in rows."""
        views, missing = meant(self._service, query)
        if query.sort is not None:
            views = in_order(views, query.sort)
        shown, total, following = page_of(views, query)
        now = self._service.clock()
        if len(shown) <= ROWS_RENEWED:
            shown = self._service.renewed(shown, now)
        return Jobs(
            as_of=now,
            jobs=[job_row(view) for view in shown],
            total=total,
            next_offset=following,
            together=jobs_together(views),
            missing=missing,
        )

    def job(self, job_id: str, query: SpanQuery) -> Job:
        """One job in full."""
        if query.begin is None and query.end is None:
            return page_answer(self._outlines.page(job_id))
        page = self._page(job_id, query.begin, query.end)
        return page_answer(replace(page, timeline=coarsened(page.timeline, STRETCHES_SHOWN)))

    def timeline(self, job_id: str, query: TimelineQuery) -> Timeline:
        """Where the time of a job went."""
        return timeline_answer(self._page(job_id, query.begin, query.end), query.limit)

    def attempts(self, job_id: str, _query: Nothing) -> Attempts:
        """The attempts of a job."""
        return attempts_answer(self._page(job_id))

    def ranks(self, job_id: str, _query: Nothing) -> Ranks:
        """The ranks of a job."""
        return ranks_answer(self._page(job_id))

    def job_failures(self, job_id: str, _query: Nothing) -> JobFailures:
        """The failures of a job."""
        return job_failures_answer(self._page(job_id))

    def checkpoints(self, job_id: str, _query: Nothing) -> Checkpoints:
        """The checkpoints of a job."""
        return checkpoints_answer(self._page(job_id))

    def job_caches(self, job_id: str, _query: Nothing) -> JobCaches:
        """The compile caches of a job."""
        return job_caches_answer(self._page(job_id).view)

    def compilations(self, job_id: str, query: RowsQuery) -> Compilations:
        """What a job compiled, and why again."""
        return compilations_answer(self._page_without_timeline(job_id), query)

    def decisions(self, job_id: str, query: RowsQuery) -> Decisions:
        """What the pipeline of a job decided."""
        return decisions_answer(self._page_without_timeline(job_id), query)

    def caches(self, query: Page) -> Caches:
        """The compile caches of many jobs, the latest to start first."""
        known, missing = meant(self._service, query)
        views = [view for view in known if view.details.caches or view.details.compile_s]
        views.sort(key=lambda view: (-view.account.start, view.account.job_id))
        shown, total, following = page_of(views, query)
        return Caches(
            as_of=self._service.clock(),
            missing=missing,
            jobs=[caches_of_job(view) for view in shown],
            total=total,
            next_offset=following,
        )

    def changes(self, query: ChangesQuery) -> Changes:
        """Jobs that changed since a cursor."""
        changed = self._service.changes.since(query.since, query.limit)
        now = self._service.clock()
        shown = changed.job_ids if query.rows else ()
        views = (self._service.view(job_id, now) for job_id in shown)
        return Changes(
            as_of=now,
            cursor=changed.cursor,
            is_all=changed.is_all,
            more=changed.more,
            job_ids=changed.job_ids,
            jobs=[job_row(view) for view in views if view is not None],
        )

    def health(self, _query: Nothing) -> Health:
        """How the exporter is."""
        stats = self._service.stats
        return Health(
            as_of=self._service.clock(),
            status="ready" if self._service.upkeep.is_ready else "starting",
            version=version("ettwatch"),
            started_at=self._started_at,
            jobs=self._service.job_count,
            events=int(stats.events),
            segments=int(stats.segments),
            duplicates=int(stats.duplicates),
            rejected_lines=int(stats.rejected_lines),
            refused_requests=int(stats.refused_requests),
            store_write_mean_s=stats.store_write_s / stats.store_writes if stats.store_writes else None,
        )

    def _page(self, job_id: str, begin: float | None = None, end: float | None = None) -> JobPage:
        page = self._service.page(job_id, self._service.clock(), begin, end)
        if page is None:
            raise UnknownJobError(f"no job {job_id[:128]!r} is known here{self._service.whereabouts(job_id)}")
        return page

    def _page_without_timeline(self, job_id: str) -> JobPage:
        now = self._service.clock()
        return self._page(job_id, now, now)


def in_order(views: Sequence[JobView], sort: str) -> list[JobView]:
    """Jobs by one of their figures; those without it come last, whichever way it is."""
    name = sort.removeprefix("-")
    keyed = [(SORT_KEYS[name](view), view) for view in views]
    known = [(key, view) for key, view in keyed if key is not None]
    known.sort(key=itemgetter(0), reverse=sort.startswith("-"))
    return [view for _, view in known] + [view for key, view in keyed if key is None]


SORT_KEYS: Mapping[str, Callable[[JobView], Any]] = {
    "job_id": lambda view: view.account.job_id,
    "job_name": lambda view: (view.label("job_name") or view.account.job_id).casefold(),
    "state": lambda view: view.account.state,
    "state_since": lambda view: view.account.state_since,
    "start": lambda view: view.account.start,
    "end": lambda view: view.account.end,
    "wall_s": lambda view: view.account.wall_s,
    "ett_percent": lambda view: view.account.ett_percent,
    "tts_s": lambda view: view.account.tts_s,
    "failures": lambda view: len(view.account.failures),
    "attempts": lambda view: len(view.account.attempts),
    "accelerators": lambda view: view.details.accelerators,
    "unsaved_exposure_s": lambda view: view.account.unsaved_exposure_s,
    "last_progress_at": lambda view: view.account.last_progress_at,
    "urgency": lambda view: urgency(view.account),
}
