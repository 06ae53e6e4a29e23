"""How fast a job went over its life: steps and samples in equal parts of time, as many however long it lasts.

A streaming fold, held by one thread at a time (the caller locks). Events come in any order, each once;
order changes nothing but the rounding of sums. Parts begin at whole multiples of their width. Once the life
of the job no longer fits into `PARTS` of them, two become one:

    width 1 s    | 5 | 5 | 5 | 0 | 5 |   ->   width 2 s    | 10  |  5  |  5  |

Reports cover the time in which their steps ran, and are spread over it: all ranks but the first report no
more than once a minute. Samples are those of all ranks, steps those of the lowest rank that reports any.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ett_core.runs import Row

PARTS = 96
"""Parts of time that are kept at most; of a job older than that many seconds at least half as many."""
FINEST_S = 1.0
LONGEST_REPORT_S = 3600.0
"""A report is spread over no more than this."""
NOBODY = 1 << 62


class Throughput(msgspec.Struct, frozen=True, gc=False):
    """Steps and samples in parts of `width_s` seconds, the first of which begins at `begin` (Unix seconds).

    The last part may still be going on.
    """

    begin: float
    width_s: float
    steps: tuple[float, ...]
    samples: tuple[float, ...]


class ThroughputState(NamedTuple):
    """A `ThroughputFold` as a value."""

    width_s: float = FINEST_S
    first: int = 0
    rank: int = NOBODY
    steps: tuple[float, ...] = ()
    samples: tuple[float, ...] = ()


NOTHING = ThroughputState()


class ThroughputFold:
    """The fold: `add` progress reports, then `read`.

    >>> fold = ThroughputFold()
    >>> ends = [1000.0 + second for second in range(1, 193)]
    >>> fold.add(0, [(end, end, 1, 8.0, 0, 0.0, 0.0, 0.0, {}) for end in ends])
    >>> told = fold.read()
    >>> told.begin, told.width_s, told.steps[:3], told.samples[1], len(told.steps)
    (1000.0, 4.0, (3.0, 4.0, 4.0), 32.0, 49)
    """

    __slots__ = ("_first", "_rank", "_samples", "_steps", "_width_s")

    def __init__(self, state: ThroughputState = NOTHING) -> None:
        """Start with nothing, or go on from a state."""
        self._width_s, self._first, self._rank = state.width_s, state.first, state.rank
        self._steps, self._samples = array("d", state.steps), array("d", state.samples)

    def add(self, rank: int, rows: Sequence[Row]) -> None:
        """Take in reports of a rank, which is 0 or more."""
        if rank < self._rank and any(row[2] for row in rows):
            self._rank = rank
            self._steps = array("d", bytes(8 * len(self._steps)))
        is_counted = rank == self._rank
        part_begin, part_end, place = math.inf, -math.inf, 0
        for end, begin, told_steps, samples, _, _, _, _, _ in rows:
            steps = told_steps if is_counted else 0
            if begin >= part_begin and end < part_end:
                self._steps[place] += steps
                self._samples[place] += samples
            elif told_steps or samples:
                part = self._spread(max(begin, end - LONGEST_REPORT_S), end, steps, samples)
                part_begin, part_end = part * self._width_s, (part + 1) * self._width_s
                place = part - self._first

    def _spread(self, begin: float, end: float, steps: float, samples: float) -> int:
        """Spread one report over the parts that it lies in; gives the last of them."""
        width_s, first = self._width_s, self._first
        low, high = int(begin // width_s), int(end // width_s)
        if low < first or high - first >= len(self._steps):
            width_s = self._make_room(begin, end)
            first = self._first
            low, high = int(begin // width_s), int(end // width_s)
        if low == high:
            self._steps[low - first] += steps
            self._samples[low - first] += samples
            return high
        for part in range(low, high + 1):
            inside_s = min(end, (part + 1) * width_s) - max(begin, part * width_s)
            share = inside_s / (end - begin)
            self._steps[part - first] += steps * share
            self._samples[part - first] += samples * share
        return high

    def read(self) -> Throughput | None:
        """What was told so far; None where nobody reported progress."""
        if not self._steps:
            return None
        return Throughput(
            self._first * self._width_s, self._width_s, tuple(self._steps), tuple(self._samples)
        )

    def state(self) -> ThroughputState:
        """The fold as a value, of which another one is made."""
        return ThroughputState(
            self._width_s, self._first, self._rank, tuple(self._steps), tuple(self._samples)
        )

    def _make_room(self, begin: float, end: float) -> float:
        """Have a place for each part between two moments; gives the width of parts, wider if many."""
        width_s, known = self._width_s, len(self._steps)
        while True:
            low, high = int(begin // width_s), int(end // width_s)
            if known:
                low = min(low, int(self._first * self._width_s // width_s))
                high = max(high, int((self._first + known - 1) * self._width_s // width_s))
            if high - low < PARTS:
                break
            width_s *= 2.0
        if width_s == self._width_s and low == self._first and known:
            more = bytes(8 * (high - low + 1 - known))
            self._steps.frombytes(more)
            self._samples.frombytes(more)
            return width_s
        self._steps = self._laid(self._steps, low, high, width_s)
        self._samples = self._laid(self._samples, low, high, width_s)
        self._first, self._width_s = low, width_s
        return width_s

    def _laid(self, amounts: array[float], low: int, high: int, width_s: float) -> array[float]:
        """Amounts by the parts as they are, laid into other parts from `low` to `high`."""
        ratio = round(width_s / self._width_s)
        laid = array("d", bytes(8 * (high - low + 1)))
        for place, amount in enumerate(amounts):
            laid[(self._first + place) // ratio - low] += amount
        return laid
