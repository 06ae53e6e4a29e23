"""What the Job page asks of the query API beside the job itself. Pure."""

from __future__ import annotations

from ett_dashboard.client import Question, in_path
from ett_dashboard.job.rows import Compilations, Decisions, Ranks
from ett_dashboard.rows import Stretches

KEEP_S = 5.0
"""What is told seldom need not be asked for with every refresh."""
MOST_DECISIONS = 200
MOST_STRETCHES = 20_000


def ranks(job_id: str, *, is_over: bool = False) -> Question[Ranks]:
    """The ranks of the latest attempt of a job, and the slow ones of all attempts."""
    return Question(f"/api/v1/jobs/{in_path(job_id)}/ranks", Ranks, about=job_id if is_over else "")


def decisions(job_id: str, *, is_over: bool = False) -> Question[Decisions]:
    """What the pipeline of a job decided, the latest first."""
    return Question(
        f"/api/v1/jobs/{in_path(job_id)}/decisions",
        Decisions,
        (("limit", str(MOST_DECISIONS)),),
        KEEP_S,
        job_id if is_over else "",
    )


def compilations(job_id: str, *, is_over: bool = False) -> Question[Compilations]:
    """What the lowest rank of a job's latest attempts compiled, and why again."""
    path = f"/api/v1/jobs/{in_path(job_id)}/compilations"
    return Question(path, Compilations, keep_s=KEEP_S, about=job_id if is_over else "")


def stretches(job_id: str, begin: float, end: float) -> Question[Stretches]:
    """Where the time of a job went between two moments (Unix seconds), as finely as it is known."""
    when = (("begin", repr(begin)), ("end", repr(end)), ("limit", str(MOST_STRETCHES)))
    return Question(f"/api/v1/jobs/{in_path(job_id)}/timeline", Stretches, when, is_kept=False)
