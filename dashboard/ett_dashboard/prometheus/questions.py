"""What only a server of metrics is asked: questions that no exporter answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_dashboard.client import Question
from ett_dashboard.prometheus.ranking import LABELS
from ett_dashboard.prometheus.rows import CacheTotals, JobHistory

HISTORY_PATH, CACHES_PATH = "prometheus/history", "prometheus/caches"
SLOW_S = 10.0


def history(job_id: str) -> Question[JobHistory]:
    """The effective share and the throughput of a job over time."""
    return Question(HISTORY_PATH, JobHistory, (("id", job_id),), SLOW_S)


def caches(chosen: Mapping[str, str]) -> Question[CacheTotals]:
    """What compile caches answered to some jobs."""
    given = {name: value for name in (*LABELS, "text") if (value := chosen.get(name))}
    return Question(CACHES_PATH, CacheTotals, tuple(given.items()), SLOW_S)
