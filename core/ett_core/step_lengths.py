"""How long the steps of a job took, over all ranks and attempts.

Part of the details fold (`ett_core.details`): held by one thread, in any order of arrival.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ett_core.events import StepSeconds
from ett_core.step_times import add_to, quantile


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

    def add(self, times: StepSeconds) -> None:
        """Take in the steps of one report; without a histogram they do not count."""
        if times.buckets:
            add_to(self._steps, times.buckets)
            self._longest_s = max(self._longest_s, times.max)

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
