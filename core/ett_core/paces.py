"""How fast ranks step, added up by half window; all but the latest halves lie packed.

Part of the search for stragglers (`ett_core.stragglers`): held by one thread at a time.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ett_core.archive import IN_MEMORY, Archive, Parcel, parcel_of
from ett_core.runs import Row

HALVES_OPEN = 2
"""Half windows to which reports are added as they are; the others lie packed."""

WindowKey: TypeAlias = tuple[int, int]
"""Attempt, and Unix time in half windows; the window is that half and the one before it."""

Fields: TypeAlias = tuple[float, float, float, float]
"""Those of a `Pace`."""

FIELDS = 4
NO_FIELDS: Fields = (0, 0.0, 0.0, 0.0)
_CELL_BYTES = 8 + 8 * FIELDS


class Pace(NamedTuple):
    """Steps of a rank in a window: how many, their seconds, the longest, seconds waited for data."""

    steps: int = 0
    step_s: float = 0.0
    max_s: float = 0.0
    wait_s: float = 0.0

    @property
    def mean_step_s(self) -> float:
        """Mean step in seconds without the longest one, so that a single pause does not count.

        >>> Pace(steps=5, step_s=14.0, max_s=10.0).mean_step_s
        1.0
        """
        if self.steps > 1:
            return max(self.step_s - self.max_s, 0.0) / (self.steps - 1)
        return self.step_s


class Half(Mapping[int, Sequence[float]]):
    """Of each rank the fields of its `Pace` in half a window, in one column; no number of steps is too large.

    >>> half = Half()
    >>> [half.add(rank, 10, 5.0, longest_s, 0.0) for rank, longest_s in ((7, 0.6), (3, 0.5), (7, 0.7))]
    [True, True, False]
    >>> pace(half[7]), list(half)
    (Pace(steps=20, step_s=10.0, max_s=0.7, wait_s=0.0), [7, 3])
    """

    __slots__ = ("_fields", "_places")

    def __init__(self, ranks: Iterable[int] = (), fields: array[float] | None = None) -> None:
        """Start with the fields of some ranks, one rank after the other."""
        self._places: dict[int, int] = {rank: FIELDS * place for place, rank in enumerate(ranks)}
        """Where the fields of each rank begin."""
        self._fields = array("d") if fields is None else fields

    def add(self, rank: int, steps: float, step_s: float, max_s: float, wait_s: float) -> bool:
        """Add to the pace of a rank; whether it is the first of that rank."""
        place, fields = self._places.get(rank), self._fields
        if place is None:
            self._places[rank] = len(fields)
            fields.extend((steps, step_s, max_s, wait_s))
            return True
        fields[place] += steps
        fields[place + 1] += step_s
        fields[place + 2] = max(fields[place + 2], max_s)
        fields[place + 3] += wait_s
        return False

    def __getitem__(self, rank: int) -> Sequence[float]:
        """The fields of a rank."""
        place = self._places[rank]
        return self._fields[place : place + FIELDS]

    def __contains__(self, rank: object) -> bool:
        """Whether a rank reported."""
        return rank in self._places

    def __iter__(self) -> Iterator[int]:
        """The ranks, in the order in which they came."""
        return iter(self._places)

    def __len__(self) -> int:
        """How many ranks reported."""
        return len(self._places)

    def packed(self) -> bytes:
        """The ranks and their fields as bytes, 40 a rank."""
        return array("q", self._places).tobytes() + self._fields.tobytes()

    @classmethod
    def unpacked(cls, data: bytes, ranks: int) -> Half:
        """The paces of so many ranks that gave `data`."""
        numbers, fields = array("q"), array("d")
        numbers.frombytes(data[: numbers.itemsize * ranks])
        fields.frombytes(data[numbers.itemsize * ranks :])
        return cls(numbers, fields)


class Halves:
    """The paces of all ranks by half window.

    >>> halves = Halves()
    >>> for half in range(4):
    ...     _ = halves.add(7, {(0, half): (10, 5.0, 0.6, 0.0)})
    >>> list(halves), dict(halves.paces((0, 1))), dict(halves.paces((0, 9)))
    ([(0, 0), (0, 1), (0, 2), (0, 3)], {7: array('d', [10.0, 5.0, 0.6, 0.0])}, {})
    """

    __slots__ = ("_archive", "_count", "_newest", "_older", "_open")

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        self._archive = archive
        self._open: dict[WindowKey, Half] = {}
        """The one that was told last at the end."""
        self._older: Parcel | None = None
        """The others, packed together."""
        self._count = 0
        """How many those are."""
        self._newest: WindowKey | None = None
        """The latest that was ever among them."""

    def __len__(self) -> int:
        """How many half windows anything was told of."""
        return len(self._open) + self._count

    def __iter__(self) -> Iterator[WindowKey]:
        """Their keys, in no order."""
        return iter(dict.fromkeys([*self._packed().keys(), *self._open]))

    def everything(self) -> dict[WindowKey, Half]:
        """All of them, by key."""
        packed = self._packed()
        return {key: packed.half(place) for place, key in enumerate(packed.keys())} | self._open

    def paces(self, key: WindowKey) -> Half:
        """The paces of a half window; empty where nobody reported."""
        known = self._open.get(key)
        if known is None and self._may_be_packed(key):
            packed = self._packed()
            place = packed.place_of(key)
            known = None if place is None else packed.half(place)
        return Half() if known is None else known

    def add(self, rank: int, told: Mapping[WindowKey, Fields]) -> int:
        """Add to the paces of a rank by half window; gives in how many of these it is new."""
        packed, is_new = None, 0
        if unknown := [key for key in told if key not in self._open and self._may_be_packed(key)]:
            packed = self._packed()
            for key in unknown:
                place = packed.place_of(key)
                if place is not None:
                    self._open[key] = packed.take(place)
        for key, fields in told.items():
            half = self._open.pop(key, None)
            if half is None:
                half = Half()
            self._open[key] = half
            is_new += half.add(rank, *fields)
        if len(self._open) > HALVES_OPEN:
            packed = packed or self._packed()
            for key in [*self._open][:-HALVES_OPEN]:
                self._append(packed, key, self._open.pop(key))
        if packed is not None:
            self._hold(packed)
        return is_new

    def put(self, halves: Iterable[tuple[WindowKey, Half]]) -> None:
        """Pack half windows that are not held."""
        packed = self._packed()
        for key, half in halves:
            self._append(packed, key, half)
        self._hold(packed)

    def drop(self, keys: Collection[WindowKey]) -> None:
        """Let go of half windows, as far as they are held."""
        for key in keys:
            self._open.pop(key, None)
        self._hold(self._packed().without(keys))

    def _may_be_packed(self, key: WindowKey) -> bool:
        return self._newest is not None and key <= self._newest

    def _append(self, packed: _Packed, key: WindowKey, half: Half) -> None:
        packed.append(key, half)
        self._newest = key if self._newest is None else max(self._newest, key)

    def _packed(self) -> _Packed:
        return _Packed(b"" if self._older is None else self._older.read(), self._count)

    def _hold(self, packed: _Packed) -> None:
        """Have these as the ones that lie packed."""
        self._count = len(packed.numbers)
        self._older = parcel_of(self._archive, packed.data()) if self._count else None


class _Packed:
    """Half windows as bytes: columns of their keys and of how many ranks they have, then the paces of each.

    >>> packed = _Packed(b"", 0)
    >>> for half in (4, 5):
    ...     packed.append((0, half), half_of({7: Pace(10, 5.0, 0.6, 0.0)}))
    >>> again = _Packed(packed.data(), 2)
    >>> again.place_of((0, 5)), again.place_of((1, 5)), dict(again.take(0)), again.keys()
    (1, None, {7: array('d', [10.0, 5.0, 0.6, 0.0])}, [(0, 5)])
    """

    __slots__ = ("attempts", "numbers", "paces", "ranks")

    def __init__(self, data: bytes, count: int) -> None:
        """So many half windows that gave `data`."""
        columns = array("q")
        columns.frombytes(data[: 3 * columns.itemsize * count])
        self.attempts, self.numbers = columns[:count], columns[count : 2 * count]
        self.ranks = columns[2 * count :]
        self.paces = data[3 * columns.itemsize * count :]

    def keys(self) -> list[WindowKey]:
        """The keys of all."""
        return [*zip(self.attempts, self.numbers, strict=True)]

    def place_of(self, key: WindowKey) -> int | None:
        """Which of them has a key, if one does."""
        attempt, number = key
        place = -1
        for _ in range(self.numbers.count(number)):
            place = self.numbers.index(number, place + 1)
            if self.attempts[place] == attempt:
                return place
        return None

    def half(self, place: int) -> Half:
        """One of them."""
        begin, end = self._bounds(place)
        return Half.unpacked(self.paces[begin:end], self.ranks[place])

    def take(self, place: int) -> Half:
        """One of them, which is then no more among them."""
        begin, end = self._bounds(place)
        half = Half.unpacked(self.paces[begin:end], self.ranks[place])
        self.paces = self.paces[:begin] + self.paces[end:]
        del self.attempts[place], self.numbers[place], self.ranks[place]
        return half

    def without(self, keys: Collection[WindowKey]) -> _Packed:
        """All but some of them."""
        left, paces, end = _Packed(b"", 0), [], 0
        for attempt, number, ranks in zip(self.attempts, self.numbers, self.ranks, strict=True):
            begin, end = end, end + _CELL_BYTES * ranks
            if (attempt, number) not in keys:
                left.attempts.append(attempt)
                left.numbers.append(number)
                left.ranks.append(ranks)
                paces.append(self.paces[begin:end])
        left.paces = b"".join(paces)
        return left

    def append(self, key: WindowKey, half: Half) -> None:
        """Have one more."""
        attempt, number = key
        self.attempts.append(attempt)
        self.numbers.append(number)
        self.ranks.append(len(half))
        self.paces += half.packed()

    def data(self) -> bytes:
        """All of them as bytes."""
        return b"".join((self.attempts, self.numbers, self.ranks, self.paces))

    def _bounds(self, place: int) -> tuple[int, int]:
        begin = _CELL_BYTES * sum(self.ranks[:place])
        return begin, begin + _CELL_BYTES * self.ranks[place]


def half_of(paces: Mapping[int, Pace]) -> Half:
    """The half window in which ranks had these paces."""
    half = Half()
    for rank, fields in paces.items():
        half.add(rank, *fields)
    return half


def pace(fields: Sequence[float]) -> Pace:
    """The pace whose fields were added up."""
    return Pace(int(fields[0]), *fields[1:])


def together(one: Sequence[float], other: Sequence[float]) -> Pace:
    """The pace of two stretches, by the fields of each."""
    longest = one[2] if one[2] > other[2] else other[2]  # noqa: FURB136 - half the time of `max`
    return Pace(int(one[0] + other[0]), one[1] + other[1], longest, one[3] + other[3])


def by_half(timed: Iterable[Row], half_s: float) -> dict[int, Fields]:
    """The fields of the pace of one rank by half window, from its reports.

    >>> by_half([(end, end - 5.0, 10, 0.0, 10, 5.0, longest_s, 0.0, {})
    ...          for end, longest_s in ((61.0, 0.6), (62.0, 0.7), (93.0, 0.5))], half_s=30.0)
    {2: (20, 10.0, 0.7, 0.0), 3: (10, 5.0, 0.5, 0.0)}
    """
    told: dict[int, Fields] = {}
    begin, beyond, half = math.inf, -math.inf, 0
    steps, step_s, max_s, wait_s = NO_FIELDS
    for end, _, _, _, more, more_s, longest_s, waited_s, _ in timed:
        if begin <= end < beyond:
            steps += more
            step_s += more_s
            max_s = longest_s if longest_s > max_s else max_s  # noqa: FURB136 - half the time of `max`
            wait_s += waited_s
            continue
        if steps:
            told[half] = steps, step_s, max_s, wait_s
        half = int(end // half_s)
        begin, beyond = half * half_s, (half + 1) * half_s
        steps, step_s, max_s, wait_s = added(told.get(half, NO_FIELDS), (more, more_s, longest_s, waited_s))
    if steps:
        told[half] = steps, step_s, max_s, wait_s
    return told


def added(one: Fields, other: Fields) -> Fields:
    """The fields of the pace of two stretches."""
    return one[0] + other[0], one[1] + other[1], max(one[2], other[2]), one[3] + other[3]
