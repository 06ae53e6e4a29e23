"""The curve of wasted time over the checkpoint interval, from a handful of figures. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from ett_core.intervals import (
    DAY_S,
    Costs,
    Waste,
    failure_range,
    interval_range_s,
    optimal_interval_s,
    wasted,
)
from ett_dashboard.checkpoints.rows import IntervalRow

POINTS = 160
SHORTEST_S = 1.0


class Supposed(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of the sliders: seconds, and failures in a day.

    `interval_s` is the one in use, if any, `measured_percent` what it wasted in truth; `seen` are the
    failures that were seen and the seconds in which: they say how sure the rate is.
    """

    failures_a_day: float
    blocking_s: float
    upload_s: float
    recovery_s: float
    interval_s: float | None = None
    measured_percent: float | None = None
    slowed_s: float = 0.0
    seen: tuple[int, float] | None = None

    @property
    def costs(self) -> Costs:
        """What a day of training pays."""
        return Costs(
            blocking_s=self.blocking_s,
            failures=self.failures_a_day,
            train_s=DAY_S,
            upload_s=self.upload_s,
            recovery_s=self.recovery_s,
            slowed_s=self.slowed_s,
        )

    @property
    def best(self) -> Waste | None:
        """What the best interval wastes; None where nothing fails."""
        best_s = optimal_interval_s(self.costs)
        return None if best_s is None else wasted(self.costs, best_s)

    @property
    def used_percent(self) -> float | None:
        """What the interval in use wastes: as measured, else by the model, but no more than all."""
        if self.measured_percent is not None or self.interval_s is None:
            return self.measured_percent
        return min(wasted(self.costs, self.interval_s).percent, 100.0)

    @property
    def range_s(self) -> tuple[float, float | None] | None:
        """Between which intervals the best one lies (90 % confidence); None where nothing was seen."""
        if self.seen is None:
            return None
        failures, within_s = self.seen
        return interval_range_s(replace(self.costs, failures=failures, train_s=within_s))


def supposed_of(job: IntervalRow) -> Supposed:
    """The figures of a job as they were measured, recovery aside, which no interval changes.

    Without a failure the rate is half of what it may be at most.
    """
    failures = float(job.failures) or failure_range(0)[1] / 2
    return Supposed(
        failures_a_day=failures * DAY_S / job.loop_s,
        blocking_s=job.blocking_s,
        upload_s=job.upload_s or 0.0,
        slowed_s=job.slowed_s or 0.0,
        recovery_s=0.0,
        interval_s=job.interval_s,
        measured_percent=job.wasted_percent,
        seen=(job.failures, job.loop_s),
    )


def points(supposed: Supposed) -> list[Waste]:
    """The curve: what intervals waste, from a twentieth of the best to twenty times of it."""
    known = [
        each
        for each in (
            optimal_interval_s(supposed.costs),
            supposed.interval_s,
            *(supposed.range_s or ()),
        )
        if each is not None
    ]
    if not known:
        return []
    low, high = max(min(known) / 8, SHORTEST_S), max(known) * 8
    return [wasted(supposed.costs, interval_s) for interval_s in _spread(low, high)]


def _spread(low: float, high: float) -> Sequence[float]:
    step = math.log(high / low) / (POINTS - 1)
    return [low * math.exp(step * place) for place in range(POINTS)]
