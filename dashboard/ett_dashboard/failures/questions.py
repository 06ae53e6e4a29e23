"""What the pages of failures and regressions ask of the query API. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_dashboard.client import Question, in_path
from ett_dashboard.failures.rows import FailureDetail, Failures, Nodes, Regressions
from ett_dashboard.regressions.rows import Families, Runs

BUCKETS: Mapping[str, int] = {"1h": 12, "24h": 24, "7d": 28, "30d": 30, "90d": 45}
"""Windows with the number of equal parts in which failures are shown over each."""
OF_JOBS = ("cluster", "team", "model", "scheduler", "purpose", "text")
"""Filters that choose jobs; those of failures choose among their failures, too."""
OF_FAILURES = (*OF_JOBS, "failure_class", "domain", "node")
SLOW_S = 30.0
"""What became worse, and which nodes are suspect, is asked again no more often than this."""
CLASSES_S = 30.0
"""The same for the classes of failures beside other things."""
MOST_LISTED = 300
MOST_NODES = 8
MOST_RUNS = 2000


def failures(window: str, order: str, chosen: Mapping[str, str]) -> Question[Failures]:
    """Failures of a window with their classes, largest first by `order` (`lost` or `count`)."""
    more = {"group_by": "failure_class", "order": order, "buckets": str(BUCKETS[window])}
    return Question(
        "/api/v1/failures",
        Failures,
        _parameters(window, chosen, OF_FAILURES, limit=str(MOST_LISTED), **more),
    )


def every(window: str, chosen: Mapping[str, str]) -> Question[Failures]:
    """All failures of a window, for pages of them."""
    parameters = _parameters(window, chosen, OF_FAILURES, group_by="failure_class", order="lost", buckets="1")
    return Question("/api/v1/failures", Failures, parameters)


def classes(window: str, chosen: Mapping[str, str]) -> Question[Failures]:
    """What failures of a window lost by class, without the failures themselves."""
    parameters = _parameters(
        window, chosen, OF_JOBS, limit="1", group_by="failure_class", order="lost", buckets="1"
    )
    return Question("/api/v1/failures", Failures, parameters, CLASSES_S)


def failure(failure_id: str) -> Question[FailureDetail]:
    """One failure with its evidence."""
    return Question(f"/api/v1/failures/{in_path(failure_id)}", FailureDetail)


def nodes(window: str, chosen: Mapping[str, str]) -> Question[Nodes]:
    """Nodes at which failures point."""
    parameters = _parameters(window, chosen, OF_JOBS, limit=str(MOST_NODES))
    return Question("/api/v1/nodes", Nodes, parameters, SLOW_S)


def regressions(window: str, chosen: Mapping[str, str]) -> Question[Regressions]:
    """What became worse."""
    return Question("/api/v1/regressions", Regressions, _parameters(window, chosen, OF_JOBS), SLOW_S)


def runs(window: str, chosen: Mapping[str, str], family: str) -> Question[Runs]:
    """The latest runs of a family; of all families where it is empty."""
    of_family = {"family": family} if family else {}
    return Question(
        "/api/v1/runs", Runs, _parameters(window, chosen, OF_JOBS, limit=str(MOST_RUNS), **of_family), SLOW_S
    )


def families(window: str, chosen: Mapping[str, str]) -> Question[Families]:
    """Families with what is usual in each."""
    return Question("/api/v1/families", Families, _parameters(window, chosen, OF_JOBS), SLOW_S)


def _parameters(
    window: str, chosen: Mapping[str, str], names: tuple[str, ...], **more: str
) -> tuple[tuple[str, str], ...]:
    given = {name: value for name in names if (value := chosen.get(name))}
    return tuple({"window": window, **given, **more}.items())
