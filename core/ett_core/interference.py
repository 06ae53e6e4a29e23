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
from collections.abc import Iterable, Mapping, Sequence
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

UNKNOWN = "unknown"
NOT_BEGUN = Flight(math.inf, None, UNKNOWN)

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
        "_count",
        "_forgotten",
        "_gone",
        "_open",
        "_reports",
        "_settled",
        "_settled_slowed_s",
        "_settled_through",
        "late",
    )

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing; `archive` keeps what is rarely needed again."""
        self._archive = archive
        self._open: dict[SaveKey, Flight] = {}
        """Saves that are not settled; of those that only ended so far the beginning is infinite."""
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
        for attempt in {attempt for attempt, _ in self._open}:
            found.update(self._measured(attempt, settled))
        return [found[key] for key in sorted(found)[-SAVES_KEPT:]]

    @property
    def slowed_s(self) -> float | None:
        """Seconds by which one save slows the steps beside it; None where nobody can tell.

        Of the saves whose reports were let go of, so that to ask costs nothing; before there is one, of all.
        """
        if len(self._settled):
            return self._settled_slowed_s
        return slowed_s(self.saves) if self._open else None

    def _settled_saves(self) -> dict[SaveKey, SaveInterference]:
        return {(save.attempt, save.step): save for save in self._settled.records()}

    def state(self) -> AsyncSavesState:
        """The saves as a value."""
        return AsyncSavesState(
            [(key, flight.begin) for key, flight in self._open.items() if flight.begin < math.inf],
            [
                (key, (flight.end, flight.outcome))
                for key, flight in self._open.items()
                if flight.end is not None
            ],
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
        for key, begin in state.begun:
            saves._open[key] = Flight(begin, None, UNKNOWN)
        for key, end in state.ended:
            saves._open[key] = Flight(saves._open.get(key, NOT_BEGUN).begin, *end)
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
        flight = self._open.get(key, NOT_BEGUN)
        if begins:
            flight = flight._replace(begin=min(flight.begin, event.time))
        else:
            ended = (event.time, "durable" if isinstance(event, CheckpointDurable) else "failed")
            if flight.end is None or ended < (flight.end, flight.outcome):
                flight = Flight(flight.begin, *ended)
        self._open[key] = flight
        if len(self._open) > SAVES_KEPT:
            del self._open[min(self._open)]

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
        self, attempt: int, settled: Mapping[SaveKey, SaveInterference], before: Moment | None = None
    ) -> dict[SaveKey, SaveInterference]:
        """What the saves of an attempt cost that are not settled; only of those that ended before a moment.

        Reports beside those that are settled do not tell what is usual.
        """
        flights = {
            key: flight for key, flight in self._open.items() if key[0] == attempt and flight.begin < math.inf
        }
        asked = [
            key
            for key, flight in flights.items()
            if before is None or (flight.end is not None and (attempt, flight.end) < before)
        ]
        if not asked:
            return {}
        for key, save in settled.items():
            if key[0] == attempt and save.ended is not None and (attempt, save.ended) >= self._gone:
                flights[key] = Flight(save.began, save.ended, save.outcome)
        found = measured(list(self._reports.get(attempt, ())), flights, asked)
        return {
            key: save if (attempt, save.began) >= self._gone else _too_long(save)
            for key, save in found.items()
        }

    def _forget(self) -> None:
        """Settle the saves that lie in the older half of the reports, and let those go that nobody needs."""
        kept = sorted((attempt, end) for attempt, some in self._reports.items() for end in some.ends())
        self._forgotten = kept[len(kept) // 2]
        settled = self._settled_saves()
        count = len(settled)
        for attempt in [attempt for attempt in self._reports if attempt <= self._forgotten[0]]:
            for key, save in self._measured(attempt, settled, before=self._forgotten).items():
                settled[key] = save
                del self._open[key]
        self._gone = self._first_needed(kept)
        for attempt in [attempt for attempt in self._reports if attempt <= self._gone[0]]:
            left_from = self._gone[1] if attempt == self._gone[0] else math.inf
            self._count -= self._reports[attempt].drop_before(left_from)
            if not self._reports[attempt]:
                del self._reports[attempt]
        if len(settled) > count:
            self._settle([settled[key] for key in sorted(settled)[-SAVES_KEPT:]])

    def _first_needed(self, kept: Sequence[Moment]) -> Moment:
        """The first of the reports that stay: of the time of saves without figures, and some before it."""
        begun = [(key[0], flight.begin) for key, flight in self._open.items()]
        whole = [moment for moment in begun if moment >= self._gone]
        place = bisect_left(kept, min([self._forgotten, *whole])) - REPORTS_BEFORE
        return kept[min(max(place, len(kept) // 5), len(kept) // 2)]


def _too_long(save: SaveInterference) -> SaveInterference:
    """A save of which the first reports are gone."""
    return replace(
        save, steps=0.0, usual_step_s=None, excess_s=None, share=None, noise_s=None, unknown=TOO_LONG
    )
