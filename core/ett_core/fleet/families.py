"""Families of jobs: how many, and what is usual in each. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from ett_core.fleet.rows import Run
from ett_core.fleet.tails import median


class Family(msgspec.Struct, frozen=True, gc=False):
    """Jobs that are compared with one another.

    `usual` holds, by figure, the median over jobs of the median of their runs: seconds, or shares
    of the loop as in a `Run`.
    """

    family: str
    jobs: int
    runs: int
    latest: float
    usual: dict[str, float]


def families(runs: Iterable[Run]) -> list[Family]:
    """The families of runs, the one with most jobs first."""
    by_family: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_family[run.family].append(run)
    found = [
        Family(
            family=name,
            jobs=len({run.job_id for run in members}),
            runs=len(members),
            latest=max(run.start for run in members),
            usual=usual(members),
        )
        for name, members in by_family.items()
    ]
    return sorted(found, key=lambda each: (-each.jobs, each.family))


def usual(runs: Iterable[Run]) -> dict[str, float]:
    """By figure, the median over jobs; a job that started often counts once."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for figure, amount in run.figures.items():
            values[figure][run.job_id].append(amount)
    return {
        figure: median([amounts[0] if len(amounts) == 1 else median(amounts) for amounts in jobs.values()])
        for figure, jobs in sorted(values.items())
    }
