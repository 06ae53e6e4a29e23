"""Questions across jobs: failures and what they cost, suspect nodes, what became worse.

From parameters to answers, read from a service in worker threads; the judgement is core's.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ett_core.fleet.families import families
from ett_core.fleet.nodes import nodes
from ett_core.fleet.outbreaks import outbreaks
from ett_core.fleet.regressions import regressions
from ett_core.fleet.rows import Failure, Rows, Run
from ett_exporter.answer_types import Answer
from ett_exporter.failure_answers import (
    alike,
    evidence_of,
    failure_of_job,
    groups_of,
    lost,
    over_time,
    run_row,
)
from ett_exporter.failure_types import (
    FailureBucket,
    FailureDetail,
    Failures,
    Families,
    Nodes,
    Regressions,
    Runs,
)
from ett_exporter.history import FleetHistory
from ett_exporter.pages import page_of
from ett_exporter.queries import FailuresQuery, Filter, NodesQuery, Nothing, RunsQuery, WindowQuery
from ett_exporter.reads import UnknownJobError, meant
from ett_exporter.recent import Recent
from ett_exporter.service import Service

LOOKED_AGAIN_AFTER_S = 30.0
"""What became worse, and what is usual, is worked out at most so often for one question."""
QUESTIONS_KEPT = 16
A = TypeVar("A", bound=Answer)


class FailureReads:
    """Answers from one service; any thread may call."""

    def __init__(self, service: Service, history: FleetHistory) -> None:
        self._service, self._history = service, history
        self._worse: _Looked[Regressions] = _Looked(self._look)
        self._families: _Looked[Families] = _Looked(self._usual)

    def failures(self, query: FailuresQuery) -> Failures:
        """Failures of many jobs, the latest first; grouped as asked, the largest group first."""
        now = self._service.clock()
        begin, end = query.span(now)
        known, missing = meant(self._service, query, begin)
        views = {view.account.job_id: view for view in known if view.account.failures}
        is_wanted = query.wanted()
        found = [
            (failure, place)
            for failures in self._history.failures(views.values())
            for place, failure in enumerate(failures)
            if begin <= failure.time < end and is_wanted(failure)
        ]
        found.sort(key=lambda each: (-each[0].time, each[0].id))
        shown, total, following = page_of(found, query)
        prices = self._service.settings.prices
        chosen = [failure for failure, _ in found]
        return Failures(
            as_of=now,
            missing=missing,
            failures=[failure_of_job(views[f.job_id], f, place, prices) for f, place in shown],
            total=total,
            next_offset=following,
            group_by=query.group_by,
            groups=groups_of(chosen, query.group_by, query.order, prices) if query.group_by else [],
            over_time=_over_time(chosen, query, (begin, end), now) if query.buckets else [],
            **lost(chosen, prices),
        )

    def failure(self, failure_id: str, _query: Nothing) -> FailureDetail:
        """One failure with the lines that tell of it.

        Raises:
            UnknownJobError: there is none of this name.
        """
        job_id = failure_id.rpartition("~")[0]
        page = self._service.page(job_id, self._service.clock()) if job_id else None
        rows = self._history.of_job(page.view) if page is not None else Rows(job_id, 0.0, (), ())
        place = next((n for n, failure in enumerate(rows.failures) if failure.id == failure_id), None)
        if page is None or place is None:
            raise UnknownJobError(f"no failure {failure_id[:160]!r} is known here")
        row = failure_of_job(page.view, rows.failures[place], place, self._service.settings.prices)
        return FailureDetail(
            as_of=page.view.account.as_of,
            **{name: getattr(row, name) for name in row.__struct_fields__},
            evidence=evidence_of(page, place),
            alike=alike(rows.failures, place),
        )

    def nodes(self, query: NodesQuery) -> Nodes:
        """The nodes at which failures point, the most suspicious first."""
        now = self._service.clock()
        begin, end = query.span(now)
        rows, missing = self._rows(query, begin)
        found = nodes([run for each in rows for run in each.runs], _failures(rows), begin, end)
        shown, total, following = page_of(found, query)
        return Nodes(
            as_of=now,
            missing=missing,
            begin=begin,
            end=end,
            nodes=shown,
            total=total,
            next_offset=following,
        )

    def regressions(self, query: WindowQuery) -> Regressions:
        """Classes of failures that strike many, and components that take longer than they did."""
        return self._worse.answer(query, self._service.clock())

    def runs(self, query: RunsQuery) -> Runs:
        """The attempts whose loop began in time, the latest first: what regressions are looked for in."""
        now = self._service.clock()
        begin, end = query.span(now)
        runs, missing = self._runs(query, begin, end)
        found = [run for run in runs if run.figures and query.family in (None, run.family)]
        found.sort(key=lambda run: (-run.start, run.job_id, run.attempt))
        shown, total, following = page_of(found, query)
        rows = [run_row(run) for run in shown]
        return Runs(
            as_of=now,
            missing=missing,
            begin=begin,
            end=end,
            runs=rows,
            total=total,
            next_offset=following,
        )

    def families(self, query: WindowQuery) -> Families:
        """The families of jobs that began something in time, with what is usual in each."""
        return self._families.answer(query, self._service.clock())

    def _runs(self, query: Filter, begin: float, end: float) -> tuple[list[Run], int]:
        """The runs that began in time, and how many jobs are missing."""
        rows, missing = self._rows(query, begin)
        return [run for each in rows for run in each.runs if begin <= run.start < end], missing

    def _usual(self, query: WindowQuery, now: float) -> Families:
        begin, end = query.span(now)
        runs, missing = self._runs(query, begin, end)
        return Families(as_of=now, missing=missing, begin=begin, end=end, families=families(runs))

    def _look(self, query: WindowQuery, now: float) -> Regressions:
        begin, end = query.span(now)
        rows, missing = self._rows(query, begin)
        runs = [run for each in rows for run in each.runs]
        return Regressions(
            as_of=now,
            missing=missing,
            begin=begin,
            end=end,
            runs=sum(1 for run in runs if begin <= run.start < end),
            failures=sum(1 for failure in _failures(rows) if begin <= failure.time < end),
            components=regressions(runs, begin, end),
            outbreaks=outbreaks(runs, _failures(rows), begin, end),
        )

    def _rows(self, query: Filter, begin: float) -> tuple[list[Rows], int]:
        """The rows of jobs that were not over before `begin`, and how many jobs are missing."""
        views, missing = meant(self._service, query, begin)
        return self._history.rows(view for view in views if view.account.end >= begin), missing


class _Looked(Generic[A]):
    """Answers that take long to work out, kept for a while; any thread may ask, one at a time works."""

    def __init__(self, look: Callable[[WindowQuery, float], A]) -> None:
        self._look = look
        self._known: Recent[WindowQuery, A] = Recent(QUESTIONS_KEPT)
        self._lock = threading.Lock()

    def answer(self, query: WindowQuery, now: float) -> A:
        """What is known, if it is young enough, else what is found now."""
        with self._lock:
            known = self._known.get(query)
            if known is None or not 0 <= now - known.as_of < LOOKED_AGAIN_AFTER_S:
                known = self._look(query, now)
                self._known.put(query, known)
            return known


def _over_time(
    failures: Sequence[Failure], query: FailuresQuery, span: tuple[float, float], now: float
) -> list[FailureBucket]:
    """The buckets of a query; a time that it does not limit begins with the first failure and ends now."""
    begin, end = span
    if begin == -math.inf:
        begin = min((failure.time for failure in failures), default=now)
    return over_time(failures, query.group_by, (begin, min(end, now)), query.buckets or 1)


def _failures(rows: Sequence[Rows]) -> list[Failure]:
    return [failure for each in rows for failure in each.failures]
