"""Reports of a loop in columns, at hand or packed. Times and amounts are whole nanoseconds."""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_right
from itertools import accumulate
from operator import ge, sub

import msgspec

from ett_core.accounting.rows import Piece, Row, fill
from ett_core.components import DATA_WAIT, STALLED, TRAINING, UNSAVED_TRAINING

BLOCK = 32
"""Reports in a closed block, at first."""
COMPRESSION_LEVEL = 2
PLAIN = b"p"
"""Before rows that are not squeezed; no squeezed ones begin so."""
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
        if len(self) <= BLOCK:
            words = b"".join(getattr(self, name).tobytes() for name in COLUMNS)
            return PLAIN + _encoder.encode((words, self.phases))
        lengths = array("q", map(sub, self.ends, [before_ns, *self.ends[:-1]]))
        owned = array("q", map(sub, lengths, self.lefts))
        new = array("q", map(sub, self.last, [0, *self.last[:-1]]))
        words = b"".join(c.tobytes() for c in (lengths, owned, self.waits, self.stalls, new, self.steps))
        return zlib.compress(_encoder.encode((_shuffled(words), self.phases)), COMPRESSION_LEVEL)

    @classmethod
    def _of_words(cls, words: bytes) -> Columns:
        """Columns of equal length, one after the other."""
        found, length = cls(), len(words) // len(COLUMNS)
        for place, name in enumerate(COLUMNS):
            getattr(found, name).frombytes(words[place * length : (place + 1) * length])
        return found

    @classmethod
    def unpacked(cls, data: bytes, before_ns: int) -> Columns:
        """The columns that gave `data`."""
        if data.startswith(PLAIN):
            words, phases = _decoder.decode(data[len(PLAIN) :])
            found = cls._of_words(words)
            found.in_order = all(map(ge, map(sub, found.last[1:], found.steps[1:]), found.last))
        else:
            shuffled, phases = _decoder.decode(zlib.decompress(data))
            found = cls._of_words(_in_order(shuffled))
            owned, new = found.lefts, found.last
            found.lefts = array("q", map(sub, found.ends, owned))
            found.ends = array("q", accumulate(found.ends, initial=before_ns))[1:]
            found.last = array("q", accumulate(new))
            found.in_order = all(map(ge, new[1:], found.steps[1:]))
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
