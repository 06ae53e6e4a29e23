"""What could be saved: caches by run, checkpoint intervals, what-if.

From parameters to answers, read from a service in worker threads; the judgement is core's. What is
worked out over all jobs is kept for a while, since it changes slowly and costs time for each job.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from ett_core.fleet.caches import WARM, CacheRun, Verdict, cache_runs, judged
from ett_core.fleet.what_if import FleetTime, Levers, mean_between_failures_s, warm_levels
from ett_exporter.history import FleetHistory
from ett_exporter.intervals import costs_of, excess_accelerator_s, interval_row
from ett_exporter.lever_answers import (
    alone,
    compared,
    job_time_of,
    left_out,
    overlap,
    run_row,
    sum_of,
    weigher,
)
from ett_exporter.lever_types import CacheComparison, CacheRuns, Intervals, WhatIf
from ett_exporter.pages import page_of
from ett_exporter.queries import CacheRunsQuery, ComparisonQuery, Filter, Page, QueryError, WhatIfQuery
from ett_exporter.reads import UnknownJobError, meant
from ett_exporter.recent import Recent
from ett_exporter.service import Service
from ett_exporter.views import WINDOWS_S

LOOKED_AGAIN_AFTER_S = 15.0
"""Runs and sums over all jobs are worked out again at most so often."""
QUESTIONS_KEPT = 16


class _Runs(msgspec.Struct, frozen=True):
    """All runs of all jobs, the latest first, as of a moment."""

    as_of: float
    missing: int
    runs: Sequence[CacheRun]
    verdicts: Mapping[str, Verdict]
    families: Mapping[str, str]
    levels: Mapping[str, float]


class _Fleet(msgspec.Struct, frozen=True):
    """The time of the jobs of one question, levers aside."""

    as_of: float
    missing: int
    jobs: int
    time: FleetTime
    between_failures_s: float | None
    warm_runs: int


class LeverReads:
    """Answers from one service; any thread may call."""

    def __init__(self, service: Service, history: FleetHistory) -> None:
        self._service, self._history = service, history
        self._runs: _Runs | None = None
        self._fleets: Recent[WhatIfQuery, _Fleet] = Recent(QUESTIONS_KEPT)
        self._lock = threading.Lock()

    def cache_runs(self, query: CacheRunsQuery) -> CacheRuns:
        """Runs with their caches, the latest first."""
        now = self._service.clock()
        with self._lock:
            known = self._all_runs(now)
        views, missing = meant(self._service, query)
        wanted = {view.account.job_id for view in views}
        found = [
            run
            for run in known.runs
            if run.job_id in wanted
            and query.family in (None, run.family)
            and (not query.verdicts or known.verdicts[run.id].kind in query.verdicts)
            and (not query.surprise or known.verdicts[run.id].is_surprise)
        ]
        shown, total, following = page_of(found, query)
        return CacheRuns(
            as_of=known.as_of,
            missing=max(known.missing, missing),
            runs=[run_row(run, known.verdicts[run.id]) for run in shown],
            total=total,
            next_offset=following,
            verdicts=dict(Counter(known.verdicts[run.id].kind for run in found).most_common()),
            surprises=sum(known.verdicts[run.id].is_surprise for run in found),
        )

    def cache_comparison(self, query: ComparisonQuery) -> CacheComparison:
        """Two runs side by side.

        Raises:
            UnknownJobError: there is no run of one of the ids.
        """
        with self._lock:
            known = self._all_runs(self._service.clock())
        by_id = {run.id: run for run in known.runs}
        for name in (query.one, query.two):
            if name not in by_id:
                unread = f", but {known.missing} jobs are not read yet" if known.missing else ""
                raise UnknownJobError(
                    f"no run {name[:160]!r} that compiled or asked a cache is known here{unread}"
                )
        return compared(known.as_of, by_id[query.one], by_id[query.two], known.verdicts)

    def intervals(self, query: Page) -> Intervals:
        """Jobs that save, those first whose interval costs most beyond the best."""
        views, missing = meant(self._service, query)
        found = [(view, costs) for view in views if (costs := costs_of(view)) is not None]
        found.sort(key=lambda each: (-excess_accelerator_s(*each), each[0].account.job_id))
        shown, total, following = page_of(found, query)
        rows = [interval_row(view, costs) for view, costs in shown]
        return Intervals(
            as_of=self._service.clock(),
            missing=missing,
            jobs=rows,
            total=total,
            next_offset=following,
        )

    def what_if(self, query: WhatIfQuery) -> WhatIf:
        """The time of all jobs without some of its losses.

        Raises:
            QueryError: there is no such lever, or there are no prices to weigh by.
        """
        if query.weight == "cost" and not self._service.settings.prices:
            raise QueryError("weight: no prices of accelerators are set here (--price)")
        try:
            levers = Levers.of(query.keys)
        except ValueError as error:
            raise QueryError(f"levers: {error}") from error
        fleet = self._fleet(msgspec.structs.replace(query, levers=""))
        together, rows = fleet.time.with_levers(levers), alone(fleet.time)
        return WhatIf(
            as_of=fleet.as_of,
            missing=fleet.missing,
            begin=fleet.as_of - WINDOWS_S[query.window],
            end=fleet.as_of,
            weight=query.weight,
            jobs=fleet.jobs,
            levers=sorted(levers.keys),
            now=sum_of(fleet.time.now),
            together=sum_of(together),
            saved=together.saved,
            overlap=overlap(rows, levers, together),
            alone=rows,
            warm_runs=fleet.warm_runs,
            between_failures_s=fleet.between_failures_s,
        )

    def _fleet(self, query: WhatIfQuery) -> _Fleet:
        now = self._service.clock()
        with self._lock:
            known = self._fleets.get(query)
            if known is None or not 0 <= now - known.as_of < LOOKED_AGAIN_AFTER_S:
                known = self._added_up(query, now)
                self._fleets.put(query, known)
            return known

    def _added_up(self, query: WhatIfQuery, now: float) -> _Fleet:
        known = self._all_runs(now)
        weight = weigher(query.weight, self._service.settings.prices)
        wanted, missing = meant(self._service, query, now - WINDOWS_S[query.window])
        views = [view for view in wanted if view.windows[query.window]]
        jobs = [
            job_time_of(
                view, query.window, known.families.get(view.account.job_id, ""), known.levels, weight(view)
            )
            for view in views
        ]
        return _Fleet(
            as_of=now,
            missing=missing,
            jobs=len(jobs),
            time=FleetTime(jobs, left_out(query.weight)),
            between_failures_s=mean_between_failures_s(jobs),
            warm_runs=sum(verdict.kind == WARM for verdict in known.verdicts.values()),
        )

    def _all_runs(self, now: float) -> _Runs:
        """The runs of all jobs, at most `LOOKED_AGAIN_AFTER_S` old; the caller holds the lock."""
        if self._runs is None or not 0 <= now - self._runs.as_of < LOOKED_AGAIN_AFTER_S:
            self._runs = self._look(now)
        return self._runs

    def _look(self, now: float) -> _Runs:
        found, missing = meant(self._service, Filter())
        views = {view.account.job_id: view for view in found}
        runs: list[CacheRun] = []
        families: dict[str, str] = {}
        for rows in self._history.rows(views.values()):
            view = views[rows.job_id]
            caches = view.details.run_caches or ({0: view.details.caches} if view.details.caches else {})
            runs += cache_runs(view.account, rows.runs, caches, view.details.labels)
            families |= {rows.job_id: rows.runs[0].family} if rows.runs else {}
        runs.sort(key=lambda run: (-run.start, run.id))
        verdicts = judged(runs)
        return _Runs(now, missing, runs, verdicts, families, warm_levels(runs, verdicts))
