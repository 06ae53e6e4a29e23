"""What the verdict is given beside the exporter's answer: an account of the journals, the series.

Reads the journal files and the text of /metrics; asks the exporter nothing else.
"""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from ett_cli.journals import read_journals
from ett_core.accounting import JobAccount, JobFold


def account_of_journals(directory: Path, job_id: str, now: float) -> JobAccount | None:
    """The account of a job computed anew from its journals; None where they hold no event of it."""
    fold = JobFold(job_id)
    for decoded in read_journals([str(directory)]):
        fold.add(event for event in decoded.events if event.job_id == job_id)
    return fold.account(now)


def component_series(metrics: str, job_id: str) -> dict[str, float]:
    """Seconds by component of a job on a page of /metrics.

    Raises:
        ValueError: the page is not in the text format of Prometheus.
    """
    return {
        sample.labels["component"]: sample.value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == "ett_job_component_seconds" and sample.labels["job_id"] == job_id
    }
