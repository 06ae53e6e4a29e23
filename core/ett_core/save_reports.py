"""The reports beside the asynchronous saves of one attempt; all but the latest lie packed.

Part of the search for what saves cost (`ett_core.interference`): held by one thread at a time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ett_core.archive import IN_MEMORY, Archive, Parcel, parcel_of

REPORTS_AT_HAND = 6
"""The latest reports, up to twice as many; the others lie packed."""
FIELDS = 4
"""Of a report, each one number; no number of steps is too large."""


class Report(NamedTuple):
    """Steps between two moments (Unix seconds); they took `step_s` without their data waits."""

    end: float
    begin: float
    steps: int
    step_s: float


class Reports:
    """The reports of one attempt in order of time.

    >>> reports = Reports(0, [Report(9.0, 4.0, 10, 5.0)])
    >>> reports.add(4.0, 1.0, 6, 3.0)
    >>> [report.end for report in reports]
    [4.0, 9.0]
    """

    __slots__ = ("_archive", "_older", "_rows", "leader")

    def __init__(self, leader: int = 0, reports: Iterable[Report] = (), archive: Archive = IN_MEMORY) -> None:
        """Start with some reports of a rank; `archive` keeps the older ones."""
        self.leader = leader
        self._archive = archive
        self._older: Parcel | None = None
        """The fields of the older ones, which all end before those at hand."""
        self._rows = array("d")
        """The fields of those at hand, one report after the other."""
        for report in reports:
            self.add(*report)
        self.settle()

    def add(self, end: float, begin: float, steps: int, step_s: float) -> None:
        """Put a report in its place, by its fields."""
        rows = self._rows
        if rows and end > rows[-FIELDS]:
            rows.extend((end, begin, steps, step_s))
            return
        if not rows or end <= rows[0]:
            self._bring_back()
        rows, report = self._rows, (end, begin, steps, step_s)
        place = len(rows)
        while place and rows[place - FIELDS] >= end and tuple(rows[place - FIELDS : place]) > report:
            place -= FIELDS
        rows[place:place] = array("d", report)

    def __len__(self) -> int:
        """How many they are."""
        return len(self._everything()) // FIELDS

    def __iter__(self) -> Iterator[Report]:
        """In order of time."""
        columns = [iter(self._everything())] * FIELDS
        return (
            Report(end, begin, int(steps), step_s) for end, begin, steps, step_s in zip(*columns, strict=True)
        )

    def ends(self) -> array[float]:
        """When each ends, in order."""
        return self._everything()[::FIELDS]

    def drop_before(self, end: float) -> int:
        """Let go of those that end before a moment; returns how many they were."""
        self._bring_back()
        count = bisect_left(self._rows[::FIELDS], end)
        del self._rows[: count * FIELDS]
        return count

    def settle(self) -> None:
        """Pack all but the latest, where those at hand have become many."""
        if len(self._rows) <= 2 * REPORTS_AT_HAND * FIELDS:
            return
        older = b"" if self._older is None else self._older.read()
        away = slice(0, -REPORTS_AT_HAND * FIELDS)
        self._older = parcel_of(self._archive, older + self._rows[away].tobytes())
        del self._rows[away]

    def _bring_back(self) -> None:
        self._rows, self._older = self._everything(), None

    def _everything(self) -> array[float]:
        if self._older is None:
            return self._rows
        rows = array("d")
        rows.frombytes(self._older.read())
        return rows + self._rows
