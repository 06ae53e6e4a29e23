"""What the table of jobs says of each: one description for its columns, its order and its CSV."""

from __future__ import annotations

from operator import attrgetter

from ett_core.colours import state_group
from ett_core.components import GROUP_COLOURS
from ett_dashboard.addresses import to_job
from ett_dashboard.listing import Field, Value
from ett_dashboard.rows import Job
from ett_dashboard.words import ago, duration, percent, whole

FILTERS = ("team", "cluster", "model", "scheduler")
"""The labels that choose among jobs."""
NOT_IN_METRICS = ("state_age_s",)
"""The columns that only the API of an exporter can fill."""


def fields(now: float, *, is_whole: bool = True) -> list[Field[Job]]:
    """The columns of the table of jobs at `now` (Unix seconds); from metrics not all can be filled."""
    known: list[Field[Job]] = [
        Field(
            name="job",
            title="Job",
            help="Name of the job, else its identity.",
            value=lambda job: job.title,
            href=lambda job: to_job(job.job_id),
            hint=lambda job: job.job_id,
            end=False,
        ),
        Field(
            name="state",
            title="State",
            help="The first that applies of: over, lost, recovering, stalled, at work.",
            value=lambda job: job.state,
            show=lambda state: str(state).replace("_", " "),
            hue=lambda job: GROUP_COLOURS[state_group(job.state)],
            end=False,
        ),
        Field(
            name="state_age_s",
            title="For",
            help="How long the job has been in this state.",
            value=lambda job: _age(job.state_since, now),
            show=_duration,
        ),
        Field(
            name="ett_percent",
            title="ETT",
            help="Share of the job's wall time spent training with an effect that survives.",
            value=lambda job: job.ett_percent,
            show=lambda value: percent(_number(value)),
            share=lambda job: None if job.ett_percent is None else job.ett_percent / 100,
        ),
        Field(
            name="tts_s",
            title="Time to start",
            help="From the beginning of the wall time to the first training loop.",
            value=lambda job: job.tts_s,
            show=_duration,
        ),
        Field(
            name="failures",
            title="Failures",
            help="Attempts that failed.",
            value=lambda job: job.failures,
            show=lambda value: whole(_number(value)),
        ),
        Field(
            name="unsaved_s",
            title="Unsaved now",
            help="Training that would be lost if the job died now.",
            value=lambda job: job.unsaved_exposure_s,
            show=_duration,
        ),
        Field(
            name="progress_age_s",
            title="Last progress",
            help="When a step was last reported.",
            value=lambda job: _age(job.last_progress_at, now),
            show=lambda value: ago(_number(value)),
        ),
        Field(
            name="wall_s",
            title="Wall time",
            help="From the allocation of hardware to the end, or to now.",
            value=lambda job: job.wall_s,
            show=_duration,
        ),
    ]
    return [field for field in known if is_whole or field.name not in NOT_IN_METRICS]


def taken_away(now: float) -> list[Field[Job]]:
    """The columns of the CSV: those of the table, and who the job is."""
    labels = ("job_id", "team", "cluster", "model", "scheduler", "accelerator_type", "accelerators")
    facts = [Field[Job](name=name, title="", help="", value=attrgetter(name)) for name in labels]
    return [*facts, *fields(now)]


def _age(moment_s: float | None, now: float) -> float | None:
    return None if moment_s is None else max(now - moment_s, 0.0)


def _duration(value: Value) -> str:
    return duration(_number(value))


def _number(value: Value) -> float | None:
    return None if value is None else float(value)
