"""Alerts about single jobs: for whoever owns the job."""

from __future__ import annotations

from collections.abc import Sequence

from ett_core.fleet.endings import ENDED_BY_OTHERS
from ett_core.purposes import TRAINING
from ett_grafana.alerts.alert import CRITICAL, INFO, WARNING, Alert, duration, in_state, of_one_job
from ett_grafana.config import Config, Thresholds
from ett_grafana.recording import Recorded

STARTED = "ett_job_time_to_start_seconds"
NO_TRAINING = f'ett_job_info{{purpose!~"|{TRAINING}"}}'
"""Jobs that will never begin to train: they are there for something else."""
STARTS = "ett:job_time_to_start_seconds:recent"
REQUESTS = "ett:job_compile_cache_requests:risen30m"
MISSES = "ett:job_compile_cache_misses:ratio30m"
MODEL_HITS = "ett:compile_cache_hits:ratio1h"
WARM_RATIO = 0.8
"""Hit rate that a model must have had at some time, for its caches to be expected warm."""
_JOB = "{{ $labels.job_id }}"
_WHO = "Job {{ $labels.job_id }}{{ with $labels.team }} of team {{ . }}{{ end }}"
_LASTS = "{{ $value | humanizeDuration }}"
_PAGE = "job?id={{ $labels.job_id | urlquery }}"
_FOR_A_SCRAPE_OR_TWO = "1m"


def recorded_of_jobs(config: Config) -> Sequence[Recorded]:
    """What the alerts here are computed from."""
    return (
        Recorded(
            STARTS,
            of_one_job(
                f"({STARTED} and on (job_id) (ett_job_wall_seconds - {STARTED} < 3600))"
                f' or (ett_job_wall_seconds and on (job_id) ett_job_state{{state=~"starting|compiling"}}'
                f" unless on (job_id) {STARTED} unless on (job_id) {NO_TRAINING})"
            ),
            "Time to start of jobs that began to train within the hour; of those that start, so far.",
        ),
        *_cache_series(config.thresholds),
    )


def _cache_series(limits: Thresholds) -> Sequence[Recorded]:
    total, before = (
        f"sum by (job_id, result) (ett_job_compile_cache_requests_total{when})"
        for when in ("", " offset 30m")
    )
    misses, hits = f'{REQUESTS}{{result="miss"}}', f'{REQUESTS}{{result="hit"}}'
    asked = f"({misses} + on (job_id) ({hits} or on (job_id) 0 * {misses}))"
    of_model = 'ett:compile_cache_requests:increase1h{{model!="", result=~"{}"}}'
    by_model = [f"sum by (cluster, model) ({of_model.format(each)})" for each in ("hit", "hit|miss")]
    return (
        Recorded(
            REQUESTS,
            f"({total} - ({before} or 0 * {total})) > 0",
            "Requests of a job to compile caches within 30 minutes, where there were any.",
        ),
        Recorded(
            MISSES,
            of_one_job(f"{misses} / on (job_id) ({asked} >= {limits.cache_requests})"),
            "Share of those that missed, where there were enough of them.",
        ),
        Recorded(MODEL_HITS, " / ".join(by_model), "Share of hits of the jobs of a model within an hour."),
    )


def job_alerts(config: Config) -> Sequence[Alert]:
    """All alerts about jobs."""
    limits = config.thresholds
    return (*_stuck(), *_restarts(limits), _start_slow(config), *_checkpoints(limits), _cache_cold(config))


def _stuck() -> Sequence[Alert]:
    return (
        Alert(
            name="EttJobStalled",
            expr=in_state("stalled"),
            after=_FOR_A_SCRAPE_OR_TWO,
            page=_PAGE,
            severity=CRITICAL,
            summary=f"{_JOB} makes no progress",
            description=f"{_WHO} has reported no step for longer than it ever takes. Its accelerators wait.",
        ),
        Alert(
            name="EttJobLost",
            expr=in_state("lost"),
            after=_FOR_A_SCRAPE_OR_TWO,
            page=_PAGE,
            severity=CRITICAL,
            summary=f"Nothing is heard of {_JOB}",
            description=f"{_WHO} went silent without an end: its node, its network or its launcher is gone.",
        ),
    )


def _restarts(limits: Thresholds) -> Sequence[Alert]:
    own_fault = f'ett_job_failures_in_a_row{{failure_class!~"{"|".join(sorted(ENDED_BY_OTHERS))}"}}'
    return (
        Alert(
            name="EttCrashLoop",
            expr=of_one_job(f"max_over_time({own_fault}[10m])", "failure_class")
            + f" >= {limits.crash_loop_attempts}",
            page=_PAGE,
            severity=CRITICAL,
            summary=f"{_JOB} fails over and over: {{{{ $labels.failure_class }}}}",
            description=f"{_WHO} failed {{{{ $value }}}} times in a row by {{{{ $labels.failure_class }}}} "
            "and got no further in between. Trying again as it is will hardly help.",
        ),
        Alert(
            name="EttRestartStorm",
            expr=f"{of_one_job('changes(ett_job_attempt[1h])')} >= {limits.restarts_an_hour}",
            page=_PAGE,
            severity=WARNING,
            summary=f"{_JOB} is restarted again and again",
            description=f"{_WHO} was started {{{{ $value }}}} times within an hour, whatever the causes.",
        ),
        Alert(
            name="EttRecoverySlow",
            expr=in_state("recovering"),
            after=duration(limits.recover_s),
            page=_PAGE,
            severity=WARNING,
            summary=f"{_JOB} does not come back",
            description=f"{_WHO} failed and has not trained again for {limits.recover_s / 60:.0f} minutes.",
        ),
    )


def _start_slow(config: Config) -> Alert:
    limits = config.thresholds
    usual = f'quantile_over_time(0.5, ett:time_to_start_seconds:p50{{model!=""}}[{config.history}] offset 1h)'
    return Alert(
        name="EttStartSlow",
        expr=f"{STARTS} > on (cluster, model) group_left () (60 + {limits.slower_factor:g} * {usual})"
        f" or ({STARTS} > {limits.start_s:g} unless on (cluster, model) {usual})",
        page=_PAGE,
        severity=WARNING,
        summary=f"{_JOB} starts slowly",
        description=f"{_WHO} took, or has been taking, {_LASTS} to its first step: "
        f"more than {limits.slower_factor:g} times what is usual for {{{{ $labels.model }}}}, "
        f"or, of a model without a history, more than {limits.start_s / 60:.0f} minutes.",
    )


def _checkpoints(limits: Thresholds) -> Sequence[Alert]:
    exposed, factor = "ett_job_unsaved_exposure_seconds", limits.interval_factor
    actual, optimal = (
        f'ett_job_checkpoint_interval_seconds{{kind="{kind}"}}' for kind in ("actual", "optimal")
    )
    far = f"{actual} / ignoring (kind) {optimal}"
    return (
        Alert(
            name="EttUnsavedExposureHigh",
            expr=of_one_job(
                f"{exposed} > {limits.unsaved_exposure_s:g}"
                f" unless on (job_id) {exposed} < ignoring (kind) {factor:g} * {optimal}"
            ),
            after="5m",
            page=_PAGE,
            severity=WARNING,
            summary=f"{_JOB} would lose {_LASTS} of training",
            description=f"{_WHO} has saved nothing durable for {_LASTS} of training.",
        ),
        Alert(
            name="EttCheckpointFailing",
            expr=f"{of_one_job('increase(ett_job_checkpoint_failures_total[1h])')}"
            f" >= {limits.checkpoint_failures}",
            after="2m",
            page=_PAGE,
            severity=CRITICAL,
            summary=f"Checkpoints of {_JOB} fail",
            description=f"{_WHO} lost {{{{ $value | printf `%.0f` }}}} checkpoints within an hour. "
            "It may train on, but what it trains is not safe.",
        ),
        Alert(
            name="EttCheckpointIntervalFarFromOptimal",
            expr=f"{of_one_job(far)} > {factor:g} or {of_one_job(far)} < {1 / factor:g}",
            after="1h",
            page=_PAGE,
            severity=INFO,
            summary=f"{_JOB} saves at a costly interval",
            description=f"{_WHO} saves {{{{ $value | printf `%.2g` }}}} times as far apart as would waste "
            "least, given what its checkpoints and failures cost.",
        ),
    )


def _cache_cold(config: Config) -> Alert:
    limits = config.thresholds
    cold = f"{MISSES} > {1 - limits.cache_hit_ratio:g}"
    was_warm = f"max_over_time({MODEL_HITS}[{config.history}] offset 1h) > {WARM_RATIO:g}"
    return Alert(
        name="EttCompileCacheCold",
        expr=f"({cold} and on (job_id) ett_job_attempt > 0) or ({cold} and on (cluster, model) {was_warm})",
        after="5m",
        severity=WARNING,
        page=_PAGE,
        summary=f"{_JOB} compiles what should be cached",
        description=f"{_WHO} misses {{{{ $value | humanizePercentage }}}} of its requests to compile caches, "
        "although it, or other jobs of its model, had warmed them.",
    )
