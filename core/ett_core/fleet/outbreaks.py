"""Outbreaks: a class of failures that strikes many jobs of several owners in a stretch of time. Pure.

A service that breaks, a capacity that is taken away, a release that many adopt: the rate of one
class, in jobs struck for an hour of running jobs, is higher within a stretch than around it.

    Given n strikes over E job-hours, and that nothing changed, those within a stretch of e
    job-hours are binomial: n trials, each with probability e / E.

The stretch is looked for: those that begin with a strike and last for one of a few lengths, or to
the end. The strike that marks its beginning is not counted against chance, and its probability is
multiplied by the number of stretches and classes that were looked at. A job that fails by one class
over and over is struck once.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec

from ett_core.fleet.rows import Failure, Run
from ett_core.fleet.tails import binomial_tail

FEWEST_JOBS = 3
FEWEST_OWNERS = 2
SMALLEST_FACTOR = 3.0
"""The rate within must be so many times the rate around."""
BELOW = 0.01
"""Probability, for all classes together, of an outbreak where nothing changed."""
LENGTHS_S = (1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0, 86_400.0, 172_800.0, 345_600.0)
STRIKES_READ = 200
"""Latest strikes of a class that are looked at, and the time since the one before them."""
ONGOING_WITHIN_S = 3600.0
"""It goes on while its last strike is no older than this, or than three of the gaps between its strikes."""
HOUR_S = 3600.0


class Outbreak(msgspec.Struct, frozen=True, gc=False):
    """One class in one stretch of time. Rates are jobs struck for each hour of a running job.

    `until` is null while it goes on. `log_likelihood_ratio`: how much better two rates explain the
    strikes than one does (natural logarithm). `factor` is null where there was none around it.
    """

    failure_class: str
    domain: str
    since: float
    until: float | None
    jobs: int
    owners: list[str]
    clusters: list[str]
    rate: float
    baseline: float
    factor: float | None
    probability: float
    log_likelihood_ratio: float
    lost_accelerator_s: float


class Exposure:
    """Job-hours: for how long jobs ran before any moment."""

    def __init__(self, runs: Iterable[Run], begin: float, end: float) -> None:
        spans = [(max(run.start, begin), min(run.end, end)) for run in runs]
        edges = sorted(edge for low, high in spans if high > low for edge in ((low, 1), (high, -1)))
        self._times = [at for at, _ in edges]
        self._running = list(accumulate(step for _, step in edges))
        lengths = [later - at for at, later in zip(self._times, self._times[1:], strict=False)]
        self._hours = [0.0, *accumulate(n * s / HOUR_S for n, s in zip(self._running, lengths, strict=False))]

    def until(self, moment: float) -> float:
        """Job-hours before a moment.

        >>> run = Run("j", 0, 0.0, 7200.0, "", "", "", "", 1, frozenset(), {}, "", {})
        >>> Exposure([run, run], 0.0, 7200.0).until(3600.0)
        2.0
        """
        place = bisect_right(self._times, moment) - 1
        if place < 0:
            return 0.0
        return self._hours[place] + self._running[place] * (moment - self._times[place]) / HOUR_S


def outbreaks(runs: Iterable[Run], failures: Sequence[Failure], begin: float, end: float) -> list[Outbreak]:
    """The outbreaks between two moments, the latest first; at most one a class."""
    exposure = Exposure(runs, begin, end)
    by_class: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        if begin <= failure.time < end:
            by_class[failure.failure_class].append(failure)
    struck = {name: strikes(members) for name, members in by_class.items()}
    struck = {name: first for name, first in struck.items() if len(first) >= FEWEST_JOBS}
    stretches = {name: _stretch(first, exposure, (begin, end)) for name, first in struck.items()}
    found = [
        outbreak
        for name, stretch in stretches.items()
        if stretch is not None and (outbreak := _told(by_class[name], stretch, len(struck), end)) is not None
    ]
    return sorted(found, key=lambda each: -each.since)


def strikes(failures: Iterable[Failure]) -> list[Failure]:
    """The first of every row of failures of one job, in order of time."""
    first = [failure for failure in failures if failure.recurrence.count == 1]
    return sorted(first, key=lambda failure: failure.time)


def _stretch(struck: Sequence[Failure], exposure: Exposure, span: tuple[float, float]) -> _Stretch | None:
    """The stretch that is most improbable by chance; None where none has a higher rate by far."""
    begin, end = span
    if len(struck) > STRIKES_READ:
        begin, struck = struck[-STRIKES_READ - 1].time, struck[-STRIKES_READ:]
    lengths = [length_s for length_s in LENGTHS_S if length_s < (end - begin) / 2] + [math.inf]
    times = [failure.time for failure in struck]
    all_hours, count = exposure.until(end) - exposure.until(begin), len(struck)
    best: _Stretch | None = None
    for first, at in enumerate(times):
        for length_s in lengths:
            upto = min(at + length_s, end)
            last = bisect_right(times, upto)
            share = (exposure.until(upto) - exposure.until(at)) / all_hours if all_hours else 1.0
            if last - first < FEWEST_JOBS or last - first <= SMALLEST_FACTOR * count * share:
                continue
            tail = min(1.0, binomial_tail(last - first - 1, count - 1, share) * count * len(lengths))
            if best is None or tail < best.probability:
                best = _Stretch(struck[first:last], count, share * all_hours, all_hours, tail)
    return best


class _Stretch(NamedTuple):
    """Strikes inside, of how many, the job-hours inside and in all, the probability by chance."""

    inside: Sequence[Failure]
    strikes: int
    spent: float
    all_hours: float
    probability: float

    @property
    def rate(self) -> float:
        return len(self.inside) / self.spent if self.spent > 0 else math.inf

    @property
    def baseline(self) -> float:
        spent = self.all_hours - self.spent
        return (self.strikes - len(self.inside)) / spent if spent > 0 else 0.0


def _told(members: Sequence[Failure], stretch: _Stretch, classes: int, end: float) -> Outbreak | None:
    """The outbreak in full, if it is large enough to be one; so many classes were looked at."""
    probability = min(1.0, classes * stretch.probability)
    inside, rate, baseline = stretch.inside, stretch.rate, stretch.baseline
    jobs = {failure.job_id for failure in inside}
    owners = sorted({failure.team for failure in inside} - {""})
    several_owners = len(owners) >= FEWEST_OWNERS or not owners
    if len(jobs) < FEWEST_JOBS or not several_owners or probability >= BELOW:
        return None
    if not math.isfinite(rate) or rate < SMALLEST_FACTOR * baseline:
        return None
    since, upto = inside[0].time, inside[-1].time
    gap_s = (upto - since) / (len(inside) - 1)
    going_on = end - upto < max(ONGOING_WITHIN_S, 3.0 * gap_s)
    cost = [f for f in members if since <= f.time and (going_on or f.time <= upto)]
    return Outbreak(
        failure_class=inside[0].failure_class,
        domain=inside[0].domain,
        since=since,
        until=None if going_on else upto,
        jobs=len(jobs),
        owners=owners,
        clusters=sorted({failure.cluster for failure in inside} - {""}),
        rate=rate,
        baseline=baseline,
        factor=rate / baseline if baseline else None,
        probability=probability,
        log_likelihood_ratio=_log_likelihood_ratio(
            len(inside), stretch.spent, stretch.strikes - len(inside), stretch.all_hours
        ),
        lost_accelerator_s=sum(failure.losses.accelerator_s for failure in cost),
    )


def _log_likelihood_ratio(inside: int, spent: float, around: int, all_hours: float) -> float:
    """Of two Poisson rates, within and around, against one.

    >>> round(_log_likelihood_ratio(5, 1.0, 5, 1.0 + 1.0), 9), _log_likelihood_ratio(8, 1.0, 0, 2.0) > 5.5
    (0.0, True)
    """
    parts = ((inside, spent), (around, all_hours - spent))
    apart = sum(count * math.log(count / hours) for count, hours in parts if count and hours > 0)
    return apart - (inside + around) * math.log((inside + around) / all_hours)
