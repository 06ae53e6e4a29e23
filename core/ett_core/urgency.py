"""Which job somebody should look at first. Pure; the query API and the app order jobs by it.

state        severity
lost         6         before recovering, before failed, before unobserved, ...
training     1         at work, as every state that is not named
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ett_core.components import TRAINING

SEVERITY: Mapping[str, int] = {
    "lost": 6,
    "stalled": 6,
    "recovering": 5,
    "failed": 4,
    "timed_out": 4,
    "preempted": 4,
    "unobserved": 3,
    "starting": 2,
    "cancelled": 0,
    "succeeded": 0,
}
"""How much a state hurts; states that are not named weigh 1 (at work)."""

TROUBLE_SEVERITY = 3


class Seen(Protocol):
    """What is seen of a job."""

    @property
    def job_id(self) -> str:
        """Who it is."""

    @property
    def state(self) -> str:
        """How it is."""

    @property
    def finished(self) -> bool:
        """Whether it is over."""

    @property
    def wall_s(self) -> float:
        """Its wall time."""

    @property
    def components(self) -> Mapping[str, float]:
        """The seconds of its wall time by component."""


def severity(state: str) -> int:
    """How much a state hurts; the higher, the sooner somebody should look."""
    return SEVERITY.get(state, 1)


def in_trouble(job: Seen) -> bool:
    """Whether somebody should look at a job now: it is not over and not at work."""
    return not job.finished and severity(job.state) >= TROUBLE_SEVERITY


def urgency(job: Seen) -> tuple[bool, int, float, str]:
    """A key that puts the job first that somebody should look at first.

    Live ones come before those that are over, then by their state, then by the seconds lost.
    """
    lost_s = job.wall_s - job.components.get(TRAINING, 0.0)
    return (job.finished, -severity(job.state), -lost_s, job.job_id)
