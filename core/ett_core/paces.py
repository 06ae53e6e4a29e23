"""How fast ranks step, added up by half window; all but the latest halves lie packed.

Part of the search for stragglers (`ett_core.stragglers`): held by one thread at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from typing import NamedTuple, TypeAlias

from ett_core.archive import IN_MEMORY, Archive, Parcels
from ett_core.events import StepSeconds

HALVES_OPEN = 2
"""Half windows to which reports are added as they are; the others lie packed."""
LARGEST_AMOUNT_S = 1e9

WindowKey: TypeAlias = tuple[int, int]
"""Attempt, and Unix time in half windows; the window is that half and the one before it."""

FIELDS = 4
_CELL = Struct("<idddd")
"""A rank and its pace."""


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

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        """Where the fields of each rank begin."""
        self._fields = array("d")

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


class Halves:
    """The paces of all ranks by half window.

    >>> halves = Halves()
    >>> for half in range(4):
    ...     _ = halves.opened((0, half)).add(7, 10, 5.0, 0.6, 0.0)
    >>> list(halves), dict(halves.paces((0, 1))), dict(halves.paces((0, 9)))
    ([(0, 0), (0, 1), (0, 2), (0, 3)], {7: array('d', [10.0, 5.0, 0.6, 0.0])}, {})
    """

    __slots__ = ("_attempts", "_halves", "_numbers", "_open", "_parcels")

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        self._open: dict[WindowKey, Half] = {}
        """The one that was told last at the end."""
        self._attempts = array("q")
        self._halves = array("q")
        self._numbers = array("q")
        self._parcels = Parcels(archive)

    def __len__(self) -> int:
        """How many half windows anything was told of."""
        return len(self._open) + len(self._numbers)

    def __iter__(self) -> Iterator[WindowKey]:
        """Their keys, in no order."""
        return iter([*zip(self._attempts, self._halves, strict=True), *self._open])

    def everything(self) -> dict[WindowKey, Half]:
        """All of them, by key."""
        keys = zip(self._attempts, self._halves, strict=True)
        packed = (_unpacked(self._parcels.get(number)) for number in self._numbers)
        return dict(zip(keys, packed, strict=True)) | self._open

    def paces(self, key: WindowKey) -> Half:
        """The paces of a half window; empty where nobody reported."""
        known = self._open.get(key)
        if known is not None:
            return known
        place = self._place(key)
        return Half() if place is None else _unpacked(self._parcels.get(self._numbers[place]))

    def opened(self, key: WindowKey) -> Half:
        """The paces of a half window, to be added to until others are."""
        half = self.paces(key)
        self.drop(key)
        self._open[key] = half
        if len(self._open) > HALVES_OPEN:
            first = next(iter(self._open))
            self.put(first, self._open.pop(first))
        return half

    def put(self, key: WindowKey, half: Mapping[int, Sequence[float]]) -> None:
        """Pack a half window that is not held."""
        self._attempts.append(key[0])
        self._halves.append(key[1])
        self._numbers.append(self._parcels.put(_packed(half)))

    def drop(self, key: WindowKey) -> None:
        """Let go of a half window, if it is held."""
        if key in self._open:
            del self._open[key]
        elif (place := self._place(key)) is not None:
            self._parcels.drop(self._numbers[place])
            for column in (self._attempts, self._halves, self._numbers):
                del column[place]

    def _place(self, key: WindowKey) -> int | None:
        for place, half in enumerate(self._halves):
            if half == key[1] and self._attempts[place] == key[0]:
                return place
        return None


def pace(fields: Sequence[float]) -> Pace:
    """The pace whose fields were added up."""
    return Pace(int(fields[0]), *fields[1:])


def _packed(half: Mapping[int, Sequence[float]]) -> bytes:
    """A half window, 36 bytes a rank."""
    return b"".join(_CELL.pack(rank, *pace) for rank, pace in half.items())


def _unpacked(packed: bytes) -> Half:
    half = Half()
    for cell in _CELL.iter_unpack(packed):
        half.add(*cell)
    return half


def together(one: Sequence[float], other: Sequence[float]) -> Pace:
    """The pace of two stretches, by the fields of each."""
    longest = one[2] if one[2] > other[2] else other[2]  # noqa: FURB136 - half the time of `max`
    return Pace(int(one[0] + other[0]), one[1] + other[1], longest, one[3] + other[3])


def pace_of(times: StepSeconds, wait_s: float) -> tuple[int, float, float, float]:
    """The fields of the pace of a single report."""
    wait_s = max(0.0, wait_s)
    if times.sum < LARGEST_AMOUNT_S and times.max < LARGEST_AMOUNT_S and wait_s < LARGEST_AMOUNT_S:
        return times.count, times.sum, times.max, wait_s
    largest = LARGEST_AMOUNT_S
    return times.count, min(times.sum, largest), min(times.max, largest), min(wait_s, largest)
