"""The start of an attempt and the ranks of a job in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ett_dashboard.job.waterfall import Start, Step
from ett_dashboard.words import Sentence, duration, many, percent, plain

MOST_KINDS = 4
"""Kinds of collectives that are named, those called most."""
_KINDS = "start.collectives."
NOTABLE_S = 0.1
"""Seconds below this are not worth a word."""


def start_sentence(start: Start, steps: Sequence[Step]) -> Sentence:
    """How long an attempt took to its loop, what took longest, who was last, and what was hidden."""
    attempt = start.attempt
    name = f"attempt {attempt.attempt}"
    if start.took_s is not None:
        how = f"{name} was in its loop after {duration(start.took_s)}"
    elif attempt.outcome == "running":
        how = f"{name} has been starting for {duration(start.end - start.begin)}"
    else:
        how = f"{name} ended after {duration(start.end - start.begin)}, before any loop"
    return Sentence(how + _longest(steps) + _last(start), _hidden(start))


def collectives_told(counters: Mapping[str, float]) -> str:
    """What the ranks asked of each other before their first steps, a rank's start; empty where none counted.

    >>> counted = {"counted": 4, "groups": 8, "groups_s": 2.0, "collectives": 12, "collectives_s": 6.0}
    >>> kinds = {"collectives.all_reduce": 12, "collectives.all_reduce_s": 6.0}
    >>> collectives_told({f"start.{name}": n for name, n in {**counted, **kinds}.items()})
    'Until its first step a rank made 2 process groups (0.5 s) and 3 collectives (1.5 s): 3 all_reduce.'
    """
    starts = counters.get("start.counted", 0.0)
    if starts <= 0:
        return ""
    names = [name for name in counters if name.startswith(_KINDS) and not name.endswith("_s")]
    kinds = sorted(names, key=lambda name: (-counters[name], name))[:MOST_KINDS]

    def each(name: str) -> float:
        mean = round(counters.get(name, 0.0) / starts, 1)
        return int(mean) if mean.is_integer() else mean

    def took(name: str) -> str:
        return duration(counters.get(f"{name}_s", 0.0) / starts)

    told = ", ".join(f"{each(name)} {plain(name.removeprefix(_KINDS), 40)}" for name in kinds)
    groups = f"{many(each('start.groups'), 'process group')} ({took('start.groups')})"
    collectives = f"{many(each('start.collectives'), 'collective')} ({took('start.collectives')})"
    return f"Until its first step a rank made {groups} and {collectives}" + (f": {told}." if told else ".")


def _longest(steps: Sequence[Step]) -> str:
    total_s = sum(step.seconds for step in steps)
    if not total_s:
        return ""
    most = max(steps, key=lambda step: step.seconds)
    share = percent(100 * most.seconds / total_s)
    return f"; the longest part was {most.component} ({duration(most.seconds)}, {share})"


def _last(start: Start) -> str:
    critical, behind_s = start.attempt.critical_rank, start.behind_s
    if critical is None or behind_s is None or behind_s < NOTABLE_S:
        return ""
    return f"; rank {critical} held it up, first batches came {duration(behind_s)} apart"


def _hidden(start: Start) -> str:
    """What other tracks did meanwhile: the gain of overlapping."""
    found = [(phase, s) for phase, s in start.attempt.hidden.items() if s >= NOTABLE_S]
    if not found:
        return ""
    told = ", ".join(f"{plain(phase, 40)} {duration(s)}" for phase, s in found)
    return f"Hidden by work beside it: {told}."
