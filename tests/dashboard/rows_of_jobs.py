"""Rows of jobs made by hand."""

from __future__ import annotations

from ett_dashboard.rows import Job


def job(job_id: str, state: str = "training", *, finished: bool = False, **components: float) -> Job:
    """A job whose wall time is the sum of its components."""
    wall_s = sum(components.values())
    observed = wall_s - components.get("unobserved", 0.0)
    percent = 100 * components.get("training", 0.0) / wall_s if observed else None
    return Job(
        job_id=job_id,
        state=state,
        finished=finished,
        start=0.0,
        end=wall_s,
        wall_s=wall_s,
        components=components,
        ett_percent=percent,
    )
