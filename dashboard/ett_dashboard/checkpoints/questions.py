"""What the page of checkpoints asks of the query API. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_dashboard.checkpoints.rows import Intervals
from ett_dashboard.client import Question

FILTERS = ("state", "cluster", "team", "model", "scheduler", "purpose", "text")
MOST_JOBS = 300
KEPT_S = 15.0


def intervals(chosen: Mapping[str, str]) -> Question[Intervals]:
    """The jobs whose interval costs most beyond the best."""
    given = {name: value for name in FILTERS if (value := chosen.get(name))}
    return Question("/api/v1/intervals", Intervals, tuple({**given, "limit": str(MOST_JOBS)}.items()), KEPT_S)
