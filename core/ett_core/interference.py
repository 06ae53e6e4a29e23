"""What asynchronous saves cost the steps beside them: step time above the usual while one is in flight.

A streaming fold beside the accounting, held by one thread at a time (the caller locks). Events come
in any order, each once. The steps of an attempt are those that its lowest reporting rank reports
(`ett_core.save_reports`). A save is in flight from its `checkpoint` event, mode `async`, on; what it
cost is measured by `ett_core.save_costs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ett_core.archive import IN_MEMORY, Archive
from ett_core.events import Checkpoint, CheckpointDurable, CheckpointFailed
from ett_core.runs import Row
from ett_core.save_costs import Flight, SaveInterference, SaveKey, measured, slowed_s
from ett_core.save_reports import Report, Reports
from ett_core.shelf import Shelf

REPORTS_KEPT = 128
"""Reports kept of one job; older saves keep their figures, computed before their reports went."""
SAVES_KEPT = 100


class AsyncSavesState(NamedTuple):
    """An `AsyncSaves` as a value."""

    begun: list[tuple[SaveKey, float]]
    ended: list[tuple[SaveKey, tuple[float, str]]]
    reports: dict[int, list[Report]]
    leaders: dict[int, int]
    settled: list[SaveInterference]
    forgotten: tuple[int, float]


class AsyncSaves:
    """The fold: `add` events, then read."""

    __slots__ = (
        "_archive",
        "_begun",
        "_count",
        "_ended",
        "_forgotten",
        "_reports",
        "_settled",
        "_settled_slowed_s",
        "_settled_through",
    )

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing; `archive` keeps what is rarely needed again."""
        self._archive = archive
        self._begun: dict[SaveKey, float] = {}
        self._ended: dict[SaveKey, tuple[float, str]] = {}
        self._reports: dict[int, Reports] = {}
        self._count = 0
        self._settled = Shelf(SaveInterference, archive=archive)
        self._settled_through: SaveKey = (-1, -1)
        """The last of the settled ones."""
        self._settled_slowed_s: float | None = None
        self._forgotten = (-1, 0.0)

    def add(self, event: Checkpoint | CheckpointDurable | CheckpointFailed) -> None:
        """Take in one event; those that have nothing to do with it are passed over."""
        if event.mode == "async" and event.rank >= 0:
            self._add_save(event)

    @property
    def saves(self) -> list[SaveInterference]:
        """The asynchronous saves in order of attempt and step, at most the latest `SAVES_KEPT`."""
        found = self._settled_saves()
        for attempt in {attempt for attempt, _ in self._begun}:
            found.update(self._measured(attempt))
        return [found[key] for key in sorted(found)[-SAVES_KEPT:]]

    @property
    def slowed_s(self) -> float | None:
        """Seconds by which one save slows the steps beside it; None where nobody can tell.

        Of the saves whose reports were let go of, so that to ask costs nothing; before there is one, of all.
        """
        if len(self._settled):
            return self._settled_slowed_s
        return slowed_s(self.saves) if self._ended else None

    def _settled_saves(self) -> dict[SaveKey, SaveInterference]:
        return {(save.attempt, save.step): save for save in self._settled.records()}

    def state(self) -> AsyncSavesState:
        """The saves as a value."""
        return AsyncSavesState(
            list(self._begun.items()),
            list(self._ended.items()),
            {attempt: list(reports) for attempt, reports in self._reports.items()},
            {attempt: reports.leader for attempt, reports in self._reports.items()},
            self._settled.records(),
            self._forgotten,
        )

    @classmethod
    def of_state(cls, state: AsyncSavesState, archive: Archive = IN_MEMORY) -> AsyncSaves:
        """The saves that gave `state`."""
        saves = cls(archive)
        saves._begun, saves._ended = dict(state.begun), dict(state.ended)
        saves._reports = {
            attempt: Reports(state.leaders[attempt], reports, archive)
            for attempt, reports in state.reports.items()
        }
        saves._count = sum(map(len, saves._reports.values()))
        saves._forgotten = state.forgotten
        saves._settle(state.settled)
        return saves

    def _settle(self, saves: Sequence[SaveInterference]) -> None:
        """Hold these saves, in the order of their keys, as the settled ones."""
        self._settled.put(saves)
        self._settled_through = (saves[-1].attempt, saves[-1].step) if saves else (-1, -1)
        self._settled_slowed_s = slowed_s(saves)

    def _is_settled(self, key: SaveKey) -> bool:
        return key <= self._settled_through and key in self._settled_saves()

    def _add_save(self, event: Checkpoint | CheckpointDurable | CheckpointFailed) -> None:
        key = (event.attempt, event.step)
        if (event.attempt, event.time) < self._forgotten or self._is_settled(key):
            return
        if isinstance(event, Checkpoint):
            self._begun[key] = min(self._begun.get(key, event.time), event.time)
        else:
            outcome = "durable" if isinstance(event, CheckpointDurable) else "failed"
            self._ended[key] = min(self._ended.get(key, (event.time, outcome)), (event.time, outcome))
        for kept in (self._begun, self._ended):
            if len(kept) > SAVES_KEPT:
                del kept[min(kept)]

    def add_reports(self, attempt: int, rank: int, timed: Iterable[Row]) -> None:
        """Take in reports of a rank of an attempt, 0 or more, with timed steps."""
        reports = self._reports.get(attempt)
        if reports is not None and rank > reports.leader:
            return
        for end, begin, _, _, steps, step_s, _, _, _ in timed:
            if (attempt, end) < self._forgotten:
                continue
            if reports is None or rank < reports.leader:
                self._count -= 0 if reports is None else len(reports)
                reports = self._reports[attempt] = Reports(rank, archive=self._archive)
            reports.add(end, begin, steps, step_s)
            self._count += 1
            if self._count > REPORTS_KEPT:
                self._forget()
                reports = self._reports.get(attempt)
        if reports is not None:
            reports.settle()

    def _measured(
        self, attempt: int, before: tuple[int, float] | None = None
    ) -> dict[SaveKey, SaveInterference]:
        """What the saves of an attempt cost: of all, or of those that ended before an attempt and moment."""
        flights = {
            key: Flight(began, *self._ended.get(key, (None, "unknown")))
            for key, began in self._begun.items()
            if key[0] == attempt
        }
        asked = [
            key
            for key, flight in flights.items()
            if before is None or (flight.end is not None and (attempt, flight.end) < before)
        ]
        return measured(list(self._reports.get(attempt, ())), flights, asked) if asked else {}

    def _forget(self) -> None:
        """Settle the saves that lie in the older half of the reports, and let those go."""
        kept = sorted((attempt, end) for attempt, some in self._reports.items() for end in some.ends())
        horizon = kept[len(kept) // 2]
        settled = self._settled_saves()
        for attempt in [attempt for attempt in self._reports if attempt <= horizon[0]]:
            for key, save in self._measured(attempt, before=horizon).items():
                settled[key] = save
                del self._begun[key], self._ended[key]
            left_from = horizon[1] if attempt == horizon[0] else math.inf
            self._count -= self._reports[attempt].drop_before(left_from)
            if not self._reports[attempt]:
                del self._reports[attempt]
        self._forgotten = horizon
        if len(settled) > len(self._settled):
            self._settle([settled[key] for key in sorted(settled)[-SAVES_KEPT:]])
