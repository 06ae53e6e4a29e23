"""Runs and their families to tables and points. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from ett_core.fleet.families import Family
from ett_core.fleet.regressions import ALL_FAMILIES, Regression, amount_of
from ett_core.fleet.tails import median
from ett_dashboard.regressions.rows import RunRow
from ett_dashboard.regressions.words import MAIN_FIGURES


class Point(msgspec.Struct, frozen=True):
    """A figure of one run; `drawn` is what the chart shows: the value, or times what is usual."""

    start: float
    job_id: str
    attempt: int
    family: str
    value: float
    drawn: float
    is_after: bool


class History(msgspec.Struct, frozen=True):
    """A figure of a family over time, with the change that was found in it, if any.

    `before` and `after` are medians over jobs of what is drawn; without a change `before` is that of
    all. `is_relative`: drawn are times of what is usual in the family of each run.
    """

    figure: str
    points: Sequence[Point]
    before: float | None
    after: float | None
    change: Regression | None
    is_relative: bool


def histories(runs: Sequence[RunRow], family: str, found: Sequence[Regression]) -> list[History]:
    """The figures to show of a family (empty: of all), those that became larger first."""
    changes = {each.figure: each for each in found if each.family == family}
    figures = [*changes, *(name for name in MAIN_FIGURES if name not in changes)]
    shown = [history(runs, figure, family, changes.get(figure)) for figure in figures]
    return [each for each in shown if each.points]


def history(runs: Sequence[RunRow], figure: str, family: str, change: Regression | None) -> History:
    """One figure of the runs of a family over time.

    Of all families together each value is drawn as times the median that its family had before.
    """
    is_relative = family == ALL_FAMILIES
    members = [run for run in runs if is_relative or run.family == family]
    since = None if change is None else change.since
    valued = [(run, value) for run in members if (value := amount_of(run.figures, figure)) is not None]
    usual = _usual(valued, since) if is_relative else {}
    points = [
        Point(
            start=run.start,
            job_id=run.job_id,
            attempt=run.attempt,
            family=run.family,
            value=value,
            drawn=value / usual[run.family] if is_relative else value,
            is_after=since is not None and run.start >= since,
        )
        for run, value in sorted(valued, key=lambda each: (each[0].start, each[0].job_id, each[0].attempt))
        if not is_relative or usual.get(run.family)
    ]
    return History(
        figure=figure,
        points=points,
        before=_level(point for point in points if not point.is_after),
        after=_level(point for point in points if point.is_after),
        change=change,
        is_relative=is_relative,
    )


def in_order(families: Iterable[Family], found: Sequence[Regression]) -> list[Family]:
    """Families that became slower first, then those with most jobs."""
    slower = {each.family for each in found}
    return sorted(families, key=lambda each: (each.family not in slower, -each.jobs, each.family))


def _usual(valued: Iterable[tuple[RunRow, float]], since: float | None) -> dict[str, float]:
    """By family the median over jobs of the runs before a change; families without any are left out."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run, value in valued:
        if since is None or run.start < since:
            values[run.family][run.job_id].append(value)
    return {family: median([median(each) for each in jobs.values()]) for family, jobs in values.items()}


def _level(points: Iterable[Point]) -> float | None:
    by_job: dict[str, list[float]] = defaultdict(list)
    for point in points:
        by_job[point.job_id].append(point.drawn)
    return median([median(each) for each in by_job.values()]) if by_job else None
