"""The reports beside the asynchronous saves of one attempt, in columns; all but the latest lie packed.

Part of the search for what saves cost (`ett_core.interference`): held by one thread at a time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ett_core.archive import IN_MEMORY, Archive, Parcel, parcel_of

REPORTS_AT_HAND = 4
"""The latest reports, up to twice as many; the others lie packed."""


class Report(NamedTuple):
    """Steps between two moments (Unix seconds); they took `step_s` without their data waits."""

    end: float
    begin: float
    steps: int
    step_s: float


class Reports:
    """The reports of one attempt in order of time, in columns.

    >>> reports = Reports(0, [Report(9.0, 4.0, 10, 5.0)])
    >>> reports.add(4.0, 1.0, 6, 3.0)
    >>> [report.end for report in reports]
    [4.0, 9.0]
    """

    __slots__ = ("_archive", "_begins", "_count", "_ends", "_packed", "_step_s", "_steps", "leader")

    def __init__(self, leader: int = 0, reports: Iterable[Report] = (), archive: Archive = IN_MEMORY) -> None:
        """Start with some reports of a rank; `archive` keeps the older ones."""
        self.leader = leader
        self._archive = archive
        self._packed: Parcel | None = None
        """The columns of the older ones."""
        self._count = 0
        """How many those are."""
        self._ends = array("d")
        self._begins = array("d")
        self._steps = array("q")
        self._step_s = array("d")
        for report in reports:
            self.add(*report)

    def add(self, end: float, begin: float, steps: int, step_s: float) -> None:
        """Put a report in its place, by its fields."""
        ends = self._ends
        if ends and end > ends[-1]:
            self._steps.append(steps)
            ends.append(end)
            self._begins.append(begin)
            self._step_s.append(step_s)
            if len(ends) > 2 * REPORTS_AT_HAND:
                self._put_away()
            return
        if not ends or end <= ends[0]:
            self._bring_back()
        ends = self._ends
        place, report = len(ends), Report(end, begin, steps, step_s)
        while place and ends[place - 1] >= report.end and self._report(place - 1) > report:
            place -= 1
        self._steps.insert(place, steps)
        ends.insert(place, end)
        self._begins.insert(place, begin)
        self._step_s.insert(place, step_s)

    def _report(self, place: int) -> tuple[float, float, int, float]:
        return self._ends[place], self._begins[place], self._steps[place], self._step_s[place]

    def __len__(self) -> int:
        """How many they are."""
        return self._count + len(self._ends)

    def __iter__(self) -> Iterator[Report]:
        """In order of time."""
        ends, begins, steps, step_s = self._older()
        return map(
            Report, ends + self._ends, begins + self._begins, steps + self._steps, step_s + self._step_s
        )

    def drop_before(self, end: float) -> int:
        """Let go of those that end before a moment; returns how many they were."""
        self._bring_back()
        place = bisect_left(self._ends, end)
        for column in (self._ends, self._begins, self._steps, self._step_s):
            del column[:place]
        return place

    def _put_away(self) -> None:
        """Pack all but the latest."""
        self._bring_back()
        self._count = len(self._ends) - REPORTS_AT_HAND
        columns = (self._ends, self._begins, self._steps, self._step_s)
        packed = b"".join(column[: self._count].tobytes() for column in columns)
        for column in columns:
            del column[: self._count]
        self._packed = parcel_of(self._archive, packed)

    def _bring_back(self) -> None:
        if self._packed is not None:
            ends, begins, steps, step_s = self._older()
            self._ends, self._begins = ends + self._ends, begins + self._begins
            self._steps, self._step_s = steps + self._steps, step_s + self._step_s
            self._packed, self._count = None, 0

    def _older(self) -> tuple[array[float], array[float], array[int], array[float]]:
        ends, begins, steps, step_s = array("d"), array("d"), array("q"), array("d")
        if self._packed is not None:
            packed = memoryview(self._packed.read())
            length = self._count * ends.itemsize
            columns: tuple[array[Any], ...] = (ends, begins, steps, step_s)
            for place, column in enumerate(columns):
                column.frombytes(packed[place * length : (place + 1) * length])
        return ends, begins, steps, step_s
