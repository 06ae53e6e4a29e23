"""How jobs save and how they should: from views to rows, pure."""

from __future__ import annotations

from ett_core.components import CHECKPOINT_BLOCKING, UNSAVED_TRAINING
from ett_core.intervals import (
    Costs,
    costs_of_job,
    interval_range_s,
    measured_s,
    optimal_interval_s,
    wasted,
)
from ett_exporter.lever_types import IntervalRow
from ett_exporter.views import JobView


def costs_of(view: JobView) -> Costs | None:
    """What the saves and the failures of a job cost so far; None of one that never saved."""
    details = view.details
    return costs_of_job(
        view.account.components,
        saves=details.checkpoint_count,
        blocking_s=details.checkpoint_blocking_s,
        failures=view.account.loop_failures,
        upload_s=details.checkpoint_upload_s or 0.0,
        slowed_s=details.checkpoint_slowed_s,
    )


def best_interval_s(costs: Costs | None) -> float | None:
    """The time between checkpoints that would have wasted least; None where nothing failed or saved."""
    return None if costs is None else optimal_interval_s(costs)


def excess_accelerator_s(view: JobView, costs: Costs) -> float:
    """What saves and failures took more than they would at the best interval; 0 where none is known."""
    if not costs.failures:
        return 0.0
    more_s = _measured_s(view, costs) - wasted(costs).total_s
    return max(more_s, 0.0) * view.accelerator_weight


def interval_row(view: JobView, costs: Costs) -> IntervalRow:
    """One job that saves."""
    account, details = view.account, view.details
    best_s = optimal_interval_s(costs)
    shortest_s, longest_s = interval_range_s(costs)
    components = account.components
    recovery_s = sum(s for name, s in components.items() if name.startswith("recover."))
    return IntervalRow(
        job_id=account.job_id,
        job_name=view.label("job_name") or account.job_id,
        team=view.label("team"),
        model=view.label("model"),
        cluster=view.label("cluster"),
        state=account.state,
        finished=account.finished,
        accelerators=view.accelerator_weight,
        saves=details.checkpoint_count,
        failures=int(costs.failures),
        wall_s=account.wall_s,
        loop_s=costs.train_s,
        interval_s=details.checkpoint_interval_s or costs.train_s / details.checkpoint_count,
        blocking_s=costs.blocking_s,
        slowed_s=details.checkpoint_slowed_s,
        upload_s=details.checkpoint_upload_s,
        blocked_s=components.get(CHECKPOINT_BLOCKING, 0.0),
        unsaved_s=components.get(UNSAVED_TRAINING, 0.0),
        recovery_s=recovery_s,
        best_s=best_s,
        shortest_s=shortest_s,
        longest_s=longest_s,
        wasted_percent=100 * _measured_s(view, costs) / costs.train_s,
        best_percent=None if best_s is None else wasted(costs, best_s).percent,
        excess_accelerator_s=excess_accelerator_s(view, costs),
    )


def _measured_s(view: JobView, costs: Costs) -> float:
    """Seconds that saves blocked and slowed, and seconds of training that failures took."""
    return measured_s(view.account.components, costs, view.details.checkpoint_count)
