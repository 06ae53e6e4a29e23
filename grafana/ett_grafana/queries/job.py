"""Queries of the board of one job, or of the few that are chosen."""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.accounting import STATES
from ett_grafana.queries.parts import JOB, RATE, effective_share, group_share, grown_in_range, latest

COMPONENT_SECONDS = "ett_job_component_seconds"

CODES: Mapping[int, str] = dict(enumerate(STATES, 1))
"""The number that stands for a state in the panel of states."""

STATE = " or ".join(
    f'max by (job_id) (ett_job_state{{{JOB}, state="{state}"}}) * {code}' for code, state in CODES.items()
)
EFFECTIVE = effective_share(COMPONENT_SECONDS, JOB, " by (job_id)")
EFFECTIVE_BY_WINDOW = f"ett_job_effective_ratio{{{JOB}}}"
UNSAVED = f"ett_job_unsaved_exposure_seconds{{{JOB}}}"
LOST = f"ett_job_unsaved_training_seconds{{{JOB}}}"
TO_START = f"ett_job_time_to_start_seconds{{{JOB}}}"
TO_RECOVER = (
    f"{grown_in_range(f'ett_job_time_to_recover_seconds_sum{{{JOB}}}')}"
    f" / ({grown_in_range(f'ett_job_time_to_recover_seconds_count{{{JOB}}}')} > 0)"
)
SINCE_PROGRESS = f"time() - ett_job_last_progress_timestamp_seconds{{{JOB}}}"
ATTEMPT = f"ett_job_attempt{{{JOB}}}"
STEP = f"ett_job_step{{{JOB}}}"
FAILURES = f"sum by (job_id, domain) ({grown_in_range(f'ett_job_failures_total{{{JOB}}}')})"
IN_A_ROW = f"ett_job_failures_in_a_row{{{JOB}}}"
BY_COMPONENT = f"sort_desc(sum by (component) ({latest(f'{COMPONENT_SECONDS}{{{JOB}}}')}))"
WALL = f"ett_job_wall_seconds{{{JOB}}}"
HELD = f"ett_job_held_seconds{{{JOB}}}"
SAMPLES = f"rate(ett_job_samples_total{{{JOB}}}[{RATE}])"
ACCELERATORS = f"ett_job_accelerators{{{JOB}}}"
INFO = (
    "max by (job_id, job_name, team, model, cluster, accelerator_type, scheduler, purpose)"
    f" ({latest(f'ett_job_info{{{JOB}}}')})"
)
INTERVAL = f"ett_job_checkpoint_interval_seconds{{{JOB}}}"
FAILED_NOW = f"sum by (job_id, domain) (increase(ett_job_failures_total{{{JOB}}}[{RATE}])) > 0"
RESTARTED_NOW = f"changes(ett_job_attempt{{{JOB}}}[{RATE}]) > 0"


def group(name: str) -> str:
    """Share of a group of components over time."""
    return group_share(COMPONENT_SECONDS, JOB, name)
