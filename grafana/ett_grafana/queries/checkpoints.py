"""Queries of the board of checkpoints: what they cost, and what would be lost without them."""

from __future__ import annotations

from ett_grafana.queries.parts import CLUSTER, JOB, MODEL, RANGE, grown_in_range, latest

_BLOCKING = "ett:checkpoint_blocking_seconds:increase1h"
_COUNT = "ett:checkpoints:increase1h"

BLOCKING_MEAN = f"sum by (model) ({_BLOCKING}{{{MODEL}}}) / (sum by (model) ({_COUNT}{{{MODEL}}}) > 0)"
COUNT = f"sum by (model) ({_COUNT}{{{MODEL}}})"
FAILED = f"sum (ett:checkpoint_failures:increase1h{{{MODEL}}})"
FAILED_BY_MODEL = f"sum by (model) (ett:checkpoint_failures:increase1h{{{MODEL}}})"
AT_RISK_HOURS = f"sum (ett:unsaved_accelerator_seconds:sum{{{CLUSTER}}}) / 3600"
RISK_MOST = f"sort_desc(ett:job_unsaved_exposure_seconds:top{{{MODEL}}})"
BLOCKED_SHARE = (
    f'sum (ett:component_accelerator_seconds:sum{{window="24h", {CLUSTER}, component="checkpoint_blocking"}})'
    f' / sum (ett:component_accelerator_seconds:sum{{window="24h", {CLUSTER}}})'
)
LOST_SHARE = BLOCKED_SHARE.replace("checkpoint_blocking", "unsaved_training")
AGE = f"time() - ett_job_checkpoint_last_durable_timestamp_seconds{{{JOB}}}"
UNSAVED = f"ett_job_unsaved_exposure_seconds{{{JOB}}}"
BYTES = latest(f"ett_job_checkpoint_bytes{{{JOB}}}")
JOB_BLOCKING = (
    f"{grown_in_range(f'ett_job_checkpoint_blocking_seconds_sum{{{JOB}}}')}"
    f" / ({grown_in_range(f'ett_job_checkpoint_blocking_seconds_count{{{JOB}}}')} > 0)"
)
SLOWED = latest(f"ett_job_checkpoint_slowed_seconds{{{JOB}}}")
JOB_COUNT = grown_in_range(f"ett_job_checkpoint_blocking_seconds_count{{{JOB}}}")
JOB_FAILED = grown_in_range(f"ett_job_checkpoint_failures_total{{{JOB}}}")
INTERVAL = f"ett_job_checkpoint_interval_seconds{{{JOB}}}"
_ACTUAL = latest(f'ett_job_checkpoint_interval_seconds{{{JOB}, kind="actual"}}')
_OPTIMAL = latest(f'ett_job_checkpoint_interval_seconds{{{JOB}, kind="optimal"}}')
INTERVAL_OFF = f"{_ACTUAL} / on (job_id) {_OPTIMAL}"


def quantile(share: float) -> str:
    """A quantile of how long checkpoints blocked, over the time range."""
    buckets = f"increase(ett_fleet_checkpoint_blocking_seconds_bucket{{{CLUSTER}}}[{RANGE}])"
    return f"histogram_quantile({share}, sum by (le) ({buckets}))"
