"""What a report reads beside what the pages do, as immutable rows."""

from __future__ import annotations

from collections.abc import Sequence

from ett_dashboard.client import Question, in_path
from ett_dashboard.failures.rows import JobFailure
from ett_dashboard.rows import JobDetail


class ReportedJob(JobDetail, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/jobs/{job_id}`, its failures with their diagnoses."""

    failure_list: Sequence[JobFailure] = ()


def job(job_id: str) -> Question[ReportedJob]:
    """One job in full."""
    return Question(f"/api/v1/jobs/{in_path(job_id)}", ReportedJob)
