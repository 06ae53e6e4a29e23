"""Figures of jobs to how they save and should. Pure.

Uploads are in no metric: the best interval does not depend on them, what it would waste does. Nor is the
number of failures that struck in the loop, but the best interval that the exporter tells was made of it.
"""

from __future__ import annotations

from msgspec.structs import replace

from ett_core.components import CHECKPOINT_BLOCKING, UNSAVED_TRAINING
from ett_core.intervals import (
    Costs,
    costs_of_job,
    interval_range_s,
    measured_s,
    optimal_interval_s,
    wasted,
)
from ett_dashboard.checkpoints.rows import IntervalRow
from ett_dashboard.prometheus.jobs import Figures
from ett_dashboard.rows import Job

INTERVAL = "ett_job_checkpoint_interval_seconds"


def interval_row(job: Job, figures: Figures) -> IntervalRow | None:
    """How a job saves; None of one that never saved."""
    saves, blocking_s = job.checkpoint_count or 0, job.checkpoint_blocking_s or 0.0
    slowed_s = figures.of("ett_job_checkpoint_slowed_seconds")
    once = costs_of_job(job.components, saves=saves, blocking_s=blocking_s, failures=1, slowed_s=slowed_s)
    if once is None:
        return None
    intervals = figures.by(INTERVAL, "kind")
    costs = replace(once, failures=failures_behind(once, intervals.get("optimal")))
    best_s = optimal_interval_s(costs)
    shortest_s, longest_s = interval_range_s(costs)
    took_s = measured_s(job.components, costs, saves)
    best = None if best_s is None else wasted(costs, best_s)
    excess_s = 0.0 if best is None else max(took_s - best.total_s, 0.0)
    accelerators = job.accelerators or 1
    return IntervalRow(
        job_id=job.job_id,
        job_name=job.title,
        team=job.team or "",
        model=job.model or "",
        cluster=job.cluster or "",
        state=job.state,
        finished=job.finished,
        accelerators=accelerators,
        saves=saves,
        failures=int(costs.failures),
        wall_s=job.wall_s,
        loop_s=costs.train_s,
        interval_s=intervals.get("actual") or costs.train_s / saves,
        blocking_s=costs.blocking_s,
        slowed_s=slowed_s,
        blocked_s=job.components.get(CHECKPOINT_BLOCKING, 0.0),
        unsaved_s=job.components.get(UNSAVED_TRAINING, 0.0),
        recovery_s=sum(s for name, s in job.components.items() if name.startswith("recover.")),
        best_s=best_s,
        shortest_s=shortest_s,
        longest_s=longest_s,
        wasted_percent=100 * took_s / costs.train_s,
        best_percent=None if best is None else best.percent,
        excess_accelerator_s=excess_s * accelerators,
    )


def failures_behind(once: Costs, best_s: float | None) -> int:
    """The failures by which an interval is the best one, of costs with a single one; 0 where none is.

    >>> once = Costs(blocking_s=10.0, failures=1, train_s=7200.0)
    >>> failures_behind(once, 154.92), failures_behind(once, None)
    (6, 0)
    """
    of_one_s = optimal_interval_s(once)
    return 0 if not best_s or of_one_s is None else round((of_one_s / best_s) ** 2)
