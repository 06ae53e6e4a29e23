"""Which checkpoint interval a running job should use, from what it and others have seen. Pure.

What is known of the rate of failures beforehand is known within a factor only: it is a mixture of gamma
distributions of shape 1 around it. The failures of the job and the time in which they struck then say
which of them are likely, and a job that fails far more often than was thought is believed after two
or three failures. As wasted time is linear in the rate, the mean of what results is what the interval
is chosen for. Beforehand is what jobs of a like size have seen, where there are any, or a supposition.

The optimum of `ett_core.intervals` then holds within bounds, and an interval in use stays until another
one is clearly better: near the optimum the curve is flat.

>>> rate = failure_rate(Seen(failures=2, train_s=72_000), Before(rate_per_s=1 / 36_000))
>>> choice = choose(Measured(blocking_s=10, upload_s=60), rate, Bounds())
>>> round(choice.interval_s), choice.changed
(846, True)
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from ett_core.intervals import DAY_S, Costs, optimal_interval_s, wasted

ALIKE = 4.0
"""Jobs whose accelerators differ by no more than this factor are of a like size."""
SUPPOSED_NODE_FAILURES = 6.5
"""Failures in 1,000 node-days that are supposed where nothing is known (Kokolis et al. 2024)."""
WITHIN_SUPPOSED, WITHIN_FLEET = 100.0, 10.0
"""Factors by which a job may differ from what is supposed of it, and from others of its size."""
_LIKELY = ((-1.0, 1), (-0.5, 4), (0.0, 6), (0.5, 4), (1.0, 1), (2.0, 1 / 64))
"""How likely rates are beforehand: powers of the factor with their weights.

One job in a thousand is not what was supposed at all: it fails again and again.
"""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Failures in so many seconds of training.

    Raises:
        ValueError: one of them is negative or not finite.
    """

    failures: float = 0.0
    train_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot have been seen."""
        for name, value in (("failures", self.failures), ("train_s", self.train_s)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number, zero or more, not {value:g}")


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the rate before the job has seen failures.

    About `rate_per_s` failures a second, `within` a factor in either direction, but for one job in a
    thousand that fails far more often; `source` says whence.

    Raises:
        ValueError: the rate is not finite or not above zero, or the factor is below 1.
    """

    rate_per_s: float
    within: float = WITHIN_SUPPOSED
    source: str = "supposed"

    def __post_init__(self) -> None:
        """Refuse a rate from which nothing could be learnt."""
        if not 1 <= self.within < math.inf:
            raise ValueError(f"a factor within which a rate is known is at least 1, not {self.within:g}")
        if not (math.isfinite(self.rate_per_s) and self.rate_per_s > 0):
            raise ValueError(f"a rate of failures must be finite and above zero, not {self.rate_per_s:g}")


class JobSeen(msgspec.Struct, frozen=True, kw_only=True):
    """Another job of the fleet: its failures, its seconds, its accelerators."""

    failures: float
    train_s: float
    accelerators: float


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """The rate of failures that is reckoned with: its mean a second, and what it was made of."""

    per_s: float
    own: Seen
    before: Before

    @property
    def between_s(self) -> float:
        """Expected seconds between two failures."""
        return 1.0 / self.per_s


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What saves of the job take, in seconds.

    `blocking_s`: one blocks the trainer. `slowed_s`: training loses beside one that is on its way.
    `upload_s`: until one is durable.
    """

    blocking_s: float
    upload_s: float = 0.0
    slowed_s: float = 0.0

    @property
    def lost_s(self) -> float:
        """Seconds of training that one save costs."""
        return self.blocking_s + self.slowed_s


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Between which intervals the choice is free, in seconds, and when it is worth changing.

    `longest_s`: never less often; it holds whatever else is asked for. `shortest_s`: never more often.
    `first_s`: until a save has been measured. `waste_more`: an interval stays while it is expected
    to waste no more than this share above the best one.

    Raises:
        ValueError: an interval is not above zero, or the bounds are in the wrong order.
    """

    longest_s: float = 3600.0
    shortest_s: float = 10.0
    first_s: float = 300.0
    waste_more: float = 0.01

    def __post_init__(self) -> None:
        """Refuse bounds between which nothing lies."""
        if not 0 < self.shortest_s <= self.longest_s < math.inf:
            raise ValueError(
                f"the shortest interval ({self.shortest_s:g} s) must be above zero and at most the longest "
                f"({self.longest_s:g} s)"
            )
        if not (math.isfinite(self.first_s) and self.first_s > 0):
            raise ValueError(f"the first interval must be above zero, not {self.first_s:g} s")
        if not 0 <= self.waste_more < 1:
            raise ValueError(f"waste_more must be a share from 0 to below 1, not {self.waste_more:g}")


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The interval to use, in seconds; `changed` tells whether it is another one, `why` is a sentence."""

    interval_s: float
    best_s: float
    changed: bool
    why: str
    values: dict[str, float]


def supposed(nodes: float) -> Before:
    """What is supposed of a job of so many nodes where nobody has seen any."""
    return Before(
        rate_per_s=nodes * SUPPOSED_NODE_FAILURES / 1000.0 / DAY_S,
        source=f"supposed of {nodes:g} nodes" if nodes != 1 else "supposed of one node",
    )


def before_from_fleet(jobs: Iterable[JobSeen], accelerators: float, otherwise: Before) -> Before:
    """What jobs of a like size have seen, else `otherwise`.

    >>> others = [JobSeen(failures=90, train_s=9e6, accelerators=8),
    ...           JobSeen(failures=0, train_s=1e9, accelerators=1024)]
    >>> before = before_from_fleet(others, 16, Before(rate_per_s=1e-7))
    >>> f"{before.rate_per_s:.2g}", before.within, before.source
    ('1e-05', 10.0, 'of 1 job of a like size')
    """
    alike = [job for job in jobs if job.accelerators / ALIKE <= accelerators <= job.accelerators * ALIKE]
    if not alike:
        return otherwise
    seen = Seen(
        failures=math.fsum(job.failures for job in alike), train_s=math.fsum(job.train_s for job in alike)
    )
    several = "1 job" if len(alike) == 1 else f"{len(alike):,} jobs"
    return Before(
        rate_per_s=failure_rate(seen, otherwise).per_s,
        within=WITHIN_FLEET,
        source=f"of {several} of a like size",
    )


def failure_rate(own: Seen, before: Before) -> Rate:
    """The rate to reckon with: what was known beforehand, corrected by what the job has seen."""
    # a gamma of shape 1 and scale 1/e: after n failures in t seconds its mean is (n + 1) / (t + e), and it is
    # likely in the measure of e / (t + e)^(n + 1)
    exposures_s = [1.0 / before.rate_per_s / before.within**power for power, _ in _LIKELY]
    logs = [
        math.log(weight * exposure_s) - (own.failures + 1.0) * math.log(own.train_s + exposure_s)
        for (_, weight), exposure_s in zip(_LIKELY, exposures_s, strict=True)
    ]
    likely = [math.exp(each - max(logs)) for each in logs]
    means = [(own.failures + 1.0) / (own.train_s + exposure_s) for exposure_s in exposures_s]
    per_s = math.fsum(map(math.prod, zip(likely, means, strict=True))) / math.fsum(likely)
    return Rate(per_s=per_s, own=own, before=before)


def choose(measured: Measured | None, rate: Rate, bounds: Bounds, in_use_s: float | None = None) -> Choice:
    """The interval that is expected to waste least within the bounds, or the one in use while that is near.

    Args:
        measured: what saves take; None before the first one.
        rate: the failures to reckon with.
        bounds: between which intervals the choice is free.
        in_use_s: the interval in use; None before the first choice.
    """
    if measured is None or not measured.lost_s > 0:
        first_s = min(max(bounds.first_s, bounds.shortest_s), bounds.longest_s)
        return _choice(first_s, first_s, in_use_s, "no save has been measured yet", {})
    costs = Costs(
        blocking_s=measured.blocking_s,
        slowed_s=measured.slowed_s,
        failures=rate.per_s,
        train_s=1.0,
        upload_s=measured.upload_s,
    )
    optimum_s = optimal_interval_s(costs)
    assert optimum_s is not None  # noqa: S101 - a rate is above zero
    best_s, bound = _within(optimum_s, measured, bounds)
    values = {
        "optimum_s": optimum_s,
        "blocking_s": measured.blocking_s,
        "slowed_s": measured.slowed_s,
        "upload_s": measured.upload_s,
        "between_failures_s": rate.between_s,
        "own_failures": rate.own.failures,
        "own_train_s": rate.own.train_s,
        "before_between_failures_s": 1.0 / rate.before.rate_per_s,
    }
    why = f"{_told(measured, rate)}: {optimum_s:,.0f} s would waste least{bound}"
    if in_use_s is not None and _stays(in_use_s, best_s, costs, bounds):
        return _choice(in_use_s, best_s, in_use_s, f"{why}; the one in use is near enough", values)
    return _choice(best_s, best_s, in_use_s, why, values)


def _within(optimum_s: float, measured: Measured, bounds: Bounds) -> tuple[float, str]:
    """The optimum within the bounds, and in words which of them it met."""
    floors = {
        f"; no more often than every {bounds.shortest_s:,.0f} s": bounds.shortest_s,
        "; one save at a time may be on its way": measured.upload_s,
        "; saves shall not cost more than half the time": measured.lost_s,
    }
    words = max(floors, key=lambda each: floors[each])
    best_s = max(optimum_s, floors[words])
    if best_s > bounds.longest_s:
        waits = ", although saves then wait for one another" if measured.upload_s > bounds.longest_s else ""
        return bounds.longest_s, f"; no less often than every {bounds.longest_s:,.0f} s{waits}"
    return best_s, words if best_s > optimum_s else ""


def _stays(in_use_s: float, best_s: float, costs: Costs, bounds: Bounds) -> bool:
    """Whether the interval in use is within the bounds and wastes hardly more than the best."""
    if not max(bounds.shortest_s, costs.upload_s) <= in_use_s <= bounds.longest_s:
        return in_use_s == best_s
    return wasted(costs, in_use_s).total_s <= (1.0 + bounds.waste_more) * wasted(costs, best_s).total_s


def _choice(
    interval_s: float, best_s: float, in_use_s: float | None, why: str, values: dict[str, float]
) -> Choice:
    known = {"interval_s": interval_s, "best_s": best_s, **values}
    return Choice(interval_s=interval_s, best_s=best_s, changed=interval_s != in_use_s, why=why, values=known)


def _told(measured: Measured, rate: Rate) -> str:
    own = f"{rate.own.failures:g} own in {rate.own.train_s / 3600:,.1f} h"
    before_h = 1.0 / rate.before.rate_per_s / 3600
    slows = f", slows training by {measured.slowed_s:.3g} s" if measured.slowed_s else ""
    return (
        f"a save blocks {measured.blocking_s:.3g} s{slows} and is durable after {measured.upload_s:.3g} s, "
        f"a failure is to be expected every {rate.between_s / 3600:,.1f} h "
        f"({own}; about one in {before_h:,.1f} h {rate.before.source})"
    )
