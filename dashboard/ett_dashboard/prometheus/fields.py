"""What the table of jobs and their caches says. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_dashboard.addresses import to_job
from ett_dashboard.listing import Field
from ett_dashboard.rows import Job
from ett_dashboard.words import duration, percent, whole


def cache_fields(compile_of_jobs: Mapping[str, float], chosen: Mapping[str, str]) -> list[Field[Job]]:
    """The columns of the table of jobs that compiled longest; `compile_of_jobs`: seconds of all ranks."""
    return [
        Field(
            name="job",
            title="Job",
            help="Name of the job, else its identity.",
            value=lambda job: job.title,
            href=lambda job: to_job(job.job_id, chosen),
            hint=lambda job: job.job_id,
            end=False,
        ),
        Field(
            name="model",
            title="Model",
            help="The model that it trains.",
            value=lambda job: job.model,
            end=False,
        ),
        Field(
            name="hit_percent",
            title="Hit rate",
            help="Hits in hits and misses of all caches, since the job began.",
            value=hit_percent,
            show=lambda value: percent(None if value is None else float(value)),
            share=lambda job: None if (rate := hit_percent(job)) is None else rate / 100,
        ),
        Field(
            name="requests",
            title="Requests",
            help="Hits, misses and bypasses of all caches.",
            value=lambda job: sum(row.hits + row.misses + row.bypasses for row in job.caches.values()),
            show=lambda value: whole(None if value is None else float(value)),
        ),
        Field(
            name="held_up_s",
            title="Held up",
            help="Wall time that the job waited for compilation.",
            value=held_up_s,
            show=lambda value: duration(None if value is None else float(value)),
        ),
        Field(
            name="compile_s",
            title="Compiled",
            help="Compile time of all ranks together, waited for or hidden.",
            value=lambda job: compile_of_jobs.get(job.job_id),
            show=lambda value: duration(None if value is None else float(value)),
        ),
    ]


def hit_percent(job: Job) -> float | None:
    """The share of requests of a job that its caches answered; None where none was asked."""
    hits = sum(row.hits for row in job.caches.values())
    asked = hits + sum(row.misses for row in job.caches.values())
    return 100 * hits / asked if asked else None


def held_up_s(job: Job) -> float | None:
    """Wall time that a job waited for compilation."""
    return sum(job.components.get(name, 0.0) for name in ("start.compile", "recover.compile", "recompile"))
