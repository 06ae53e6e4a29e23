"""Reports of a loop in columns: those still at hand, and closed blocks of them, packed.

A closed block is never changed; what it holds in sum lies beside it, so that it is unpacked only
where a moment or a step cuts it. Times and amounts are whole nanoseconds.
"""

from __future__ import annotations

import sys
import threading
import zlib
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise
from operator import ge, sub
from typing import NamedTuple
from weakref import ref

import msgspec

from ett_core.accounting.rows import Piece, Row, fill
from ett_core.archive import Archive, Bytes, Parcel, Parcels, Parts
from ett_core.components import DATA_WAIT, STALLED, TRAINING, UNSAVED_TRAINING

BLOCK = 64
"""Reports in a closed block, at first."""
MERGED = 4
"""As many blocks of one size that follow each other become one, and as many of those again."""
YOUNG = 48
"""Blocks that were made of short ones and stay as they are: windows that begin among them are cut fast."""
COMPRESSION_LEVEL = 2
WORD = 8
COLUMNS = ("ends", "lefts", "waits", "stalls", "last", "steps")

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[bytes, list[Piece]])


class Columns:
    """Consecutive reports, one row each, and the pieces that phases own in their intervals."""

    __slots__ = (*COLUMNS, "in_order", "phase_ends", "phases")

    def __init__(self) -> None:
        self.ends = array("q")
        self.lefts = array("q")
        self.waits = array("q")
        self.stalls = array("q")
        self.last = array("q")
        self.steps = array("q")
        self.phases: list[Piece] = []
        self.phase_ends = array("q")
        self.in_order = True
        """Whether the steps of every row came after those of the rows before it."""

    def __len__(self) -> int:
        """Rows."""
        return len(self.ends)

    def append(self, at_ns: int, left: int, wait: int, stall: int, step: int, steps: int) -> None:  # noqa: PLR0913, PLR0917 - a row
        """Append a row."""
        if self.last and step - steps < self.last[-1]:
            self.in_order = False
        self.ends.append(at_ns)
        self.lefts.append(left)
        self.waits.append(wait)
        self.stalls.append(stall)
        self.last.append(step)
        self.steps.append(steps)

    def keep(self, piece: Piece) -> None:
        """Append a piece that a phase owns."""
        self.phases.append(piece)
        self.phase_ends.append(piece.end_ns)

    def extend(self, more: Columns) -> None:
        """Append the rows of others."""
        if self.last and more.last and more.last[0] - more.steps[0] < self.last[-1]:
            self.in_order = False
        self.in_order = self.in_order and more.in_order
        for name in COLUMNS:
            getattr(self, name).extend(getattr(more, name))
        self.phases.extend(more.phases)
        self.phase_ends.extend(more.phase_ends)

    def cut(self, rows: int, phases: int) -> None:
        """Forget what comes after the first rows and pieces."""
        for name in COLUMNS:
            del getattr(self, name)[rows:]
        del self.phases[phases:], self.phase_ends[phases:]

    def part(self, first: int, last: int, before_ns: int) -> Columns:
        """A copy of some rows; `before_ns` is where the first of them begins."""
        found = Columns()
        for name in COLUMNS:
            setattr(found, name, getattr(self, name)[first:last])
        end_ns = found.ends[-1] if found.ends else before_ns
        pieces = slice(bisect_right(self.phase_ends, before_ns), bisect_right(self.phase_ends, end_ns))
        found.phases, found.phase_ends = self.phases[pieces], self.phase_ends[pieces]
        found.in_order = self.in_order
        return found

    def row(self, place: int, before_ns: int) -> Row:
        """A row, whose interval begins at `before_ns`."""
        end = self.ends[place]
        first = bisect_right(self.phase_ends, before_ns)
        last = bisect_right(self.phase_ends, end)
        return Row(
            fill(before_ns, end, self.phases[first:last]),
            self.lefts[place],
            self.waits[place],
            self.stalls[place],
            self.last[place],
            self.steps[place],
        )

    def totals(self, first: int, last: int, before_ns: int, fallback_step: int | None) -> dict[str, int]:
        """Nanoseconds by component of some rows, of which the first begins at `before_ns`."""
        if first >= last:
            return {}
        part = slice(first, last)
        wait, stall = sum(self.waits[part]), sum(self.stalls[part])
        lost = self.lost_ns(first, last, fallback_step)
        kept = sum(self.lefts[part]) - wait - stall - lost
        totals = {DATA_WAIT: wait, STALLED: stall, TRAINING: kept, UNSAVED_TRAINING: lost}
        begin = bisect_right(self.phase_ends, before_ns)
        for place in range(begin, bisect_right(self.phase_ends, self.ends[last - 1])):
            piece = self.phases[place]
            assert piece.component is not None  # noqa: S101 - only those are kept
            totals[piece.component] = totals.get(piece.component, 0) + piece.end_ns - piece.begin_ns
        return totals

    def lost_ns(self, first: int, last: int, fallback_step: int | None) -> int:
        """Training of some rows that a fall back to a step takes away."""
        if fallback_step is None or first >= last:
            return 0
        whole_ns = 0
        if self.in_order:
            first = bisect_right(self.last, fallback_step, first, last)
            rest = slice(first + 1, last)
            whole_ns = sum(self.lefts[rest]) - sum(self.waits[rest]) - sum(self.stalls[rest])
            last = min(first + 1, last)
        columns = (self.lefts, self.waits, self.stalls, self.last, self.steps)
        return whole_ns + sum(
            Row((), *row).lost_ns(fallback_step)
            for row in zip(*(column[first:last] for column in columns), strict=True)
            if row[3] > fallback_step
        )

    def packed(self, before_ns: int) -> bytes:
        """The rows and pieces as bytes; the first row begins at `before_ns`. Few are not worth squeezing."""
        lengths = array("q", map(sub, self.ends, [before_ns, *self.ends[:-1]]))
        owned = array("q", map(sub, lengths, self.lefts))
        new = array("q", map(sub, self.last, [0, *self.last[:-1]]))
        words = b"".join(c.tobytes() for c in (lengths, owned, self.waits, self.stalls, new, self.steps))
        level = COMPRESSION_LEVEL if len(self) > BLOCK else 0
        return zlib.compress(_encoder.encode((_shuffled(words), self.phases)), level)

    @classmethod
    def unpacked(cls, data: bytes, before_ns: int) -> Columns:
        """The columns that gave `data`."""
        shuffled, phases = _decoder.decode(zlib.decompress(data))
        words = array("q")
        words.frombytes(_in_order(shuffled))
        rows = len(words) // len(COLUMNS)
        found = cls()
        if not rows:
            return found
        lengths, owned, waits, stalls, new, steps = (
            words[place : place + rows] for place in range(0, len(words), rows)
        )
        found.ends = array("q", accumulate(lengths, initial=before_ns))[1:]
        found.lefts = array("q", map(sub, lengths, owned))
        found.waits, found.stalls, found.steps = waits, stalls, steps
        found.last = array("q", accumulate(new))
        found.in_order = all(map(ge, new[1:], steps[1:]))
        for piece in phases:
            assert piece.component is not None  # noqa: S101 - only those are kept
            found.keep(piece._replace(component=sys.intern(piece.component)))
        return found


def _shuffled(words: bytes) -> bytes:
    r"""The lowest bytes of all words, then the next ones: what is alike comes together.

    >>> _shuffled(bytes([1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18]))[:4]
    b'\x01\x0b\x02\x0c'
    """
    return b"".join(words[place::WORD] for place in range(WORD))


def _in_order(shuffled: bytes) -> bytes:
    words = bytearray(len(shuffled))
    count = len(shuffled) // WORD
    for place in range(WORD):
        words[place::WORD] = shuffled[place * count : (place + 1) * count]
    return bytes(words)


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
        """Merge the oldest blocks of a size, where there are too many of them."""
        sizes = [self.size(block) for block in range(len(self))]
        if sizes.count(size) >= YOUNG + MERGED:
            self._merge(sizes.index(size))

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
