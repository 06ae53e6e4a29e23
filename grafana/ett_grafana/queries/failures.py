"""Queries of the board of failures: what fails, what it costs, and what fails more than before."""

from __future__ import annotations

from ett_core.failures.classes import INFRASTRUCTURE, PLATFORM
from ett_core.fleet.nodes import OF_THE_NODE
from ett_grafana.config import Config
from ett_grafana.queries.parts import CLUSTER, RANGE, RATE

_NOT_OURS = f'{CLUSTER}, domain=~"{INFRASTRUCTURE}|{PLATFORM}"'
_COUNTED = f"increase(ett_fleet_failures_total{{{CLUSTER}}}[{RANGE}])"
_LOST = f"increase(ett_fleet_lost_accelerator_seconds_total{{{CLUSTER}}}[{RANGE}])"
_HOUR = f"ett:failures:increase1h{{{CLUSTER}}}"

COUNT = f"sum ({_COUNTED})"
LOST_HOURS = f"sum ({_LOST}) / 3600"
NOT_OURS = f"sum (increase(ett_fleet_failures_total{{{_NOT_OURS}}}[{RANGE}])) / ({COUNT} > 0)"
LOST_BY_CLASS = f"sort_desc((sum by (failure_class) ({_LOST}) > 0) / 3600)"
COUNT_BY_CLASS = f"sort_desc(sum by (failure_class) ({_COUNTED}) > 0)"
BY_DOMAIN = f"sum by (domain) ({_HOUR})"
BY_CLASS = f"sum by (failure_class) ({_HOUR}) > 0"
_OF_THE_NODE = f'failure_class=~"{"|".join(sorted(OF_THE_NODE))}"'
NODES = f"sort_desc(sum by (node) (max_over_time(ett_node_failures_total{{{_OF_THE_NODE}}}[{RANGE}])))"
NODES_BY_CLASS = f"sort_desc(sum by (node, failure_class) (max_over_time(ett_node_failures_total[{RANGE}])))"
FAILED_NOW = f"sum by (failure_class, cluster) (increase(ett_fleet_failures_total{{{CLUSTER}}}[{RATE}])) > 0"


def suspects(config: Config) -> str:
    """How many nodes failed often enough to be suspect."""
    return f"count ({NODES} >= {config.thresholds.node_failures}) or vector(0)"


def times_usual(config: Config) -> str:
    """Failures of a class in the last hour over their mean in its history."""
    usual = f"sum by (failure_class) (avg_over_time({_HOUR}[{config.history}]))"
    enough = config.thresholds.recurring_failures
    return f"(sum by (failure_class) ({_HOUR}) > {enough - 0.5:g}) / ({usual} > 0)"


def start_times_usual(config: Config) -> str:
    """Median time to start of a model over its own history."""
    start = f"ett:time_to_start_seconds:p50{{{CLUSTER}}}"
    return f"{start} / avg_over_time({start}[{config.history}])"
