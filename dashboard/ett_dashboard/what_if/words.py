"""What-if in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.failures import CLASSES
from ett_core.fleet.what_if import CACHES, FAILURE_PREFIX, INTERVALS, PUBLISHING, RECOVERY
from ett_dashboard.weights import amount
from ett_dashboard.what_if.rows import LeverRow, WhatIf
from ett_dashboard.windows import WITHIN
from ett_dashboard.words import Sentence, duration, many, plain, ratio

TITLES: Mapping[str, str] = {
    RECOVERY: "recovery takes half as long",
    CACHES: "compile caches are warm",
    PUBLISHING: "publishing is decoupled",
    INTERVALS: "checkpoint intervals are optimal",
}
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


def answer_sentence(found: WhatIf, window: str) -> Sentence:
    """What the fleet would have reached, and how much of it is counted twice."""
    when = WITHIN[window]
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
