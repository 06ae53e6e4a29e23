"""Queries of the board of the fleet: recorded series and those of the fleet, never those of every job."""

from __future__ import annotations

from ett_grafana.config import Config
from ett_grafana.queries.parts import CLUSTER, TEAM, effective_share, group_share

SECONDS = "ett:component_accelerator_seconds:sum"
IN_WINDOW = f'window="$window", {CLUSTER}'
BUSY = "checkpointing|compiling|evaluating|publishing|starting|training"

EFFECTIVE = effective_share(SECONDS, IN_WINDOW)
EFFECTIVE_OF_CLUSTERS = f"ett:effective:ratio{{{IN_WINDOW}}}"
IN_TROUBLE = f"count (ett:job_trouble:state{{{TEAM}}}) or vector(0)"
AT_WORK = f'sum (ett:jobs:sum{{state=~"{BUSY}", {TEAM}}}) or vector(0)'
ACCELERATORS = f"sum (ett:accelerators:sum{{{TEAM}}})"
AT_RISK_HOURS = f"sum (ett:unsaved_accelerator_seconds:sum{{{TEAM}}}) / 3600"
FAILURES_HOUR = f"sum (ett:failures:increase1h{{{CLUSTER}}}) or vector(0)"
JOBS_BY_STATE = f"sum by (state) (ett:jobs:sum{{{TEAM}}})"
TROUBLE = f"ett:job_trouble:state{{{TEAM}}}"
LOST_MOST = f"sort_desc(ett:job_lost_seconds:top{{{TEAM}}} / 3600)"
_LOST_HOUR = f"ett:lost_accelerator_seconds:increase1h{{{CLUSTER}}}"
LOST_BY_CLASS_HOURS = f"(sum by (failure_class) ({_LOST_HOUR}) > 0) / 3600"
FINAL_BY_TEAM = f"sum by (team) (ett:final_accelerator_seconds:rate1h{{{TEAM}}})"


def group(name: str) -> str:
    """Share of a group of components over time."""
    return group_share(SECONDS, IN_WINDOW, name)


def losses(config: Config) -> str:
    """Accelerator-hours by component, training left out, the largest first."""
    lost = f'{SECONDS}{{{IN_WINDOW}, component!="training"}}'
    return f"sort_desc(topk({config.jobs_listed}, sum by (component) ({lost})) / 3600)"


def quantile(share: float, family: str) -> str:
    """A quantile of a histogram of the fleet, over the chosen window."""
    return f"histogram_quantile({share}, sum by (le) (increase({family}_bucket{{{CLUSTER}}}[$window])))"
