"""Figures that stand at the head of a page or a failure: label, value, definition. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ett_dashboard import words
from ett_dashboard.rows import FailureRow, JobDetail

Tile: TypeAlias = tuple[str, str, str]
"""Label, value in words, and the definition that shows on hover."""
ETT_MEANING = (
    "Share of the wall time spent training with an effect that survives. "
    "It may fall later: a failure takes back the training whose steps it loses."
)
WALL_MEANING = "From the allocation of hardware to the end, or to now."


def job_tiles(job: JobDetail) -> list[Tile]:
    """The figures of one job."""
    recovered = [ttr for ttr in job.ttr_s if ttr is not None]
    mean_s = sum(recovered) / len(recovered) if recovered else None
    return [
        (
            "Effective training time",
            words.percent(job.ett_percent),
            ETT_MEANING,
        ),
        *_last_hour(job),
        (
            "Time to start",
            words.duration(job.tts_s),
            "From the beginning of the wall time to the first loop.",
        ),
        (
            "Time to recover",
            words.duration(mean_s),
            f"From a failure to the next loop{_mean_of(recovered)}.",
        ),
        ("Unsaved now", words.duration(job.unsaved_exposure_s), _unsaved_meaning(job)),
        ("Checkpoint blocking", words.duration(job.checkpoint_blocking_s), _checkpoint_meaning(job)),
        ("Failures", words.whole(job.failures), "Attempts of this job that failed."),
        ("Wall time", words.duration(job.wall_s), WALL_MEANING),
    ]


def failure_tiles(failure: FailureRow) -> list[Tile]:
    """What one failure cost, and who told of it."""
    where = (
        "the launcher" if failure.rank == -1 else "nobody" if failure.rank is None else f"rank {failure.rank}"
    )
    step = words.whole(failure.fallback_step)
    return [
        (
            "Back in the loop after",
            words.duration(failure.ttr_s),
            "Time to recover: from the failure to the next loop.",
        ),
        ("Training lost", words.duration(failure.unsaved_s), "Training whose steps this failure took back."),
        ("Fell back to step", step, f"How this is known: {failure.resume_evidence}."),
        ("Told by", where, words.plain(failure.node or "no host named", 60)),
    ]


def _mean_of(recovered: Sequence[float]) -> str:
    return f"; mean of {len(recovered)} so far" if recovered else ""


def _last_hour(job: JobDetail) -> list[Tile]:
    """How it goes now, of a job that runs for longer than that."""
    percent = job.ett_percent_within.get("1h")
    if job.finished or percent is None or job.wall_s <= words.HOUR_S:
        return []
    return [("ETT, last hour", words.percent(percent), "The same of the last hour alone: how it goes now.")]


def _unsaved_meaning(job: JobDetail) -> str:
    durable = (
        "" if job.last_durable_step is None else f" Step {words.whole(job.last_durable_step)} is durable."
    )
    return f"Training that would be lost if the job died now.{durable}"


def _checkpoint_meaning(job: JobDetail) -> str:
    over = f", over {words.many(job.checkpoint_count, 'save')}" if job.checkpoint_count else ""
    return f"Time in which checkpoints kept the trainer from training{over}."
