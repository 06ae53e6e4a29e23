"""Sequence numbers held of one writer, as ranges: pure values with a text form.

A writer counts without gaps, so thousands of numbers are one range.

>>> held = Ranges.parse("0-4,7")
>>> held.holds(3), held.holds(5)
(True, False)
>>> str(held.plus([5, 6, 9]))
'0-7,9'
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence


class Ranges:
    """An immutable set of whole numbers, kept as sorted, disjoint, closed ranges."""

    __slots__ = ("_firsts", "_ranges")

    def __init__(self, ranges: Sequence[tuple[int, int]] = ()) -> None:
        self._ranges = tuple(ranges)
        self._firsts = [first for first, _ in self._ranges]

    @classmethod
    def parse(cls, text: str) -> Ranges:
        """The ranges of their text form (`str` gives it back)."""
        return cls([_parse_range(part) for part in text.split(",") if part])

    def holds(self, number: int) -> bool:
        """Whether `number` is in one of the ranges."""
        place = bisect_right(self._firsts, number) - 1
        return place >= 0 and number <= self._ranges[place][1]

    def plus(self, numbers: Iterable[int]) -> Ranges:
        """The ranges with further numbers."""
        return Ranges(_merged(sorted([*self._ranges, *((n, n) for n in numbers)])))

    def __str__(self) -> str:
        """Ranges such as `0-7,9`."""
        return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in self._ranges)

    def __eq__(self, other: object) -> bool:
        """Equal when they hold the same numbers."""
        return isinstance(other, Ranges) and self._ranges == other._ranges

    def __hash__(self) -> int:
        """Hash of the ranges."""
        return hash(self._ranges)


def _parse_range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in ranges:
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
