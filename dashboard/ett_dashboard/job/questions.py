"""What the Job page asks of the query API beside the job itself. Pure."""

from __future__ import annotations

from ett_dashboard.client import Question, in_path
from ett_dashboard.job.rows import Ranks


def ranks(job_id: str, *, is_over: bool = False) -> Question[Ranks]:
    """The ranks of the latest attempt of a job, and the slow ones of all attempts."""
    return Question(f"/api/v1/jobs/{in_path(job_id)}/ranks", Ranks, about=job_id if is_over else "")
