"""Closed blocks of reports, packed.

A closed block is never changed; what it holds in sum lies beside it, so that it is unpacked only
where a moment or a step cuts it. Times and amounts are whole nanoseconds.
"""

from __future__ import annotations

import sys
import threading
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise
from typing import NamedTuple
from weakref import ref

from ett_core.accounting.columns import Columns
from ett_core.archive import Archive, Bytes, Parcel, Parcels, Parts
from ett_core.components import DATA_WAIT, STALLED, TRAINING, UNSAVED_TRAINING

MERGED = 4
"""As many blocks of one size that follow each other become one, and as many of those again, and so on."""
LONGEST = 2048
"""Rows of the longest blocks: to cut one takes half a millisecond."""
YOUNG = 6
"""Blocks that were made of short ones and stay as they are: windows that begin among them are cut fast."""


class BlocksState(NamedTuple):
    """A `Blocks` as a value."""

    begin_ns: int
    ends: list[int]
    through: list[int]
    sums: list[int]
    phase_ns: dict[str, list[int]]
    lengths: list[int]
    """Bytes of each block in what `packed` gives."""


class Blocks:
    """Closed blocks of rows, with what they hold in sum; rows are only appended.

    The latest blocks are short. Several of one size become one, so that a week of reports is a few dozen.
    """

    __slots__ = (
        "_is_shared",
        "_numbers",
        "_parcels",
        "_phase_ns",
        "_sums",
        "_through",
        "begin_ns",
        "ends",
    )

    _SUMS = 6

    def __init__(self, begin_ns: int, parcels: Parcels) -> None:
        self.begin_ns = begin_ns
        """Where the first row begins."""
        self.ends = array("q")
        """End of the last row of each block."""
        self._through = array("q")
        """Rows in each block and all before it."""
        self._is_shared = False
        """Whether others may read what was put into the parcels."""
        self._sums = array("q")
        self._phase_ns: dict[str, array[int]] = {}
        """By component what phases own in each block, up to the last one where they own any."""
        self._parcels = parcels
        """The blocks, packed; shared with those that `first` gives."""
        self._numbers = array("q")

    @property
    def rows(self) -> int:
        """Rows in all blocks."""
        return self._through[-1] if self._through else 0

    def __len__(self) -> int:
        """How many blocks there are."""
        return len(self._numbers)

    def block_of(self, row: int) -> int:
        """The block that holds a row."""
        return bisect_right(self._through, row)

    def first_row(self, block: int) -> int:
        """The first row of a block."""
        return self._through[block - 1] if block else 0

    def size(self, block: int) -> int:
        """How many rows a block holds."""
        return self._through[block] - self.first_row(block)

    @property
    def end_ns(self) -> int:
        """Where the first row after the blocks begins."""
        return self.ends[-1] if self.ends else self.begin_ns

    def append(self, columns: Columns) -> None:
        """Close some rows, as many as in the short blocks before them."""
        self._put(columns, len(self))
        first = len(self) - MERGED
        if first >= 0 and self.size(first) == len(columns):
            self._merge(first)
            self._merge_old(len(columns) * MERGED)

    def _merge_old(self, size: int) -> None:
        """Merge the oldest blocks of a size where there are too many of them, then those that result."""
        sizes = [self.size(block) for block in range(len(self))]
        if size < LONGEST and sizes.count(size) >= YOUNG + MERGED:
            self._merge(sizes.index(size))
            self._merge_old(size * MERGED)

    def _put(self, columns: Columns, place: int) -> None:
        """Insert a block of rows, which follow those of the block before its place."""
        before_ns = self.begin_of(place)
        totals = columns.totals(0, len(columns), before_ns, None)
        lowest = min(map(first_lost_from, columns.last, columns.steps))
        wait, stall = totals.pop(DATA_WAIT), totals.pop(STALLED)
        training = totals.pop(TRAINING)
        del totals[UNSAVED_TRAINING]
        sums = (wait, stall, training, lowest, max(columns.last), len(columns.phases))
        self._sums[place * self._SUMS : place * self._SUMS] = array("q", sums)
        for component in self._phase_ns.keys() | totals.keys():
            column = self._phase_ns.setdefault(component, array("q"))
            if component in totals or place < len(column):
                column.extend([0] * (place - len(column)))
                column.insert(place, totals.get(component, 0))
        self._numbers.insert(place, self._parcels.put(columns.packed(before_ns)))
        self._through.insert(place, self.first_row(place) + len(columns))
        self.ends.insert(place, columns.ends[-1])

    def _merge(self, first: int) -> None:
        """Make one block of some that follow each other."""
        after = first + MERGED
        columns = Columns()
        for block in range(first, after):
            columns.extend(Columns.unpacked(self._parcels.get(self._numbers[block]), self.begin_of(block)))
        merged = self._numbers[first:after]
        for column in (self.ends, self._through, self._numbers, *self._phase_ns.values()):
            del column[first:after]
        del self._sums[first * self._SUMS : after * self._SUMS]
        self._put(columns, first)
        for number in () if self._is_shared else merged:
            self._parcels.drop(number)

    def phases_from(self, block: int) -> int:
        """Pieces that phases own in this block and all after it."""
        return sum(self._sums[(block + 1) * self._SUMS - 1 :: self._SUMS])

    def first(self, blocks: int) -> Blocks:
        """The first blocks alone."""
        self._is_shared = True
        twin = Blocks(self.begin_ns, self._parcels)
        twin._fill(
            self.ends[:blocks],
            self._through[:blocks],
            self._sums[: blocks * self._SUMS],
            {component: column[:blocks] for component, column in self._phase_ns.items()},
            self._numbers[:blocks],
        )
        return twin

    def _fill(
        self,
        ends: array[int],
        through: array[int],
        sums: array[int],
        phase_ns: dict[str, array[int]],
        numbers: array[int],
    ) -> None:
        self.ends, self._through, self._sums = ends, through, sums
        self._phase_ns, self._numbers = phase_ns, numbers
        self._is_shared = True

    def begin_of(self, block: int) -> int:
        """Where the first row of a block begins."""
        return self.ends[block - 1] if block else self.begin_ns

    def columns(self, block: int) -> Columns:
        """The rows of a block."""
        return _AT_HAND.get(self._parcels, self._numbers[block], self.begin_of(block), self.size(block))

    def totals(self, block: int, fallback_step: int | None) -> dict[str, int]:
        """Nanoseconds by component of a whole block."""
        wait, stall, training = self._sums[block * self._SUMS : block * self._SUMS + 3]
        lost = self.lost_ns(block, fallback_step)
        totals = {DATA_WAIT: wait, STALLED: stall, TRAINING: training - lost, UNSAVED_TRAINING: lost}
        for component, column in self._phase_ns.items():
            if block < len(column) and column[block]:
                totals[component] = column[block]
        return totals

    def lost_ns(self, block: int, fallback_step: int | None) -> int:
        """Training of a whole block that a fall back to a step takes away."""
        training, lowest, highest = self._sums[block * self._SUMS + 2 : block * self._SUMS + 5]
        if fallback_step is None or highest <= fallback_step:
            return 0
        if lowest >= fallback_step:
            return training
        return self.columns(block).lost_ns(0, self.size(block), fallback_step)

    def place(self, at_ns: int, *, after: bool) -> int:
        """The row of the first end at (or, where `after`, beyond) a moment; `rows` where there is none."""
        search = bisect_right if after else bisect_left
        block = search(self.ends, at_ns)
        if block == len(self.ends):
            return self.rows
        return self.first_row(block) + search(self.columns(block).ends, at_ns)

    def state(self) -> BlocksState:
        """The blocks as a value, beside what `packed` gives."""
        parts = self._parts()
        lengths = (
            [len(self._parcels.get(number)) for number in self._numbers]
            if parts is None
            else [end - begin for begin, end in pairwise([0, *parts.ends])]
        )
        phase_ns = {component: list(column) for component, column in self._phase_ns.items()}
        return BlocksState(
            self.begin_ns, list(self.ends), list(self._through), list(self._sums), phase_ns, lengths
        )

    def packed(self) -> bytes:
        """All blocks, packed, one after the other."""
        parts = self._parts()
        if parts is None:
            return b"".join(map(self._parcels.get, self._numbers))
        return parts.parcel.read()

    def put_together(self) -> Bytes | None:
        """Lay all blocks into one parcel, which is given back; None without any."""
        if not self._numbers:
            return None
        parts = self._parts()
        if parts is None:
            ends = array("q", accumulate(self.state().lengths))
            parts = Parts(Parcel(self._parcels.archive, self.packed()), ends)
            self._parcels, self._numbers = Parcels(self._parcels.archive, parts), array("q", range(len(ends)))
        return parts.parcel

    def _parts(self) -> Parts | None:
        """Where these blocks, all of them and no others, are parts of one parcel."""
        parts = self._parcels.parts
        return parts if parts and self._numbers == array("q", range(len(parts.ends))) else None

    @classmethod
    def of_state(cls, archive: Archive, state: BlocksState, parcel: Bytes | None) -> Blocks:
        """The blocks that gave `state`; `parcel` holds what they gave as `packed`."""
        ends, through, sums = array("q", state.ends), array("q", state.through), array("q", state.sums)
        parts = None if parcel is None else Parts(parcel, array("q", accumulate(state.lengths)))
        phase_ns = {sys.intern(name): array("q", column) for name, column in state.phase_ns.items()}
        numbers = array("q", range(len(state.lengths)))
        blocks = cls(state.begin_ns, Parcels(archive, parts))
        blocks._fill(ends, through, sums, phase_ns, numbers)
        blocks._is_shared = False
        return blocks


def first_lost_from(step: int, steps: int) -> int:
    """The highest fallback that takes a whole report away."""
    return step - steps if steps else step - 1


class _AtHand:
    """The blocks that were unpacked last, whatever fold asked; any thread may call."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._held: dict[tuple[ref[Parcels], int, int, int], Columns] = {}

    def get(self, parcels: Parcels, number: int, before_ns: int, rows: int) -> Columns:
        """Rows that begin at `before_ns`; the same number may have stood for others before."""
        key = (ref(parcels), number, before_ns, rows)
        found = self._held.get(key)
        if found is not None:
            return found
        found = Columns.unpacked(parcels.get(number), before_ns)
        with self._lock:
            self._held[key] = found
            while len(self._held) > self._limit:
                del self._held[next(iter(self._held))]
        return found


_AT_HAND = _AtHand(64)
