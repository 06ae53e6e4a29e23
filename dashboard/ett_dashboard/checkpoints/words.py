"""Checkpoint intervals in words. Pure."""

from __future__ import annotations

from ett_core.intervals import cautions, expected_ettr, refined_interval_s
from ett_dashboard.checkpoints.curve import Supposed
from ett_dashboard.checkpoints.rows import IntervalRow
from ett_dashboard.words import Sentence, accelerator_hours, duration, many, percent

NEAR = 0.1
"""An interval that wastes less than this share more than the best is as good as the best."""
FEW_FAILURES = 3


def advice(supposed: Supposed) -> Sentence:
    """What the figures say about the interval in use, and what to do."""
    best, used, interval_s = supposed.best, supposed.used_percent, supposed.interval_s
    if best is None:
        return Sentence(
            "nothing fails by these figures, so no save pays for itself", cautions(supposed.costs)[0]
        )
    save = f"save every {duration(best.interval_s)}"
    if used is None or interval_s is None or best.interval_s is None:
        return Sentence(f"{save}: that wastes {percent(best.percent)} of the training time", _doubt(supposed))
    if _is_near(interval_s, supposed) or used <= (1 + NEAR) * best.percent:
        how = f"every {duration(interval_s)} wastes {percent(used)}, next to the least possible"
        return Sentence(how, f"Leave it. {_doubt(supposed)}".strip())
    direction = "too seldom" if interval_s > best.interval_s else "too often"
    how = (
        f"it saves {direction}: every {duration(interval_s)} wastes {percent(used)}, "
        f"every {duration(best.interval_s)} would waste {percent(best.percent)}"
    )
    return Sentence(how, f"{save[:1].upper()}{save[1:]}. {_doubt(supposed)}".strip())


def by_the_models(supposed: Supposed) -> str:
    """The refined interval and the expected share of effective training; empty where nothing fails."""
    refined_s = refined_interval_s(supposed.costs)
    if refined_s is None:
        return ""
    ettr = f"expected ETTR at the best interval {percent(100 * expected_ettr(supposed.costs))}"
    if supposed.interval_s is not None:
        ettr += f", at the one in use {percent(100 * expected_ettr(supposed.costs, supposed.interval_s))}"
    aside = "the queue" if supposed.recovery_s else "queue and recovery"
    return f"Refined (Daly): {duration(refined_s)} of training between two saves; {ettr}, {aside} aside."


def _is_near(interval_s: float, supposed: Supposed) -> bool:
    """Whether by the failures seen the interval in use may be the best."""
    span = supposed.range_s
    return span is not None and span[0] <= interval_s and (span[1] is None or interval_s <= span[1])


def _doubt(supposed: Supposed) -> str:
    """Where the figures should not be trusted too far."""
    found = cautions(supposed.costs)
    if found:
        return " ".join(found)
    if supposed.seen is not None and supposed.seen[0] < FEW_FAILURES:
        return f"It rests on {many(supposed.seen[0], 'failure')} only: look at the shaded range."
    return ""


def fleet_sentence(jobs: list[IntervalRow], *, is_chosen: bool = False) -> Sentence:
    """What is to be said of the intervals of many jobs; `is_chosen`: of those that filters leave."""
    if not jobs and is_chosen:
        return Sentence("no job of those that are chosen has saved", "Choose fewer words above.")
    if not jobs:
        return Sentence("no job has saved a checkpoint so far", "How saves are told: see checkpoints.md.")
    far = [job for job in jobs if is_far(job)]
    if not far:
        return Sentence(f"{many(len(jobs), 'job')}: all save about as often as they should")
    saved = accelerator_hours(sum(job.excess_accelerator_s for job in far))
    return Sentence(
        f"{many(len(far), 'job')} of {len(jobs):,} could save {saved} by other intervals",
        "The dearest comes first; choose a row to see its curve.",
    )


def is_far(job: IntervalRow) -> bool:
    """Whether another interval would have wasted clearly less, beyond what few failures leave in doubt."""
    if job.best_s is None or job.best_percent is None:
        return False
    outside = job.interval_s < job.shortest_s or (
        job.longest_s is not None and job.interval_s > job.longest_s
    )
    return outside and job.wasted_percent > (1 + NEAR) * job.best_percent


def verdict(job: IntervalRow) -> str:
    """Whether a job saves as often as it should, as far as its failures tell."""
    if job.best_s is None:
        return "no failure yet"
    if not is_far(job):
        return "near the best"
    return "too seldom" if job.interval_s > job.best_s else "too often"
