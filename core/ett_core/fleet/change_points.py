"""Where a figure changed: the moment that cuts the runs of jobs best in two. Pure.

What is compared is one number a job on either side of a moment, the median of its runs, after the
effect of the world size (Theil and Sen) is taken off, by the ranks of those numbers (Mann and Whitney)
and only within a family: a job that starts often counts once, and one run that went wrong moves
nothing. The probability is exact, and multiplied by the number of moments that were tried.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from ett_core.fleet.tails import median, rank_sum_tail

FEWEST_JOBS = 4
"""Jobs with new runs, and jobs with runs before, without which nothing is compared."""
TELLING = 1e-4
"""Cuts of which even the clearest outcome would be more probable than this are not tried."""
SLOPE_JOBS = 60
MOMENTS_TRIED = 100
"""Moments near a cut at which it is looked for more closely."""


class Point(NamedTuple):
    """A figure of one run: `value` is its logarithm, without the effect of the world size."""

    start: float
    job_id: str
    family: str
    size: float
    value: float
    plain: float


class Sides(NamedTuple):
    """One value a job with runs before a moment, and with runs since."""

    before: Sequence[float]
    after: Sequence[float]


def levelled(points: Sequence[Point]) -> list[Point]:
    """The same points without what goes with the world size."""
    slope = _slope(points)
    return [point._replace(value=point.value - slope * point.size) for point in points]


def _slope(points: Sequence[Point]) -> float:
    """Median slope over pairs of jobs of one family that differ in size; 0 without such pairs."""
    first: dict[str, dict[str, Point]] = defaultdict(dict)
    for point in points:
        first[point.family].setdefault(point.job_id, point)
    slopes = [
        (b.value - a.value) / (b.size - a.size)
        for jobs in first.values()
        for a, b in combinations(list(jobs.values())[-SLOPE_JOBS:], 2)
        if a.size != b.size
    ]
    return median(slopes) if slopes else 0.0


def improbable_cut(points: Sequence[Point]) -> tuple[float, float] | None:
    """The moment after which ranks are most improbable, and that probability for all moments tried.

    Moments with too few jobs on a side to tell anything, whatever their figures, are not tried.
    """
    cuts = [(since, sides_of(points, since).values()) for since in _moments(points)]
    tried = [(since, _tail(sides)) for since, sides in cuts if _rarest(sides) < TELLING]
    if not tried:
        return None
    since, tail = min(tried, key=lambda each: each[1])
    return since, min(1.0, tail * len(tried))


def _moments(points: Sequence[Point]) -> list[float]:
    """Moments to cut at, closer together the later: a few jobs ago, half as many more, and so on."""
    moments: list[float] = []
    seen: set[str] = set()
    wanted = FEWEST_JOBS
    for place in range(len(points) - 1, 0, -1):
        seen.add(points[place].job_id)
        if len(seen) < wanted or points[place].start == points[place - 1].start:
            continue
        before = {point.job_id for point in points[:place]}
        if len(before) < FEWEST_JOBS:
            break
        moments.append(points[place].start)
        wanted = len(seen) + max(1, len(seen) // 4)
    return moments


def sides_of(points: Sequence[Point], since: float) -> dict[str, Sides]:
    """By family with runs on both sides, one value for each job with runs before, and with runs since."""
    gathered: dict[str, tuple[dict[str, list[float]], dict[str, list[float]]]] = {}
    for point in points:
        sides = gathered.setdefault(point.family, ({}, {}))
        sides[point.start >= since].setdefault(point.job_id, []).append(point.value)
    return {
        family: Sides([median(v) for v in before.values()], [median(v) for v in after.values()])
        for family, (before, after) in gathered.items()
        if before and after
    }


def _rarest(sides: Iterable[Sides]) -> float:
    """The probability that all values since are larger than all before, which is the rarest outcome."""
    return math.prod(1.0 / math.comb(len(old) + len(new), len(new)) for old, new in sides)


def _tail(sides: Iterable[Sides]) -> float:
    larger = sum(1 for side in sides for old in side.before for new in side.after if new > old)
    return rank_sum_tail(larger, [(len(side.before), len(side.after)) for side in sides])


def best_cut(points: Sequence[Point], since: float) -> float:
    """The moment near a cut that parts the figures best: with the least deviation from two medians."""
    starts = sorted({point.start for point in points})
    near = starts.index(since)
    span = max(len(starts) // 4, FEWEST_JOBS)
    rivals = starts[max(near - span, 1) : near + span]
    rivals = rivals[:: max(1, len(rivals) // MOMENTS_TRIED)]
    rivals = [since, *(at for at in rivals if _is_enough(points, at))]
    return min(rivals, key=lambda at: (_deviation(points, at), abs(starts.index(at) - near)))


def _is_enough(points: Sequence[Point], since: float) -> bool:
    sides = sides_of(points, since).values()
    return min(sum(len(side.before) for side in sides), sum(len(side.after) for side in sides)) >= FEWEST_JOBS


def _deviation(points: Sequence[Point], since: float) -> float:
    """How far the figures lie from the median of their family on their side of a cut, summed."""
    groups: dict[tuple[str, bool], list[float]] = defaultdict(list)
    for point in points:
        groups[point.family, point.start >= since].append(point.value)
    return sum(sum(abs(value - middle) for value in g) for g in groups.values() for middle in [median(g)])
