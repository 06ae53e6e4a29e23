"""Checkpoint intervals: what saving costs, what not saving costs, and where the sum is least.

Pure formulas, no state. A checkpoint every `interval_s` seconds blocks the trainer `blocking_s`
each time and, where it goes on in the background, slows the steps beside it by `slowed_s`; together
that is what a save costs. Every failure loses, on average, half an interval plus the upload that had
not ended when it struck:

    wasted(interval) = train / interval * cost  +  failures * (interval / 2 + upload + recovery)

The sum is least where both interval-dependent terms are equal, at
`sqrt(2 * cost * train / failures)`. Upload and recovery do not move that point: a failure
pays for them whatever the interval is. Upload does bound the interval from below where only one
save may be in flight.

Source: J. W. Young, "A first order approximation to the optimum checkpoint interval" (1974);
J. T. Daly, "A higher order estimate of the optimum checkpoint interval" (2006) for its limits (it
holds while that cost is small beside the mean time between failures) and its refinement;
A. Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters" (2024)
for the expected share of effective training and failures by node and day.

>>> costs = Costs(blocking_s=15, failures=3, train_s=86400)
>>> round(optimal_interval_s(costs), 1), round(wasted(costs).percent, 3)
(929.5, 3.227)
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from ett_core.components import CHECKPOINT_BLOCKING, UNSAVED_TRAINING, loop_seconds

DAY_S = 86_400.0
CONFIDENCE = 0.9
"""Probability that limits hold the truth, half of the rest on either side."""


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """What a job pays: seconds a save blocks, failures in `train_s` seconds, seconds of upload.

    `slowed_s`: seconds by which a save slows the steps beside it. `train_s` are seconds in which its loop
    went on: see `ett_core.components.loop_seconds`.
    `recovery_s`: seconds from a failure back to the loop, where they are to be counted as well.

    Raises:
        ValueError: a figure is not finite, a duration is not above zero, or the number of
            failures, the slowing, the upload or the recovery is negative. A save that slows need not block.
    """

    blocking_s: float
    failures: float
    train_s: float
    upload_s: float = 0.0
    recovery_s: float = 0.0
    slowed_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse figures that have no meaning."""
        _require_not_negative("slowing of steps", self.slowed_s)
        check = _require_not_negative if self.slowed_s else _require_above_zero
        check("blocking time", self.blocking_s)
        _require_above_zero("training time", self.train_s)
        _require_not_negative("number of failures", self.failures)
        _require_not_negative("upload time", self.upload_s)
        _require_not_negative("recovery time", self.recovery_s)

    @property
    def save_s(self) -> float:
        """Seconds that one save costs."""
        return self.blocking_s + self.slowed_s

    @property
    def mtbf_s(self) -> float | None:
        """Mean time between failures in seconds; None where nothing fails."""
        return self.train_s / self.failures if self.failures else None


class Waste(msgspec.Struct, frozen=True, kw_only=True):
    """Expected cost of one interval over the training time, in seconds; None is never saving."""

    interval_s: float | None
    checkpoints: float
    blocking_s: float
    lost_s: float
    train_s: float
    recovery_s: float = 0.0
    slowed_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Seconds blocked, slowed by, trained in vain and spent in recovery, together."""
        return self.blocking_s + self.slowed_s + self.lost_s + self.recovery_s

    @property
    def percent(self) -> float:
        """`total_s` as a share of the training time, in percent."""
        return 100.0 * self.total_s / self.train_s


def costs_of_job(  # noqa: PLR0913 - one figure each
    components: Mapping[str, float],
    *,
    saves: int,
    blocking_s: float,
    failures: int,
    upload_s: float = 0.0,
    slowed_s: float | None = None,
) -> Costs | None:
    """What saves and failures of a job cost so far; None of one that never saved or never trained.

    Args:
        components: seconds by component so far.
        saves: how many checkpoints it took.
        blocking_s: seconds that all of them together blocked the trainer.
        failures: attempts that failed in their loop (`JobAccount.loop_failures`).
        upload_s: from a save to its durability.
        slowed_s: by how much one save slows the steps beside it; where None says that nobody knows, the
            costs are those of blocking alone.

    A job that trained for an hour and is dead since yesterday is like one that is dead since a minute:

    >>> dead = costs_of_job({"training": 3600.0, "recover.restart": 86_400.0},
    ...                     saves=6, blocking_s=30.0, failures=2)
    >>> dead.train_s, round(optimal_interval_s(dead), 1)
    (3600.0, 134.2)
    """
    train_s = loop_seconds(components)
    slowed_s = slowed_s or 0.0
    if not saves or not blocking_s + slowed_s > 0 or not train_s > 0:
        return None
    return Costs(
        blocking_s=blocking_s / saves,
        failures=failures,
        train_s=train_s,
        upload_s=upload_s,
        slowed_s=slowed_s,
    )


def measured_s(components: Mapping[str, float], costs: Costs, saves: int) -> float:
    """What saves and failures of a job took so far: seconds blocked, slowed by, and trained in vain.

    >>> measured_s({"checkpoint_blocking": 4.0, "unsaved_training": 9.0},
    ...            Costs(blocking_s=2.0, slowed_s=0.5, failures=1, train_s=60.0), 2)
    14.0
    """
    blocked_s, unsaved_s = components.get(CHECKPOINT_BLOCKING, 0.0), components.get(UNSAVED_TRAINING, 0.0)
    return blocked_s + saves * costs.slowed_s + unsaved_s


def costs_from_mtbf(  # noqa: PLR0913 - one figure each
    *,
    blocking_s: float,
    mtbf_s: float,
    train_s: float = DAY_S,
    upload_s: float = 0.0,
    recovery_s: float = 0.0,
    slowed_s: float = 0.0,
) -> Costs:
    """The same costs, from the mean time between failures instead of their number.

    Raises:
        ValueError: as `Costs`, or `mtbf_s` is not above zero.
    """
    _require_above_zero("mean time between failures", mtbf_s)
    return Costs(
        blocking_s=blocking_s,
        failures=train_s / mtbf_s,
        train_s=train_s,
        upload_s=upload_s,
        recovery_s=recovery_s,
        slowed_s=slowed_s,
    )


def costs_from_nodes(  # noqa: PLR0913 - one figure each
    *,
    blocking_s: float,
    nodes: float,
    failures_in_1000_node_days: float,
    train_s: float = DAY_S,
    upload_s: float = 0.0,
    recovery_s: float = 0.0,
    slowed_s: float = 0.0,
) -> Costs:
    """The same costs, from the number of nodes and the rate at which nodes fail.

    Raises:
        ValueError: as `Costs`, or one of the two is not above zero.

    >>> costs = costs_from_nodes(blocking_s=300, nodes=256, failures_in_1000_node_days=6.5, recovery_s=300)
    >>> round(costs.mtbf_s / 3600, 2), round(optimal_interval_s(costs) / 60, 1)
    (14.42, 93.0)
    """
    _require_above_zero("number of nodes", nodes)
    _require_above_zero("failures in 1,000 node-days", failures_in_1000_node_days)
    failures = nodes * failures_in_1000_node_days / 1000.0 * train_s / DAY_S
    return Costs(
        blocking_s=blocking_s,
        failures=failures,
        train_s=train_s,
        upload_s=upload_s,
        recovery_s=recovery_s,
        slowed_s=slowed_s,
    )


def optimal_interval_s(costs: Costs) -> float | None:
    """Seconds between saves that waste least; None where nothing fails, as no save then pays."""
    if costs.mtbf_s is None:
        return None
    return math.sqrt(2.0 * costs.save_s * costs.mtbf_s)


def refined_interval_s(costs: Costs) -> float | None:
    """Seconds between two saves (Daly 2006, equation 37), slowed steps included; None where nothing fails.

    It counts failures that strike while a save blocks or while lost training is repeated, and is right
    where what a save costs is not small; where that is twice the time between failures, it is that time.

    >>> round(refined_interval_s(costs_from_mtbf(blocking_s=300, mtbf_s=DAY_S)) / 60, 1)
    116.7
    """
    if costs.mtbf_s is None:
        return None
    share = costs.save_s / (2.0 * costs.mtbf_s)
    if share >= 1.0:
        return costs.mtbf_s
    first_s = math.sqrt(2.0 * costs.save_s * costs.mtbf_s)
    return first_s * (1.0 + math.sqrt(share) / 3.0 + share / 9.0) - costs.blocking_s


def expected_ettr(costs: Costs, interval_s: float | None = None) -> float:
    """Share of the time, queueing aside, that trains and is kept (Kokolis et al.); by default at the optimum.

    Of the time between failures one recovery, one upload and half an interval are lost; of the rest
    saves take their share. 0 where a failure comes sooner than that.

    Raises:
        ValueError: the interval is not finite or not above zero.

    >>> round(expected_ettr(costs_from_nodes(
    ...     blocking_s=300, nodes=256, failures_in_1000_node_days=6.5, recovery_s=300)), 4)
    0.8925
    """
    interval_s = optimal_interval_s(costs) if interval_s is None else interval_s
    if interval_s is None:
        return 1.0
    _require_above_zero("interval", interval_s)
    lost_s = costs.recovery_s + costs.upload_s + interval_s / 2.0
    kept = 1.0 - lost_s / costs.mtbf_s if costs.mtbf_s is not None else 1.0
    return max(kept, 0.0) / (1.0 + costs.save_s / interval_s)


def wasted(costs: Costs, interval_s: float | None = None) -> Waste:
    """What `interval_s` is expected to waste; by default the optimum.

    Raises:
        ValueError: the interval is not finite or not above zero.
    """
    interval_s = optimal_interval_s(costs) if interval_s is None else interval_s
    if interval_s is None:
        return Waste(interval_s=None, checkpoints=0.0, blocking_s=0.0, lost_s=0.0, train_s=costs.train_s)
    _require_above_zero("interval", interval_s)
    checkpoints = costs.train_s / interval_s
    return Waste(
        interval_s=interval_s,
        checkpoints=checkpoints,
        blocking_s=checkpoints * costs.blocking_s,
        lost_s=costs.failures * (interval_s / 2.0 + costs.upload_s),
        train_s=costs.train_s,
        recovery_s=costs.failures * costs.recovery_s,
        slowed_s=checkpoints * costs.slowed_s,
    )


def failure_range(failures: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The numbers of failures to expect where so many were seen: exact limits of a Poisson process.

    >>> [round(limit, 2) for limit in failure_range(3)], round(failure_range(0)[1], 2)
    ([0.82, 7.75], 3.0)
    """
    tail = (1.0 - confidence) / 2.0
    low = _mean_where(failures - 1, 1.0 - tail) if failures else 0.0
    return low, _mean_where(failures, tail)


def interval_range_s(costs: Costs, confidence: float = CONFIDENCE) -> tuple[float, float | None]:
    """The shortest and the longest optimum that the failures seen leave possible (None: no longest)."""
    low, high = failure_range(round(costs.failures), confidence)
    shortest = optimal_interval_s(msgspec.structs.replace(costs, failures=high))
    longest = optimal_interval_s(msgspec.structs.replace(costs, failures=low))
    assert shortest is not None  # noqa: S101 - the upper limit is above zero
    return shortest, longest


def _mean_where(count: int, probability: float) -> float:
    """The mean at which a Poisson variable is at most `count` with a probability."""
    low, high = 0.0, count + 10.0 * math.sqrt(count + 1.0) + 10.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if _at_most(count, middle) > probability:
            low = middle
        else:
            high = middle
    return low


def _at_most(count: int, mean: float) -> float:
    if not mean:
        return 1.0
    terms = (k * math.log(mean) - mean - math.lgamma(k + 1) for k in range(count + 1))
    return math.fsum(map(math.exp, terms))


def cautions(costs: Costs) -> list[str]:
    """Sentences that say where the formula, applied to these costs, should not be trusted."""
    optimum_s, mtbf_s = optimal_interval_s(costs), costs.mtbf_s
    if optimum_s is None or mtbf_s is None:
        return ["Nothing fails, so no checkpoint pays for itself: there is no optimal interval."]
    found = []
    if costs.save_s >= mtbf_s / 2.0:
        what = "What a save costs" if costs.slowed_s else "Blocking"
        found.append(f"{what} is not small beside the time between failures: the formula does not hold.")
    if optimum_s > costs.train_s:
        found.append("The optimum is longer than the training time: not one checkpoint pays for itself.")
    if costs.upload_s > optimum_s:
        found.append("An upload takes longer than the optimum: save no more often than uploads end.")
    return found


def _require_above_zero(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number above zero, not {value:g}")


def _require_not_negative(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number, zero or more, not {value:g}")
