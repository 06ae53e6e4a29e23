"""Where a trailing window begins in an attempt that is over: a few minutes of it in columns.

The beginning of a window moves along with the time. What lies in the next minutes is held in columns, and the
rest of the attempt in sum, so that most questions need nothing of what the attempt has put away.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ett_core.accounting.account import NS, Stretch
from ett_core.accounting.gaps import cut
from ett_core.accounting.partition import Partition, Totals, add_up, merge
from ett_core.amounts import mask_of, names_of
from ett_core.components import DATA_WAIT, STALLED, TRAINING, UNSAVED_TRAINING

HELD_NS = 120 * NS
SHARED = (DATA_WAIT, STALLED, TRAINING, UNSAVED_TRAINING)
"""Components that share a stretch, in their order in it."""


class Slot(NamedTuple):
    """An attempt with the gap after it."""

    partition: Partition
    gap: Sequence[Stretch]

    @property
    def end_ns(self) -> int:
        """Where the next attempt starts."""
        return self.gap[-1].end_ns if self.gap else self.partition.span.end_ns

    def uncut(self, low: int) -> Iterator[Stretch]:
        """Its stretches in time order; those that end by a moment may be left out."""
        if low < self.partition.span.end_ns:
            yield from self.partition.uncut(low)
        yield from self.gap

    def window(self, begin_ns: int) -> Totals:
        """Nanoseconds by component from a moment to its end."""
        totals = add_up(cut(self.gap, begin_ns, self.end_ns))
        if begin_ns < self.partition.span.end_ns:
            merge(totals, self.partition.window(begin_ns, self.partition.span.end_ns))
        return totals


class Edge:
    """The stretches of a slot from a moment on, for some minutes, and the sum of those after them."""

    __slots__ = ("_names", "_rest", "_rest_mask", "_start_ns", "_table")

    def __init__(self, slot: Slot, begin_ns: int) -> None:
        """Hold what `window` needs from `begin_ns` on, which lies in the slot."""
        held: list[Stretch] = []
        for stretch in slot.uncut(begin_ns):
            if stretch.end_ns > begin_ns:
                held.append(stretch)
                if stretch.end_ns >= begin_ns + HELD_NS:
                    break
        told = dict.fromkeys(component for stretch in held for component, _ in stretch.shares)
        self._start_ns = held[0].start_ns
        self._names = (*(name for name in SHARED if name in told), *(n for n in told if n not in SHARED))
        self._table = array("q")
        """Of each stretch its end, and nanoseconds by component."""
        for stretch in held:
            shares = dict(stretch.shares)
            self._table.extend((stretch.end_ns, *(shares.get(name, 0) for name in self._names)))
        rest = slot.window(held[-1].end_ns)
        self._rest_mask = mask_of(rest)
        self._rest = array("q", map(rest.__getitem__, names_of(self._rest_mask)))

    def holds(self, begin_ns: int) -> bool:
        """Whether it knows where a window that begins then cuts the slot."""
        return self._start_ns <= begin_ns < self._end_ns

    def lies_before(self, begin_ns: int) -> bool:
        """Whether a window that begins then has just moved beyond what it holds."""
        return begin_ns - HELD_NS < self._end_ns <= begin_ns

    @property
    def _end_ns(self) -> int:
        return self._table[-len(self._names) - 1]

    def window(self, begin_ns: int) -> Totals:
        """Nanoseconds by component from a moment that it holds to the end of the slot."""
        width = len(self._names) + 1
        ends = self._table[::width]
        place = bisect_right(ends, begin_ns)
        start_ns = ends[place - 1] if place else self._start_ns
        row = self._table[place * width + 1 : (place + 1) * width]
        shares = tuple((name, amount) for name, amount in zip(self._names, row, strict=True) if amount)
        totals = dict(zip(names_of(self._rest_mask), self._rest, strict=True))
        for component, amount in Stretch(start_ns, ends[place], 0, shares).cut(begin_ns, ends[place]).shares:
            totals[component] = totals.get(component, 0) + amount
        for column, component in enumerate(self._names, 1):
            if later := sum(self._table[(place + 1) * width + column :: width]):
                totals[component] = totals.get(component, 0) + later
        return totals
