"""Sets of sequence numbers kept as ranges, which stay few when numbers come nearly in order."""

from __future__ import annotations

from bisect import bisect_right


class Sequences:
    """Non-negative integers as disjoint ranges.

    >>> seen = Sequences()
    >>> [seen.add(n) for n in (0, 1, 3, 1, 2)], seen.ranges()
    ([True, True, True, False, True], [(0, 3)])
    """

    __slots__ = ("_first", "_last")

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []

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

    def ranges(self) -> list[tuple[int, int]]:
        """The ranges, both ends included, in order."""
        return list(zip(self._first, self._last, strict=True))
