"""What is compared: figures of a run, from the exporter's account and the losses that were printed. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ett_core.components import (
    CHECKPOINT_BLOCKING,
    FAILURE,
    IDLENESS,
    PUBLISH,
    SHUTDOWN,
    TRAINING,
    UNSAVED_TRAINING,
)

PLAIN, OPTIMISED = "plain", "optimised"
SIDES = (PLAIN, OPTIMISED)


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One job, from its first start to its last step.

    `job`: as the query API tells of it. `samples`: that the model has learnt from at the end, each counted
    once. `losses`: by step, one each time that the step was trained. `struck`: the faults, in words.
    `load`: of the machine when it began.
    """

    seed: int
    side: str
    job: Mapping[str, Any]
    samples: int
    losses: Mapping[int, Sequence[float]]
    struck: Sequence[str]
    load: float

    def seconds(self, component: str) -> float:
        """Of the job's wall time, in one component."""
        return float(self.job["components"].get(component, 0.0))


@dataclass(frozen=True)
class Row:
    """A figure: what it is called, how it is computed, how its change is told."""

    words: str
    of: Callable[[Run], float]
    in_points: bool = False
    digits: int = 1


def recovery_s(ttr_s: Sequence[float | None]) -> float:
    """Mean seconds from a failure to the next step.

    >>> recovery_s([20.0, None, 30.0])
    25.0
    """
    return statistics.fmean(each for each in ttr_s if each is not None)


def blocked_s(run: Run) -> float:
    """Seconds for which one save held the loop up, in the mean."""
    return run.seconds(CHECKPOINT_BLOCKING) / run.job["checkpoint_count"]


ROWS = (
    Row("ETT, %", lambda run: run.job["ett_percent"], in_points=True),
    Row("wall time to the last step, s", lambda run: run.job["wall_s"], digits=0),
    Row("idleness, s", lambda run: run.job["groups"][IDLENESS]),
    Row("failure, s", lambda run: run.job["groups"][FAILURE]),
    Row("time to start, s", lambda run: run.job["tts_s"]),
    Row("time to recover, mean of the failures, s", lambda run: recovery_s(run.job["ttr_s"])),
    Row("unsaved training, s", lambda run: run.seconds(UNSAVED_TRAINING)),
    Row("saves", lambda run: run.job["checkpoint_count"], digits=0),
    Row("blocked by a save, s", blocked_s, digits=3),
    Row("publishing and shutdown, s", lambda run: run.seconds(PUBLISH) + run.seconds(SHUTDOWN)),
    Row("samples a second of training", lambda run: run.samples / run.seconds(TRAINING), digits=0),
)


def losses_apart(runs: Iterable[Run]) -> float:
    """The largest difference of losses at one step, between runs of one seed and within each."""
    at: dict[int, list[float]] = {}
    for run in runs:
        for step, losses in run.losses.items():
            at.setdefault(step, []).extend(losses)
    return max((max(each) - min(each) for each in at.values()), default=0.0)


def table(runs: Sequence[Run]) -> str:
    """The figures of both sides beside each other, in Markdown: medians and ranges."""
    lines = ["| figure | plain | optimised | change, seed by seed |", "|---|---|---|---|"]
    lines += [_line(row.words, row, runs) for row in ROWS]
    names = {name for run in runs for name in run.job["components"]}
    order = [name for name in runs[0].job["components"] if name in names]
    order += sorted(names - set(order))
    lines += ["", "| component, s | plain | optimised | change, seed by seed |", "|---|---|---|---|"]
    lines += [_line(f"`{name}`", Row(name, lambda run, name=name: run.seconds(name)), runs) for name in order]
    return "\n".join(lines)


def _line(words: str, row: Row, runs: Sequence[Run]) -> str:
    by_seed: dict[str, dict[int, float]] = {side: {} for side in SIDES}
    for run in runs:
        by_seed[run.side][run.seed] = row.of(run)
    plain, optimised = by_seed[PLAIN], by_seed[OPTIMISED]
    pairs = [(plain[seed], optimised[seed]) for seed in plain if seed in optimised]
    if row.in_points:
        change = f"{spread([after - before for before, after in pairs], '+.1f')} points"
    elif all(before > 0 for before, _ in pairs):
        change = f"{spread([100 * (after / before - 1) for before, after in pairs], '+.0f')} %"
    else:
        change = ""
    form = f".{row.digits}f"
    return (
        f"| {words} | {spread([*plain.values()], form)} | {spread([*optimised.values()], form)} | {change} |"
    )


def spread(values: Sequence[float], form: str = ".1f") -> str:
    """Median and range.

    >>> spread([3.0, 1.0, 2.0]), spread([2.5])
    ('2.0 (1.0 to 3.0)', '2.5')
    """
    middle = f"{statistics.median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}} to {max(values):{form}})"
