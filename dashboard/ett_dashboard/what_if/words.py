"""What-if in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.failures import CLASSES
from ett_core.fleet.what_if import CACHES, FAILURE_PREFIX, INTERVALS, PUBLISHING, RECOVERY
from ett_dashboard.what_if.rows import LeverRow, WhatIf
from ett_dashboard.words import Sentence, accelerator_hours, compact, duration, many, percent, plain

TITLES: Mapping[str, str] = {
    RECOVERY: "recovery takes half as long",
    CACHES: "compile caches are warm",
    PUBLISHING: "publishing is decoupled",
    INTERVALS: "checkpoint intervals are optimal",
}
WINDOWS: Mapping[str, str] = {"1h": "the last hour", "24h": "the last 24 hours", "7d": "the last 7 days"}
WEIGHTS: Mapping[str, str] = {
    "accelerator": "accelerator-hours",
    "job": "hours of jobs",
    "cost": "money",
}
HOUR_S = 3600.0
TRIFLE = 1e-9


def title(key: str) -> str:
    """A lever in a few words.

    >>> title("failure:gpu_ecc"), title("caches")
    ('no gpu_ecc failures', 'compile caches are warm')
    """
    if key.startswith(FAILURE_PREFIX):
        return f"no {plain(key.removeprefix(FAILURE_PREFIX), 40)} failures"
    return TITLES.get(key, plain(key, 40))


def meaning(row: LeverRow) -> str:
    """What a lever supposes, and of a class of failures what it is."""
    name = row.key.removeprefix(FAILURE_PREFIX)
    if row.key.startswith(FAILURE_PREFIX) and name in CLASSES:
        return f"{CLASSES[name].meaning} Supposed: it never happened."
    return plain(row.supposes, 200)


def amount(value: float, weight: str) -> str:
    """Weighted time in words.

    >>> amount(7200.0, "accelerator"), amount(7200.0, "job"), amount(7200.0, "cost")
    ('2.0 accelerator-hours', '2 h 0 m', '7.2 k')
    """
    if weight == "accelerator":
        return accelerator_hours(value)
    return duration(value) if weight == "job" else compact(value)


def quantity(value: float, weight: str) -> str:
    """Weighted time without its unit, which `WEIGHTS` says.

    >>> quantity(7200.0, "accelerator"), quantity(7200.0, "cost")
    ('2.0', '7.2 k')
    """
    return compact(value if weight == "cost" else value / HOUR_S)


def ratio(value: float | None) -> str:
    """A share of 0 to 1 as a percentage."""
    return percent(None if value is None else 100 * value)


def points(value: float | None) -> str:
    """A difference of shares, in points of a percentage.

    >>> points(0.123), points(-0.001), points(None)
    ('+12.3 points', '-0.1 points', 'n/a')
    """
    return "n/a" if value is None else f"{100 * value:+.1f} points"


def answer_sentence(found: WhatIf, window: str) -> Sentence:
    """What the fleet would have reached, and how much of it is counted twice."""
    when = WINDOWS.get(window, window)
    if not found.now.total:
        return Sentence(f"no job spent any time in {when}")
    if not found.levers:
        best = found.alone[0] if found.alone else None
        how = (
            f"{many(found.jobs, 'job')} trained effectively for {ratio(found.now.effective_ratio)} of {when}"
        )
        if best is None or best.saved <= TRIFLE:
            return Sentence(how)
        would = f"{title(best.key)}: that alone gives {ratio(best.effective_ratio)}"
        return Sentence(how, f"The largest lever: {would}. Choose levers to see them together.")
    how = (
        f"with {many(len(found.levers), 'lever')} the same training would have taken "
        f"{amount(found.saved, found.weight)} less: {ratio(found.together.effective_ratio)} effective "
        f"instead of {ratio(found.now.effective_ratio)}"
    )
    if len(found.levers) > 1 and found.overlap > TRIFLE * found.now.total:
        one_by_one = amount(found.saved + found.overlap, found.weight)
        return Sentence(how, f"One by one they promise {one_by_one}: part of it is the same time.")
    return Sentence(how)


def basis(found: WhatIf) -> str:
    """What the answer rests on."""
    warm = f"{many(found.warm_runs, 'warm run')} tell how long a warm start compiles"
    if not found.warm_runs:
        warm = "no run was warm so far, so warm caches promise nothing"
    apart = (
        "nothing failed, so intervals stay as they are"
        if found.between_failures_s is None
        else f"a job trains {duration(found.between_failures_s)} between two failures"
    )
    return f"{many(found.jobs, 'job')}; {warm}; {apart}."
