"""What asynchronous saves cost the steps beside them: step time above the usual while one is in flight.

A streaming fold beside the accounting, held by one thread at a time (the caller locks). Events come
in any order, each once. The steps of an attempt are those that its lowest reporting rank reports
(`ett_core.save_reports`). A save is in flight from its `checkpoint` event, mode `async`, on; what it
cost is measured by `ett_core.save_costs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ett_core.archive import IN_MEMORY, Archive
from ett_core.events import Checkpoint, CheckpointDurable, CheckpointFailed, Progress
from ett_core.save_costs import Flight, SaveInterference, SaveKey, measured, slowed_s
from ett_core.save_reports import Report, Reports
from ett_core.shelf import Shelf

REPORTS_KEPT = 128
"""Reports kept of one job; older saves keep their figures, computed before their reports went."""
SAVES_KEPT = 100
LARGEST_AMOUNT_S = 1e9

AsyncEvent: TypeAlias = Progress | Checkpoint | CheckpointDurable | CheckpointFailed


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

    def add(self, event: AsyncEvent) -> None:
        """Take in one event; those that have nothing to do with it are passed over."""
        if isinstance(event, Progress):
            self._add_report(event)
        elif event.mode == "async" and event.rank >= 0:
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

    def _add_report(self, event: Progress) -> None:
        times, attempt = event.step_seconds, event.attempt
        reports = self._reports.get(attempt)
        if reports is not None and event.rank > reports.leader:
            return
        if times is None or not times.count or event.rank < 0 or (attempt, event.time) < self._forgotten:
            return
        if reports is None or event.rank < reports.leader:
            self._count -= 0 if reports is None else len(reports)
            reports = self._reports[attempt] = Reports(event.rank, archive=self._archive)
        step_s = min(times.sum, LARGEST_AMOUNT_S)
        begin = event.time - step_s - min(max(event.data_wait_s, 0.0), LARGEST_AMOUNT_S)
        reports.add(event.time, begin, times.count, step_s)
        self._count += 1
        if self._count > REPORTS_KEPT:
            self._forget()

    def _measured(self, attempt: int) -> dict[SaveKey, SaveInterference]:
        flights = {
            key: Flight(began, *self._ended.get(key, (None, "unknown")))
            for key, began in self._begun.items()
            if key[0] == attempt
        }
        return measured(list(self._reports.get(attempt, ())), flights) if flights else {}

    def _forget(self) -> None:
        """Settle the saves that lie in the older half of the reports, and let those go."""
        kept = sorted((attempt, end) for attempt, some in self._reports.items() for end in some.ends())
        horizon = kept[len(kept) // 2]
        settled = self._settled_saves()
        for attempt in [attempt for attempt in self._reports if attempt <= horizon[0]]:
            for key, save in self._measured(attempt).items():
                if save.ended is not None and (attempt, save.ended) < horizon:
                    settled[key] = save
                    del self._begun[key]
                    self._ended.pop(key, None)
            left_from = horizon[1] if attempt == horizon[0] else math.inf
            self._count -= self._reports[attempt].drop_before(left_from)
            if not self._reports[attempt]:
                del self._reports[attempt]
        self._forgotten = horizon
        if len(settled) > len(self._settled):
            self._settle([settled[key] for key in sorted(settled)[-SAVES_KEPT:]])
