"""How long the steps of a job took, over all ranks and attempts.

Part of the details fold (`ett_core.details`): held by one thread, in any order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ett_core.runs import Row
from ett_core.step_times import quantile


class StepTimes(msgspec.Struct, frozen=True, gc=False):
    """How long steps took, without data wait, over all ranks and attempts of a job.

    Quantiles are within `step_times.RELATIVE_ERROR`. `timed` is the number of steps behind them: those
    of reports that hold a histogram.
    """

    timed: int
    p50_s: float
    p99_s: float
    max_s: float


class StepLengthsState(NamedTuple):
    """A `StepLengths` as a value."""

    steps: dict[int, int]
    longest_s: float


class StepLengths:
    """The fold: `add` histograms, then `read`."""

    __slots__ = ("_longest_s", "_steps")

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        self._longest_s = 0.0

    def add(self, rows: Iterable[Row]) -> None:
        """Take in the steps of reports; without a histogram they do not count."""
        total, longest_s = self._steps, self._longest_s
        known = total.get
        for _, _, _, _, _, _, max_s, _, buckets in rows:
            if buckets:
                longest_s = max(longest_s, max_s)
                for bucket, steps in buckets.items():
                    total[bucket] = known(bucket, 0) + steps
        self._longest_s = longest_s

    def read(self) -> StepTimes | None:
        """How long steps took; None where no report holds a histogram."""
        p50_s, p99_s = quantile(self._steps, 0.5), quantile(self._steps, 0.99)
        if p50_s is None or p99_s is None:
            return None
        longest_s = self._longest_s
        return StepTimes(sum(self._steps.values()), min(p50_s, longest_s), min(p99_s, longest_s), longest_s)

    def state(self) -> StepLengthsState:
        """The lengths as a value."""
        return StepLengthsState(dict(self._steps), self._longest_s)

    @classmethod
    def of_state(cls, state: StepLengthsState) -> StepLengths:
        """The lengths that gave `state`."""
        lengths = cls()
        lengths._steps, lengths._longest_s = dict(state.steps), state.longest_s
        return lengths
