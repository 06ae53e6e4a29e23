"""The start of an attempt and the ranks of a job in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ett_dashboard.job.waterfall import Start, Step
from ett_dashboard.words import Sentence, duration, percent, plain

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
