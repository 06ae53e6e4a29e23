"""The fleet in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.components import FAILURE, TRAINING, group_seconds
from ett_dashboard.report.rows import FleetTime
from ett_dashboard.words import Sentence, accelerator_hours, compact, duration, many, percent

WITHIN: Mapping[str, str] = {
    "1h": "the last hour",
    "24h": "the last 24 hours",
    "7d": "the last 7 days",
}
OF: Mapping[str, str] = {
    "accelerator": "Every hour of every accelerator that jobs held weighs the same.",
    "job": "Every second of every job weighs the same, however large the job; queueing is included.",
    "cost": "Every accelerator-hour weighs its price.",
}

UNITS: Mapping[str, str] = {"accelerator": "accelerator-hours", "job": "time of jobs", "cost": "cost"}


def amount(value: float, weight: str) -> str:
    """Weighted time in words.

    >>> amount(7200.0, "accelerator"), amount(7200.0, "job"), amount(7200.0, "cost")
    ('2.0 accelerator-hours', '2 h 0 m', '7.2 k')
    """
    if weight == "accelerator":
        return accelerator_hours(value)
    return duration(value) if weight == "job" else compact(value)


def short(value: float, weight: str) -> str:
    """The same where its unit stands beside it.

    >>> short(7200.0, "accelerator"), short(7200.0, "job")
    ('2.0 h', '2 h 0 m')
    """
    return f"{compact(value / 3600)} h" if weight == "accelerator" else amount(value, weight)


def summary(found: FleetTime, window: str, weight: str, factor: float) -> Sentence:
    """What was spent within the window, what of it was training, and where most of the rest went."""
    within = WITHIN[window]
    if not found.total:
        return Sentence(f"no job spent any time within {within}")
    who = "jobs" if found.jobs is None else many(found.jobs, "job")
    spent = f"{who} spent {amount(found.total * factor, weight)} within {within}"
    if found.effective_ratio is None:
        return Sentence(f"{spent}, and nobody observed what in")
    failed = group_seconds(found.components)[FAILURE] / found.total
    how = (
        f"{spent}; {percent(100 * found.effective_ratio)} of it was training whose effect survives, "
        f"{percent(100 * failed)} was lost to failures"
    )
    lost = {name: value for name, value in found.components.items() if name != TRAINING}
    if not lost:
        return Sentence(how)
    most = max(lost, key=lambda name: lost[name])
    return Sentence(how, f"The largest loss is {most}: {amount(lost[most] * factor, weight)}.")
