"""What asynchronous saves cost the steps beside them: step time above the usual while one is in flight.

A streaming fold beside the accounting, held by one thread at a time (the caller locks). Events come
in any order, each once; order changes no figure, but for what comes so late that its reports were let
go of: that is counted as `late` (see `ett_core.in_order`). The steps of an attempt are those that its
lowest reporting rank reports (`ett_core.save_reports`). A save is in flight from its `checkpoint` event,
mode `async`, on; what it cost is measured by `ett_core.save_costs`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from ett_core.archive import IN_MEMORY, Archive
from ett_core.events import Checkpoint, CheckpointDurable, CheckpointFailed
from ett_core.runs import Row
from ett_core.save_costs import Flight, SaveInterference, SaveKey, measured, slowed_s
from ett_core.save_reports import Report, Reports
from ett_core.shelf import Shelf

REPORTS_KEPT = 160
"""Reports kept of one job; older saves keep their figures, computed before their reports went."""
REPORTS_BEFORE = 32
"""Reports that stay of the time before the oldest save without figures: they say what was usual."""
SAVES_KEPT = 100
TOO_LONG = "more steps were reported while it was in flight than are kept"

Moment: TypeAlias = tuple[int, float]
"""Attempt and Unix time."""


class AsyncSavesState(NamedTuple):
    """An `AsyncSaves` as a value."""

    begun: list[tuple[SaveKey, float]]
    ended: list[tuple[SaveKey, tuple[float, str]]]
    reports: dict[int, list[Report]]
    leaders: dict[int, int]
    settled: list[SaveInterference]
    forgotten: Moment
    late: int = 0
    gone: Moment = (-1, 0.0)


class AsyncSaves:
    """The fold: `add` events, then read."""

    __slots__ = (
        "_archive",
        "_begun",
        "_count",
        "_ended",
        "_forgotten",
        "_gone",
        "_reports",
        "_settled",
        "_settled_slowed_s",
        "_settled_through",
        "late",
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
        self._forgotten: Moment = (-1, 0.0)
        """Saves that ended before it are settled."""
        self._gone: Moment = (-1, 0.0)
        """Reports that ended before it were let go of."""
        self.late = 0
        """How often something came that may concern saves whose reports were let go of."""

    def add(self, event: Checkpoint | CheckpointDurable | CheckpointFailed) -> None:
        """Take in one event; those that have nothing to do with it are passed over."""
        if event.mode == "async" and event.rank >= 0:
            self._add_save(event)

    @property
    def saves(self) -> list[SaveInterference]:
        """The asynchronous saves in order of attempt and step, at most the latest `SAVES_KEPT`."""
        settled = self._settled_saves()
        found = dict(settled)
        for attempt in {attempt for attempt, _ in self._begun}:
            found.update(self._measured(attempt, settled))
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
            self.late,
            self._gone,
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
        saves._forgotten, saves.late = state.forgotten, state.late
        saves._gone = state.gone
        saves._settle(state.settled)
        return saves

    def _settle(self, saves: Sequence[SaveInterference]) -> None:
        """Hold these saves, in the order of their keys, as the settled ones."""
        self._settled.put(saves)
        self._settled_through = (saves[-1].attempt, saves[-1].step) if saves else (-1, -1)
        self._settled_slowed_s = slowed_s(saves)

    def _add_save(self, event: Checkpoint | CheckpointDurable | CheckpointFailed) -> None:
        key, begins = (event.attempt, event.step), isinstance(event, Checkpoint)
        if key <= self._settled_through and (known := self._settled_saves().get(key)) is not None:
            told = known.began if begins else known.ended
            self.late += told is not None and event.time < told
            return
        if (event.attempt, event.time) < self._forgotten:
            self.late += 1
            return
        if begins:
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
                self.late += 1
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
        self, attempt: int, settled: Container[SaveKey], before: Moment | None = None
    ) -> dict[SaveKey, SaveInterference]:
        """What those saves of an attempt cost that are not settled; only of those that ended `before` it."""
        flights = {
            key: Flight(began, *self._ended.get(key, (None, "unknown")))
            for key, began in self._begun.items()
            if key[0] == attempt
        }
        asked = [
            key
            for key, flight in flights.items()
            if key not in settled
            and (before is None or (flight.end is not None and (attempt, flight.end) < before))
        ]
        if not asked:
            return {}
        found = measured(list(self._reports.get(attempt, ())), flights, asked)
        return {key: save if self._is_whole(key) else _too_long(save) for key, save in found.items()}

    def _is_whole(self, key: SaveKey) -> bool:
        """Whether all reports of a save since it began are kept."""
        return (key[0], self._begun[key]) >= self._gone

    def _forget(self) -> None:
        """Settle the saves that lie in the older half of the reports, and let those go that nobody needs."""
        kept = sorted((attempt, end) for attempt, some in self._reports.items() for end in some.ends())
        self._forgotten = kept[len(kept) // 2]
        settled = self._settled_saves()
        count = len(settled)
        for attempt in [attempt for attempt in self._reports if attempt <= self._forgotten[0]]:
            settled.update(self._measured(attempt, settled, before=self._forgotten))
        self._gone = self._first_needed(kept, settled)
        for attempt in [attempt for attempt in self._reports if attempt <= self._gone[0]]:
            left_from = self._gone[1] if attempt == self._gone[0] else math.inf
            self._count -= self._reports[attempt].drop_before(left_from)
            if not self._reports[attempt]:
                del self._reports[attempt]
        for key in [key for key in self._begun if key in settled and not self._is_needed(key)]:
            del self._begun[key]
            self._ended.pop(key, None)
        if len(settled) > count:
            self._settle([settled[key] for key in sorted(settled)[-SAVES_KEPT:]])

    def _first_needed(self, kept: Sequence[Moment], settled: Container[SaveKey]) -> Moment:
        """The first of the reports that stay: of the time of saves without figures, and some before it."""
        whole = [
            (key[0], began)
            for key, began in self._begun.items()
            if key not in settled and self._is_whole(key)
        ]
        oldest = min([self._forgotten, *whole])
        place = bisect_left(kept, oldest) - REPORTS_BEFORE
        return kept[min(max(place, len(kept) // 5), len(kept) // 2)]

    def _is_needed(self, key: SaveKey) -> bool:
        """Whether reports beside a save are kept: they do not tell what is usual."""
        return key in self._ended and (key[0], self._ended[key][0]) >= self._gone


def _too_long(save: SaveInterference) -> SaveInterference:
    """A save of which the first reports are gone."""
    return replace(
        save, steps=0.0, usual_step_s=None, excess_s=None, share=None, noise_s=None, unknown=TOO_LONG
    )
