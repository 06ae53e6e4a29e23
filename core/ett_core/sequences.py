"""Sets of sequence numbers kept as ranges, which stay few when numbers come nearly in order."""

from __future__ import annotations

import sys
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import msgspec

from ett_core.archive import IN_MEMORY, Archive, Parcel, parcel_of

COMPRESSION_LEVEL = 1


class Sequences:
    """Non-negative integers as disjoint ranges.

    >>> seen = Sequences()
    >>> [seen.add(n) for n in (0, 1, 3, 1, 2)], seen.ranges()
    ([True, True, True, False, True], [(0, 3)])

    They have a text form, to be kept elsewhere:

    >>> held = Sequences.parse("0-4,7")
    >>> [held.add(n) for n in (3, 5, 6, 9)], str(held)
    ([False, True, True, True], '0-7,9')
    """

    __slots__ = ("_first", "_last")

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []

    @classmethod
    def parse(cls, text: str) -> Sequences:
        """The numbers of their text form (`str` gives it back)."""
        sequences = cls()
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            sequences._first.append(int(first))
            sequences._last.append(int(last or first))
        return sequences

    def __str__(self) -> str:
        """Ranges such as `0-7,9`."""
        return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in self.ranges())

    def copy(self) -> Sequences:
        """The same numbers, to be changed apart."""
        twin = Sequences()
        twin._first, twin._last = self._first[:], self._last[:]
        return twin

    def add(self, number: int) -> bool:
        """Take in a number; False if it was there."""
        first, last = self._first, self._last
        if last and number == last[-1] + 1:
            last[-1] = number
            return True
        place = bisect_right(first, number)
        if place and number <= last[place - 1]:
            return False
        joins_before = place > 0 and last[place - 1] + 1 == number
        joins_after = place < len(first) and first[place] - 1 == number
        if joins_before and joins_after:
            last[place - 1] = last[place]
            del first[place], last[place]
        elif joins_before:
            last[place - 1] = number
        elif joins_after:
            first[place] = number
        else:
            first.insert(place, number)
            last.insert(place, number)
        return True

    def add_run(self, numbers: list[int]) -> bool:
        """Take in numbers that follow each other beyond all that are there; of others none, and False.

        >>> held = Sequences.parse("0-4")
        >>> held.add_run([5, 6]), held.add_run([6, 7]), held.add_run([9, 8]), str(held)
        (True, False, False, '0-6')
        """
        if not numbers:
            return False
        first, last = numbers[0], numbers[-1]
        is_run = last - first == len(numbers) - 1 and numbers == list(range(first, last + 1))
        if not is_run or (self._last and first <= self._last[-1]):
            return False
        if self._last and first == self._last[-1] + 1:
            self._last[-1] = last
        else:
            self._first.append(first)
            self._last.append(last)
        return True

    def close_gaps(self, most: int) -> None:
        """Take in what lies between the first ranges, so that no more than so many are left.

        >>> held = Sequences.parse("0-4,6,8,10-11")
        >>> held.close_gaps(2), str(held)
        (None, '0-8,10-11')
        """
        joined = len(self._first) - most
        if joined > 0:
            del self._first[1 : joined + 1], self._last[:joined]

    def count_ranges(self) -> int:
        """How many ranges there are."""
        return len(self._first)

    def ranges(self) -> list[tuple[int, int]]:
        """The ranges, both ends included, in order."""
        return list(zip(self._first, self._last, strict=True))


def coalesced(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same numbers in as few ranges as can be, in order; both ends are included.

    >>> coalesced([(5, 9), (0, 3), (4, 4), (12, 12)])
    [(0, 9), (12, 12)]
    """
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


class WriterSequences:
    """The numbers of many writers; those of a writer that counts from 0 without a gap are one integer.

    >>> seen = WriterSequences()
    >>> [seen.add("w", n) for n in (0, 1, 3, 1, 2)], seen.texts()
    ([True, True, True, False, True], {'w': '0-3'})

    Those of writers that have fallen silent can be put away, until an unknown one speaks:

    >>> seen.put_away(but=["v"])
    >>> seen.add("w", 3), seen.add("w", 4)
    (False, True)
    """

    __slots__ = ("_archive", "_held", "_packed")

    def __init__(self, texts: Mapping[str, str] = MappingProxyType({}), archive: Archive = IN_MEMORY) -> None:
        """Start with what `texts` gave; `archive` keeps what is rarely needed again."""
        self._archive = archive
        self._held: dict[str, int | Sequences] = {}
        self._packed: Parcel | None = None
        self._hold(texts)

    def _hold(self, texts: Mapping[str, str]) -> None:
        for writer, text in texts.items():
            self._held[sys.intern(writer)] = _smallest(Sequences.parse(text))

    def add(self, writer: str, number: int) -> bool:
        """Take in a number of a writer; False if it was there."""
        held = self._held.get(writer, -1)
        if held == -1 and self._packed is not None:
            self._bring_back()
            held = self._held.get(writer, -1)
        if type(held) is int:
            if number == held + 1:
                self._held[writer if number else sys.intern(writer)] = number
                return True
            if number <= held:
                return False
            held = self._held[sys.intern(writer)] = Sequences.parse(f"0-{held}" if held >= 0 else "")
        assert isinstance(held, Sequences)  # noqa: S101 - whatever is no integer
        return held.add(number)

    def add_run(self, writer: str, numbers: list[int]) -> bool:
        """Take in numbers that follow each other, right behind those without a gap; else none, and False.

        >>> seen = WriterSequences({"w": "0-4"})
        >>> seen.add_run("w", [5, 6]), seen.add_run("w", [6, 7]), seen.add_run("w", [8, 9]), seen.texts()
        (True, False, False, {'w': '0-6'})
        """
        held = self._held.get(writer, -1)
        is_known = held != -1 or self._packed is None
        if not is_known or type(held) is not int or numbers != [*range(held + 1, held + 1 + len(numbers))]:
            return False
        self._held[sys.intern(writer)] = numbers[-1]
        return True

    def texts(self) -> dict[str, str]:
        """The text form of each writer's numbers."""
        return self._unpacked() | {
            writer: (f"0-{held}" if held else "0") if isinstance(held, int) else str(held)
            for writer, held in self._held.items()
        }

    def put_away(self, but: Collection[str]) -> None:
        """Put away the numbers of all writers but some."""
        if self._held.keys() <= set(but):
            return
        texts = self.texts()
        self._held = {writer: held for writer, held in self._held.items() if writer in but}
        away = {writer: text for writer, text in texts.items() if writer not in self._held}
        packed = zlib.compress(msgspec.msgpack.encode(away), COMPRESSION_LEVEL)
        self._packed = parcel_of(self._archive, packed)

    def _bring_back(self) -> None:
        self._hold(self._unpacked())
        self._packed = None

    def _unpacked(self) -> dict[str, str]:
        if self._packed is None:
            return {}
        return msgspec.msgpack.decode(zlib.decompress(self._packed.read()), type=dict[str, str])


def _smallest(sequences: Sequences) -> int | Sequences:
    ranges = sequences.ranges()
    return ranges[0][1] if len(ranges) == 1 and ranges[0][0] == 0 else sequences
