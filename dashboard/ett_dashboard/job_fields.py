"""What the table of jobs says of each: one description for its columns, its order and its CSV."""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.colours import state_group
from ett_core.components import GROUP_COLOURS
from ett_core.purposes import TRAINING
from ett_dashboard.addresses import to_job
from ett_dashboard.columns import Kind, age, count, exact, percentage, seconds, text
from ett_dashboard.listing import Field
from ett_dashboard.rows import Job
from ett_dashboard.tiles import WALL_MEANING

FILTERS = ("team", "cluster", "model", "scheduler", "purpose")
"""The labels that choose among jobs."""
NOT_IN_METRICS = ("state_age_s",)
"""The columns that only the API of an exporter can fill."""
STATE = Kind(lambda state: str(state).replace("_", " "), end=False)


def fields(now: float, chosen: Mapping[str, str] | None = None, *, is_whole: bool = True) -> list[Field[Job]]:
    """The columns of the table of jobs at `now` (Unix seconds); from metrics not all can be filled.

    Links keep what was `chosen`.
    """

    def since(moment_s: float | None) -> float | None:
        return None if moment_s is None else max(now - moment_s, 0.0)

    known: list[Field[Job]] = [
        text(
            "job",
            "Job",
            "Name of the job, else its identity.",
            lambda job: job.title,
            href=lambda job: to_job(job.job_id, chosen),
            hint=lambda job: job.job_id,
        ),
        STATE(
            "state",
            "State",
            "The first that applies of: over, lost, recovering, stalled, at work.",
            hue=lambda job: GROUP_COLOURS[state_group(job.state)],
        ),
        seconds(
            "state_age_s",
            "For",
            "How long the job has been in this state.",
            lambda job: since(job.state_since),
        ),
        percentage(
            "ett_percent",
            "ETT",
            "Share of the job's wall time spent training with an effect that survives; of jobs that train.",
            _effective_percent,
            share=lambda job: None if (percent := _effective_percent(job)) is None else percent / 100,
        ),
        seconds("tts_s", "Time to start", "From the beginning of the wall time to the first training loop."),
        count("failures", "Failures", "Attempts that failed."),
        seconds(
            "unsaved_s",
            "Unsaved now",
            "Training that would be lost if the job died now.",
            lambda job: job.unsaved_exposure_s,
        ),
        age(
            "progress_age_s",
            "Last progress",
            "When a step was last reported.",
            lambda job: since(job.last_progress_at),
        ),
        seconds("wall_s", "Wall time", WALL_MEANING),
    ]
    return [field for field in known if is_whole or field.name not in NOT_IN_METRICS]


def taken_away(now: float) -> list[Field[Job]]:
    """The columns of the CSV: those of the table, and who the job is."""
    facts = exact("job_id", *FILTERS, "accelerator_type", "accelerators")
    return [*facts, *fields(now)]


def _effective_percent(job: Job) -> float | None:
    """ETT of a job that is there to train; of another it says nothing."""
    return job.ett_percent if job.purpose == TRAINING else None
