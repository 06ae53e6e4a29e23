"""Series that rules record, so that boards of a fleet never read the series of every job.

`recorded(config)` is the one list of them: the rule files are written from it and the boards
name its series. Amounts are summed over exporters before anything is divided.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ett_core.accounting.state import OVER
from ett_core.components import TRAINING
from ett_grafana.config import Config
from ett_grafana.queries.parts import effective_share, grown

TROUBLE = ("lost", "stalled", "recovering", "unobserved")
"""States of running jobs that somebody should look at."""
WHO = ("job_name", "team", "model", "cluster")
"""What a recorded series of one job says about it, beside `job_id`."""


class Recorded(msgspec.Struct, frozen=True):
    """One recorded series: what it is called, how it is computed, what it means."""

    record: str
    expr: str
    meaning: str


JOB_INFO = Recorded(
    "ett:job_info:one",
    "topk by (job_id) (1, ett_job_info)",
    "What describes a job, once a job even while two exporters show it.",
)


def of_job(expr: str, *labels: str) -> str:
    """An expression by `job_id`, with labels that describe the job.

    >>> of_job("ett_job_step", "team")
    'ett_job_step * on (job_id) group_left (team) ett:job_info:one'
    """
    return f"{expr} * on (job_id) group_left ({', '.join(labels)}) {JOB_INFO.record}"


def recorded(config: Config) -> Sequence[Recorded]:
    """Every recorded series, in the order in which the rule file has them."""
    return (JOB_INFO, *_fleet(), *_failures(), *_by_model(), *_of_jobs(config))


def _fleet() -> Sequence[Recorded]:
    held = f'(ett_job_accelerators unless on (job_id) ett_job_state{{state=~"{"|".join(OVER)}"}})'
    return (
        Recorded(
            "ett:component_accelerator_seconds:sum",
            "sum by (window, cluster, component) (ett_fleet_component_seconds)",
            "Held accelerator time by component in a trailing window, over all exporters.",
        ),
        Recorded(
            "ett:effective:ratio",
            effective_share("ett_fleet_component_seconds", "", " by (window, cluster)"),
            "Effective share of held accelerator time in a trailing window; none where nothing was observed.",
        ),
        Recorded(
            "ett:jobs:sum", "sum by (state, cluster, team) (ett_fleet_jobs)", "Jobs on /metrics by state."
        ),
        Recorded(
            "ett:accelerators:sum",
            f"sum by (cluster, team) ({of_job(held, 'cluster', 'team')})",
            "Accelerators of the jobs that are not over.",
        ),
        Recorded(
            "ett:unsaved_accelerator_seconds:sum",
            "sum by (cluster, team) ("
            + of_job("ett_job_unsaved_exposure_seconds * ett_job_accelerators", "cluster", "team")
            + ")",
            "Accelerator time that would be lost if every job died now.",
        ),
        Recorded(
            "ett:final_accelerator_seconds:rate1h",
            "sum by (cluster, team, component) (rate(ett_fleet_final_accelerator_seconds_total[1h]))",
            "Accelerators on each component in the last hour, of time that is final.",
        ),
    )


def _failures() -> Sequence[Recorded]:
    by = "sum by (failure_class, domain, cluster)"
    return (
        Recorded(
            "ett:failures:increase1h",
            f"{by} (increase(ett_fleet_failures_total[1h]))",
            "Failed attempts whose cause settled in the last hour.",
        ),
        Recorded(
            "ett:lost_accelerator_seconds:increase1h",
            f"{by} (increase(ett_fleet_lost_accelerator_seconds_total[1h]))",
            "Held accelerator time that failures cost in the last hour.",
        ),
    )


def _by_model() -> Sequence[Recorded]:
    def summed(expr: str, *more: str) -> str:
        labels = ("cluster", "model")
        return f"sum by ({', '.join((*labels, *more))}) ({of_job(expr, *labels)})"

    def hour(name: str) -> str:
        return grown(name, "1h")

    return (
        Recorded(
            "ett:time_to_start_seconds:p50",
            "quantile by (cluster, model) (0.5, "
            + of_job("ett_job_time_to_start_seconds", "cluster", "model")
            + ")",
            "Median time to start of the jobs of a model.",
        ),
        Recorded(
            "ett:compile_cache_requests:increase1h",
            summed(hour("ett_job_compile_cache_requests_total"), "cache", "result"),
            "Requests to compile caches in the last hour.",
        ),
        Recorded(
            "ett:compile_seconds:increase1h",
            summed(hour("ett_job_compile_seconds_total"), "stage"),
            "Compile time in the last hour.",
        ),
        Recorded(
            "ett:compile_cache_saved_seconds:increase1h",
            summed(hour("ett_job_compile_cache_saved_seconds_total")),
            "Compile time that caches saved in the last hour.",
        ),
        Recorded(
            "ett:checkpoint_blocking_seconds:increase1h",
            summed(hour("ett_job_checkpoint_blocking_seconds_sum")),
            "Time that checkpoints blocked trainers in the last hour.",
        ),
        Recorded(
            "ett:checkpoints:increase1h",
            summed(hour("ett_job_checkpoint_blocking_seconds_count")),
            "Checkpoints in the last hour.",
        ),
        Recorded(
            "ett:checkpoint_failures:increase1h",
            summed(hour("ett_job_checkpoint_failures_total")),
            "Checkpoints of the last hour that will never be durable.",
        ),
    )


def _of_jobs(config: Config) -> Sequence[Recorded]:
    training = f'ett_job_component_seconds{{component="{TRAINING}"}}'
    lost = f"(ett_job_wall_seconds - on (job_id) {training} or on (job_id) ett_job_wall_seconds)"
    exposed = of_job("(ett_job_unsaved_exposure_seconds > 0)", *WHO)
    return (
        Recorded(
            "ett:job_trouble:state",
            of_job(f'ett_job_state{{state=~"{"|".join(TROUBLE)}"}}', *WHO),
            "Running jobs that somebody should look at; always 1.",
        ),
        Recorded(
            "ett:job_lost_seconds:top",
            f"topk({config.jobs_listed}, {of_job(lost, *WHO)})",
            "Wall time not spent on training that counts, of the jobs that lost most.",
        ),
        Recorded(
            "ett:job_unsaved_exposure_seconds:top",
            f"topk({config.jobs_listed}, {exposed})",
            "Training that would be lost if the job died now, of the jobs that risk most.",
        ),
    )
