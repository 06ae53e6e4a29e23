"""Answers what the pages ask from the series of a server of metrics instead of the API of an exporter.

Each question becomes a few queries, each of which hands out a bounded number of series however many jobs
there are: first which jobs (the server orders them), then what is known of these. What no series tells is
a `LacksError`. Shared by all threads of the app; it keeps nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

from ett_core.accounting.state import OVER
from ett_core.urgency import TROUBLE_SEVERITY, severity
from ett_dashboard.checkpoints.rows import Intervals
from ett_dashboard.client import Question, UnknownJobError
from ett_dashboard.failures.rows import Failures
from ett_dashboard.fleet.rows import FleetWindow
from ett_dashboard.prometheus import caches, failures, fleet_time, intervals, jobs, ranking
from ett_dashboard.prometheus.answers import Line, Sample, by_label, lacks
from ett_dashboard.prometheus.engine import Engine
from ett_dashboard.prometheus.promql import Series, among, equals
from ett_dashboard.prometheus.questions import CACHES_PATH, HISTORY_PATH
from ett_dashboard.prometheus.rows import CacheTotals, JobHistory
from ett_dashboard.rows import FleetAnswer, Group, Groups, Job, JobDetail, JobsTogether
from ett_dashboard.windows import WINDOWS_S
from ett_dashboard.words import HOUR_S

ROW = TypeVar("ROW")
Asked = Mapping[str, str]

MOST_JOBS = 1000
"""No answer has more jobs."""
AT_ONCE = 200
"""Jobs whose series are read with one query."""
MOST_SAVERS, MOST_COMPILERS, MOST_WORDS = 200, 40, 200
FOUND_FOR = ("15m:1s", "7d:1m")
"""How far back, and how closely, a job is looked for that has left the metrics."""
HISTORY_POINTS, LEAST_STEP_S, LONGEST_HISTORY_S = 240, 15.0, 30 * 86_400.0
LEAST_RATE_S = 150.0
"""A rate is over at least so much: ranks but the first report once a minute, servers scrape as seldom."""


class PrometheusApi:
    """What the pages need, from one server of metrics.

    Args:
        engine: the server.
        matchers: matchers of labels that every series of the fleet bears.
        clock: Unix seconds, for answers that no series stands behind.
    """

    def __init__(
        self, engine: Engine, matchers: Sequence[str] = (), clock: Callable[[], float] = time.time
    ) -> None:
        self._engine, self._series, self._clock = engine, Series(tuple(matchers)), clock
        self._answers: Mapping[tuple[str, type], Callable[[Asked], object]] = {
            ("/api/v1/jobs", FleetAnswer): self._jobs,
            ("/api/v1/fleet", FleetWindow): self._fleet,
            ("/api/v1/fleet", Groups): self._groups,
            ("/api/v1/failures", Failures): self._failures,
            ("/api/v1/intervals", Intervals): self._intervals,
            (HISTORY_PATH, JobHistory): self._history,
            (CACHES_PATH, CacheTotals): self._caches,
        }

    def job(self, job_id: str) -> JobDetail:
        """One job as far as its series tell; one that has left them as it was at last.

        Raises:
            UnknownJobError: no series is of such a job.
            ExporterError: no usable answer.
        """
        query = self._series.of_jobs([job_id])
        samples = self._engine.instant(query)
        if not samples:
            last_seen = self._last_seen(job_id)
            samples = [] if last_seen is None else self._engine.instant(query, last_seen)
        known = jobs.figures_of_jobs(samples).get(job_id)
        found = None if known is None else jobs.detail(job_id, known, self._moment(samples))
        if found is None:
            raise UnknownJobError(f"{self._engine.url} has no series of a job of this name")
        return found

    def ask(self, question: Question[ROW]) -> ROW:
        """The answer to any question.

        Raises:
            LacksError: no series tells.
            ExporterError: no usable answer.
        """
        answer = self._answers.get((question.path, question.answer))
        if answer is None:
            raise lacks("this")
        return cast("ROW", answer(dict(question.parameters)))

    def _jobs(self, asked: Asked) -> FleetAnswer:
        most = min(int(asked.get("limit", MOST_JOBS)), MOST_JOBS)
        sort = asked.get("sort", "")
        names_first = sort.removeprefix("-") == ranking.BY_NAME
        query = ranking.first(self._series, asked, MOST_JOBS if names_first else most)
        found = self._engine.instant(query)
        ids = [
            sample.labels["job_id"]
            for sample in sorted(found, key=lambda one: one.value, reverse=ranking.is_falling(sort))
        ]
        if names_first:
            ids = self._by_name(ids, falling=sort.startswith("-"))[:most]
        as_of = self._moment(found)
        together = self._together(asked)
        return FleetAnswer(
            as_of=as_of,
            jobs=[row for row, _ in self._rows(ids, as_of)],
            total=sum(together.states.values()),
            together=together,
        )

    def _rows(self, ids: Sequence[str], as_of: float) -> Iterator[tuple[Job, jobs.Figures]]:
        for begin in range(0, len(ids), AT_ONCE):
            part = ids[begin : begin + AT_ONCE]
            samples = self._engine.instant(self._series.of_jobs(part))
            known = jobs.figures_of_jobs(samples)
            for job_id in part:
                row = jobs.job(job_id, known[job_id], as_of) if job_id in known else None
                if row is not None:
                    yield row, known[job_id]

    def _by_name(self, ids: Sequence[str], *, falling: bool) -> list[str]:
        samples = self._engine.instant(self._series.of("ett_job_info", among("job_id", ids))) if ids else []
        names = {one.labels["job_id"]: one.labels.get("job_name", "").casefold() for one in samples}
        return sorted(ids, key=lambda job_id: names.get(job_id) or job_id.casefold(), reverse=falling)

    def _together(self, asked: Asked) -> JobsTogether:
        members = ranking.chosen(self._series, asked)
        by_state = f"max by (job_id, state) ({self._series.of('ett_job_state')})"
        counted = self._engine.instant(f"count by (state) ({ranking.of(by_state, members)})")
        exposed = self._series.a_job("ett_job_unsaved_exposure_seconds")
        over = self._series.of("ett_job_state", among("state", OVER))
        at_risk = self._engine.instant(f"sum ({ranking.of(exposed, members)} unless on (job_id) {over})")
        states = {state: round(count) for state, count in sorted(by_label(counted, "state").items())}
        live = {state: count for state, count in states.items() if state not in OVER}
        return JobsTogether(
            states=states,
            live=sum(live.values()),
            in_trouble=sum(n for state, n in live.items() if severity(state) >= TROUBLE_SEVERITY),
            unsaved_exposure_s=sum(sample.value for sample in at_risk),
        )

    def _fleet(self, asked: Asked) -> FleetWindow:
        if "window" in asked:
            samples = self._engine.instant(fleet_time.within(self._series, asked))
            return fleet_time.window(samples, WINDOWS_S[asked["window"]], self._moment(samples))
        query, number = fleet_time.hourly(self._series, asked), fleet_time.hours(asked)
        now = self._now()
        lines = self._engine.over_time(query, now - (number - 1) * HOUR_S, now, HOUR_S)
        return fleet_time.over_time(lines, int(asked["buckets"]), number, now)

    def _groups(self, asked: Asked) -> Groups:
        label = asked["group_by"]
        counted = f"count by ({label}) ({self._series.of('ett_job_info')})"
        samples = self._engine.instant(f"topk({MOST_WORDS}, {counted})")
        return Groups([Group(sample.labels.get(label, "")) for sample in samples])

    def _failures(self, asked: Asked) -> Failures:
        window, parts = asked["window"], int(asked["buckets"])
        within_s, size_s = WINDOWS_S[window], WINDOWS_S[window] / parts

        def grown(name: str, seconds: float) -> str:
            return failures.grown(self._series, name, asked, seconds)

        counted = self._engine.instant(grown(failures.COUNTED, within_s))
        lost = self._engine.instant(grown(failures.LOST, within_s))
        now = self._moment(counted)
        drawn = [
            self._engine.over_time(grown(name, size_s), now - within_s + size_s, now, size_s)
            for name in (failures.COUNTED, failures.LOST)
        ]
        over_time = failures.buckets(drawn[0], drawn[1], parts, size_s, now)
        return failures.failures(counted, lost, over_time, asked.get("order", "lost"), now)

    def _intervals(self, asked: Asked) -> Intervals:
        found = self._engine.instant(ranking.dearest_savers(self._series, asked, MOST_SAVERS))
        as_of = self._moment(found)
        rows = [
            row
            for job, known in self._rows([sample.labels["job_id"] for sample in found], as_of)
            if (row := intervals.interval_row(job, known)) is not None
        ]
        return Intervals(
            as_of=as_of,
            jobs=sorted(rows, key=lambda row: (-row.excess_accelerator_s, row.job_id)),
            total=len(rows),
        )

    def _history(self, asked: Asked) -> JobHistory:
        job = self.job(asked["id"])
        length_s = min(job.wall_s, LONGEST_HISTORY_S)
        step_s = max(length_s / HISTORY_POINTS, LEAST_STEP_S)
        of_job = equals("job_id", job.job_id)
        ratios = self._series.of("ett_job_effective_ratio", of_job, among("window", ("all", "1h")))
        samples = self._series.of("ett_job_samples_total", of_job)
        begin = job.known_at - length_s // step_s * step_s

        def drawn(query: str) -> Sequence[Line]:
            return self._engine.over_time(query, begin, job.known_at, step_s)

        rates = drawn(f"max by (job_id) (rate({samples}[{max(step_s, LEAST_RATE_S):.0f}s]))")
        return JobHistory(
            as_of=job.known_at,
            effective={
                line.labels.get("window", ""): line.points for line in drawn(f"max by (window) ({ratios})")
            },
            samples_per_s=rates[0].points if rates else (),
        )

    def _caches(self, asked: Asked) -> CacheTotals:
        found = self._engine.instant(caches.compiled_most(self._series, asked, MOST_COMPILERS))
        as_of = self._moment(found)
        ids = [one.labels["job_id"] for one in sorted(found, key=lambda one: -one.value)]
        rows = list(self._rows(ids, as_of))
        recorded = caches.recorded(self._series, asked)
        asked_for = self._engine.instant(recorded[0]) if recorded else []
        if recorded and asked_for:
            saved = self._engine.instant(recorded[2])
            return caches.of_all(
                rows,
                as_of,
                requests=jobs.requests(asked_for),
                stages=by_label(self._engine.instant(recorded[1]), "stage"),
                saved_s=sum(sample.value for sample in saved),
            )
        return caches.of_some(rows, as_of)

    def _last_seen(self, job_id: str) -> float | None:
        """When the latest series of a job that is there no more had its last sample."""
        moment = f"timestamp({self._series.of(jobs.WALL, equals('job_id', job_id))})"
        for looked_back in FOUND_FOR:
            found = self._engine.instant(f"max (max_over_time({moment}[{looked_back}]))")
            if found:
                return found[0].value
        return None

    def _moment(self, samples: Sequence[Sample]) -> float:
        """The moment for which an answer stands, by the clock of the server."""
        return max((sample.at for sample in samples), default=0.0) or self._clock()

    def _now(self) -> float:
        return self._moment(self._engine.instant("vector(0)"))
