"""Time that is weighed by jobs, accelerators or cost, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_dashboard.words import HOUR_S, accelerator_hours, compact, duration, hours

OF: Mapping[str, str] = {
    "accelerator": "Every hour of every accelerator that jobs held weighs the same.",
    "job": "Every second of every job weighs the same, however large the job; queueing is included.",
    "cost": "Every accelerator-hour weighs its price.",
}
UNITS: Mapping[str, str] = {"accelerator": "accelerator-hours", "job": "hours of jobs", "cost": "cost"}


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
    return hours(value) if weight == "accelerator" else amount(value, weight)


def quantity(value: float, weight: str) -> str:
    """The same as a bare number, of which `UNITS` says the unit.

    >>> quantity(7200.0, "accelerator"), quantity(7200.0, "cost")
    ('2.0', '7.2 k')
    """
    return compact(value if weight == "cost" else value / HOUR_S)
