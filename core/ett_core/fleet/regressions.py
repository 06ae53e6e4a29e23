"""Component regressions: what takes longer in new runs than it took before, by family and in all. Pure.

    runs of a family     . . .. . . ..  . |  o o  o o o        figure: seconds, or a share of the loop
                         before           since

For each figure the runs are cut in two at the moment since which it most likely became larger
(`change_points.py`), and the probability that it did not is held against all figures and families
asked about (Holm). An alarm also needs enough new jobs, a factor and an amount.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ett_core.components import CHECKPOINT_BLOCKING, DATA_WAIT, RECOMPILE
from ett_core.fleet.change_points import FEWEST_JOBS, Point, best_cut, improbable_cut, levelled, sides_of
from ett_core.fleet.rows import TIME_TO_RECOVER, TIME_TO_START, Run
from ett_core.fleet.tails import holm, median

ALL_FAMILIES = ""
BELOW = 0.01
"""Probability, for all figures and families together, of an alarm where nothing changed."""
SMALLEST_FACTOR = 1.2
SMALLEST_SECONDS = 5.0
SMALLEST_SHARE = 0.01
JOBS_READ = 60
"""Latest jobs of a family that are compared."""
JOBS_OF_ALL = 120
"""Latest jobs of all families that are compared together."""
SHARES = frozenset({DATA_WAIT, CHECKPOINT_BLOCKING, RECOMPILE})
NEW_SHARE, OLD_SHARE = 0.5, 0.1
"""A value that at least half of the jobs after have, and at most a tenth of those before, is new."""
VALUES_SHOWN = 3
_WHOLE: Mapping[str, str] = {"start": TIME_TO_START, "recover": TIME_TO_RECOVER}


class Change(msgspec.Struct, frozen=True, gc=False):
    """What else is different: a version, the configuration or the cluster, before and after."""

    what: str
    before: list[str]
    after: list[str]


class Regression(msgspec.Struct, frozen=True, gc=False):
    """A figure that became larger. `family` is empty where all families are meant.

    `before` and `after` are medians over jobs, in seconds, or as a share of the loop (`unit`: `s` or
    `ratio`); `factor` is the median of how much larger it became for the same family and size.
    """

    family: str
    figure: str
    unit: str
    since: float
    before: float
    after: float
    factor: float
    jobs_before: int
    jobs_after: int
    families: int
    probability: float
    changed: list[Change]


class _Asked(NamedTuple):
    """One figure of one family, or of all: the moment at which the cut is most improbable by chance."""

    scope: str
    figure: str
    points: Sequence[Point]
    since: float
    probability: float


def regressions(runs: Sequence[Run], begin: float, end: float) -> list[Regression]:
    """The figures that became larger between two moments, the most certain first."""
    recent = _latest([run for run in runs if run.figures and begin <= run.start < end])
    asked = list(_asked(recent))
    together = holm([each.probability for each in asked])
    alarms = [
        regression
        for each, probability in zip(asked, together, strict=True)
        if probability < BELOW and (regression := _told(each, probability, recent)) is not None
    ]
    return sorted(alarms, key=lambda each: (each.probability, each.family, each.figure))


def _asked(runs: Sequence[Run]) -> Iterator[_Asked]:
    for figure in sorted({figure for run in runs for figure in run.figures}):
        points = levelled([point for run in runs if (point := _point(run, figure)) is not None])
        families = sorted({point.family for point in points})
        for scope in [ALL_FAMILIES, *families] if len(families) > 1 else families:
            members = [p for p in points if p.family == scope] if scope else _newest(points, JOBS_OF_ALL)
            found = improbable_cut(members)
            if found is not None:
                yield _Asked(scope, figure, members, *found)


def _latest(runs: Sequence[Run]) -> list[Run]:
    """Runs of the latest jobs of each family, in order of time."""
    newest: dict[str, dict[str, float]] = defaultdict(dict)
    for run in runs:
        newest[run.family][run.job_id] = max(run.start, newest[run.family].get(run.job_id, -math.inf))
    kept = {
        (family, job)
        for family, jobs in newest.items()
        for job in sorted(jobs, key=lambda job: jobs[job])[-JOBS_READ:]
    }
    return sorted((run for run in runs if (run.family, run.job_id) in kept), key=lambda run: run.start)


def _point(run: Run, figure: str) -> Point | None:
    """The figure of a run; None where it cannot have it."""
    plain = amount_of(run.figures, figure)
    if plain is None:
        return None
    size = math.log2(max(run.world_size, 1))
    return Point(run.start, run.job_id, run.family, size, math.log(plain + _floor(figure)), plain)


def amount_of(figures: Mapping[str, float], figure: str) -> float | None:
    """One of the figures of a run; a part of its start that it lacks took no time.

    >>> amount_of({"time_to_start": 9.0}, "start.compile"), amount_of({"data_wait": 0.1}, "start.compile")
    (0.0, None)
    """
    if figure in figures:
        return figures[figure]
    return 0.0 if _WHOLE.get(figure.partition(".")[0]) in figures else None


def _newest(points: Sequence[Point], jobs: int) -> Sequence[Point]:
    """The points of so many jobs, those with the latest ones."""
    newest: dict[str, None] = {}
    for point in reversed(points):
        if len(newest) < jobs:
            newest.setdefault(point.job_id)
    return [point for point in points if point.job_id in newest]


def _smallest(figure: str) -> float:
    return SMALLEST_SHARE if figure in SHARES else SMALLEST_SECONDS


def _floor(figure: str) -> float:
    """What is added to a figure before its logarithm is taken: next to nothing against what matters."""
    return _smallest(figure) / 10


def _told(asked: _Asked, probability: float, runs: Sequence[Run]) -> Regression | None:
    """The regression in full, if it is large enough to be one."""
    points, figure = asked.points, asked.figure
    since = best_cut(points, asked.since)
    by_family = sides_of(points, since)
    shifts = [new - old for before, after in by_family.values() for old in before for new in after]
    factor = math.exp(median(shifts))
    old = _by_job(p for p in points if p.start < since and p.family in by_family)
    new = _by_job(p for p in points if p.start >= since and p.family in by_family)
    before, after = (median(list(side.values())) for side in (old, new))
    amount = (before + _floor(figure)) * (factor - 1.0)
    if min(len(old), len(new)) < FEWEST_JOBS or factor < SMALLEST_FACTOR or amount < _smallest(figure):
        return None
    return Regression(
        family=asked.scope,
        figure=figure,
        unit="ratio" if figure in SHARES else "s",
        since=since,
        before=before,
        after=after,
        factor=factor,
        jobs_before=len(old),
        jobs_after=len(new),
        families=len(by_family),
        probability=probability,
        changed=_changes([run for run in runs if run.family in by_family], since),
    )


def _by_job(points: Iterable[Point]) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for point in points:
        values[point.job_id].append(point.plain)
    return {job: median(plain) for job, plain in values.items()}


def _changes(runs: Sequence[Run], since: float) -> list[Change]:
    """What most jobs with runs since have in common and hardly any had before."""
    old = _said_by_job(run for run in runs if run.start < since)
    new = _said_by_job(run for run in runs if run.start >= since)
    found = []
    for what in sorted({name for said in new.values() for name in said}):
        before, after = _values(old, what), _values(new, what)
        (value, jobs), *_ = after.most_common(1)
        if jobs >= NEW_SHARE * len(new) and before[value] <= OLD_SHARE * len(old):
            found.append(Change(what, _most(before), _most(after)))
    return found


def _said_by_job(runs: Iterable[Run]) -> dict[str, Mapping[str, str]]:
    """What the latest run of each job says it runs on."""
    return {run.job_id: _said(run) for run in runs}


def _said(run: Run) -> Mapping[str, str]:
    beside = {
        "config_hash": run.config_hash,
        "cluster": run.cluster,
        "accelerator_type": run.accelerator_type,
    }
    return {name: value for name, value in {**run.versions, **beside}.items() if value}


def _values(said_by_job: Mapping[str, Mapping[str, str]], what: str) -> Counter[str]:
    return Counter(said[what] for said in said_by_job.values() if what in said)


def _most(values: Counter[str]) -> list[str]:
    return [value for value, _ in values.most_common(VALUES_SHOWN)]
