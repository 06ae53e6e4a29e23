"""Where a trailing window begins in an attempt that is over: a few minutes of it in columns.

The beginning of a window moves along with the time. What lies in the next minutes is held in columns, and the
rest of the attempt in sum, so that most questions need nothing of what the attempt has put away.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

from ett_core.accounting.account import NS, Stretch
from ett_core.accounting.partition import Partition, Totals
from ett_core.components import DATA_WAIT, STALLED, TRAINING, UNSAVED_TRAINING

HELD_NS = 300 * NS
SHARED = (DATA_WAIT, STALLED, TRAINING, UNSAVED_TRAINING)
"""Components that share a stretch, in their order in it."""


class Edge:
    """The stretches of a partition from a moment on, for some minutes, and the sum of those after them."""

    __slots__ = ("_ends", "_rest", "_shares", "_start_ns", "partition")

    def __init__(self, partition: Partition, begin_ns: int) -> None:
        """Hold what `window` needs from `begin_ns` on, which lies in the span of the partition."""
        self.partition = partition
        self._start_ns = begin_ns
        self._ends = array("q")
        self._shares: dict[str, array[int]] = {}
        for stretch in partition.uncut(begin_ns):
            if stretch.end_ns > begin_ns:
                self._hold(stretch)
                if stretch.end_ns >= begin_ns + HELD_NS:
                    break
        in_order = [*SHARED, *(component for component in self._shares if component not in SHARED)]
        self._shares = {name: self._shares[name] for name in in_order if name in self._shares}
        self._rest: Totals = partition.window(self._ends[-1], partition.span.end_ns)

    def _hold(self, stretch: Stretch) -> None:
        if not self._ends:
            self._start_ns = stretch.start_ns
        rows = len(self._ends)
        self._ends.append(stretch.end_ns)
        for component, amount in stretch.shares:
            column = self._shares.setdefault(component, array("q"))
            column.extend([0] * (rows - len(column)))
            column.append(amount)

    def holds(self, partition: Partition, begin_ns: int) -> bool:
        """Whether it knows where a window that begins then cuts this partition."""
        return self._start_ns <= begin_ns < self._ends[-1] and partition is self.partition

    def window(self, begin_ns: int) -> Totals:
        """Nanoseconds by component from a moment that it holds to the end of the partition."""
        place = bisect_right(self._ends, begin_ns)
        start_ns = self._ends[place - 1] if place else self._start_ns
        shares = tuple(
            (component, column[place])
            for component, column in self._shares.items()
            if place < len(column) and column[place]
        )
        totals = dict(self._rest)
        cut = Stretch(start_ns, self._ends[place], 0, shares).cut(begin_ns, self._ends[place])
        for component, amount in cut.shares:
            totals[component] = totals.get(component, 0) + amount
        for component, column in self._shares.items():
            if later := sum(column[place + 1 :]):
                totals[component] = totals.get(component, 0) + later
        return totals
