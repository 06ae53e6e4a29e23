"""What the page of caches asks of the query API. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_dashboard.caches.rows import CacheRuns, Comparison
from ett_dashboard.client import Question

FILTERS = ("cluster", "team", "model", "scheduler", "purpose", "text", "family", "verdict")
MOST_RUNS = 300
MOST_SURPRISES = 20
SLOW_S = 10.0
"""Runs come and go slowly: they are asked for no more often than this."""


def runs(chosen: Mapping[str, str]) -> Question[CacheRuns]:
    """The latest runs of some jobs."""
    return Question("/api/v1/caches/runs", CacheRuns, _parameters(chosen, MOST_RUNS), SLOW_S)


def surprises(chosen: Mapping[str, str]) -> Question[CacheRuns]:
    """The latest of those that were expected to be warm and were not."""
    parameters = (*_parameters(chosen, MOST_SURPRISES), ("surprise", "true"))
    return Question("/api/v1/caches/runs", CacheRuns, parameters, SLOW_S)


def comparison(one: str, two: str) -> Question[Comparison]:
    """Two runs side by side."""
    return Question("/api/v1/caches/comparison", Comparison, (("one", one), ("two", two)), SLOW_S)


def _parameters(chosen: Mapping[str, str], limit: int) -> tuple[tuple[str, str], ...]:
    given = {name: value for name in FILTERS if (value := chosen.get(name))}
    return tuple({**given, "limit": str(limit)}.items())
