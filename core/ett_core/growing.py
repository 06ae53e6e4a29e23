"""Counters over amounts that may be taken back: they never fall, and what is taken back is counted apart.

    amount       3    5    4    6
    counted      3    5    5    7      counted - taken back = amount, at every moment
    taken back   0    0    1    1

Amounts are whole numbers (nanoseconds), so that nothing drifts. Held by one thread at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Mapping
from itertools import accumulate
from typing import Generic, TypeVar

import msgspec

Key = TypeVar("Key", bound=Hashable)


class Growing(Generic[Key]):
    """Counters by key.

    >>> growing = Growing()
    >>> for before, now in (({}, {"a": 5}), ({"a": 5}, {"a": 4}), ({"a": 4}, {"a": 6})):
    ...     growing.change(before, now)
    >>> growing.counted, growing.taken_back
    ({'a': 7}, {'a': 1})
    """

    __slots__ = ("counted", "taken_back")

    def __init__(self) -> None:
        self.counted: dict[Key, int] = {}
        self.taken_back: dict[Key, int] = {}

    def change(self, before: Mapping[Key, int], now: Mapping[Key, int]) -> None:
        """Something that contributed `before` contributes `now`."""
        for key, amount in now.items():
            self._add(key, amount - before.get(key, 0))
        for key in before.keys() - now.keys():
            self._add(key, -before[key])

    def _add(self, key: Key, more: int) -> None:
        if more > 0:
            self.counted[key] = self.counted.get(key, 0) + more
        elif more:
            self.taken_back[key] = self.taken_back.get(key, 0) - more


def highest(before: Mapping[Key, int], now: Mapping[Key, int]) -> Mapping[Key, int]:
    """By key the larger of two amounts: what a counter shows that has no other to take back.

    >>> highest({"a": 2}, {"a": 1, "c": 3})
    {'a': 2, 'c': 3}
    """
    if before.keys() <= now.keys() and all(now[key] >= amount for key, amount in before.items()):
        return now
    return {**now, **{key: max(amount, now.get(key, 0)) for key, amount in before.items()}}


class Distribution(msgspec.Struct, frozen=True):
    """How many observations lie in each bucket of a histogram, the last beyond all bounds, and their sum."""

    counts: tuple[int, ...]
    total_s: float = 0.0


class Histogram:
    """Observations by bucket; `bounds` are the upper ones, included.

    >>> histogram = Histogram((1.0, 10.0))
    >>> for seconds in (0.5, 1.0, 30.0):
    ...     histogram.observe(seconds)
    >>> histogram.cumulative(), histogram.total_s
    ([2, 2, 3], 31.5)
    """

    __slots__ = ("_counts", "bounds", "total_s")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total_s = 0.0

    def observe(self, seconds: float) -> None:
        """Take in one observation."""
        self._counts[bucket_of(self.bounds, seconds)] += 1
        self.total_s += seconds

    def add(self, before: Distribution | None, now: Distribution) -> None:
        """Something that had contributed `before` contributes `now`; what became less stays counted."""
        known = before.counts if before else (0,) * len(now.counts)
        for place, (count, more) in enumerate(zip(known, now.counts, strict=True)):
            self._counts[place] += max(more - count, 0)
        self.total_s += max(now.total_s - (before.total_s if before else 0.0), 0.0)

    def cumulative(self) -> list[int]:
        """Observations up to each bound, and all of them."""
        return list(accumulate(self._counts))


def bucket_of(bounds: tuple[float, ...], seconds: float) -> int:
    """The bucket of an observation.

    >>> [bucket_of((1.0, 10.0), seconds) for seconds in (0.5, 1.0, 10.5)]
    [0, 0, 2]
    """
    return bisect_left(bounds, seconds)
