"""What asynchronous saves cost the steps beside them: step time above the usual while one is in flight.

A streaming fold beside the accounting, held by one thread at a time (the caller locks). Events come
in any order, each once. The steps of an attempt are those that its lowest reporting rank reports.
A save is in flight from the end of its blocking part (its `checkpoint` event, mode `async`) to the
first report that it is durable or has failed. The usual step is the median of the reports around
it that no save touches; the excess is what the steps of a save took beyond as many usual ones:

    reports       |--10 steps, 5 s--|-----10 steps, 8 s-----|--10 steps, 5 s--|
    save                            |<-----in flight------->|
    usual step 0.5 s                 excess 8 - 10 x 0.5 = 3 s, a share of 0.6

It is no component: the time is in `training` already. Data waits are not counted.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import asdict, replace

from ett_core.archive import IN_MEMORY, Archive, Parcel, parcel_of
from ett_core.events import Checkpoint, CheckpointDurable, CheckpointFailed, Progress
from ett_core.shelf import Shelf

REPORTS_KEPT = 128
"""Reports kept of one job; older saves keep their figures, computed before their reports went."""
REPORTS_AT_HAND = 20
"""Of these the latest; the others lie packed."""
SAVES_KEPT = 100
NEAR_REPORTS = 20
"""Reports before a save, and as many after it, that say what is usual."""
USUAL_REPORTS = 3
USUAL_STEPS = 10
"""Fewer reports, or fewer steps in them, say nothing about what is usual."""
BRUSH = 0.01
"""A report of which less than this share lies in the flight of a save is untouched by it."""
SPREAD_OF_NORMAL = 1.4826
MEDIAN_ERROR = 1.2533
"""Standard error of a median, in those of a mean."""
LARGEST_AMOUNT_S = 1e9

SaveKey: TypeAlias = tuple[int, int]
"""Attempt and step."""
AsyncEvent: TypeAlias = Progress | Checkpoint | CheckpointDurable | CheckpointFailed

NO_END = "nobody told whether it became durable"
NO_STEPS = "no step was reported while it was in flight"
NO_USUAL = "too few steps were reported without a save in flight"


class Report(NamedTuple):
    """Steps between two moments (Unix seconds); they took `step_s` without their data waits."""

    end: float
    begin: float
    steps: int
    step_s: float


class Flight(NamedTuple):
    """An asynchronous save; `end` is None where nobody told it."""

    begin: float
    end: float | None
    outcome: str


class Part(NamedTuple):
    """A report of which `share` lies in the flight of a save, and how much of its excess is the save's."""

    report: Report
    share: float
    part: float


class SaveInterference(msgspec.Struct, frozen=True, gc=False):
    """What one asynchronous save cost the steps beside it.

    `began` is the end of its blocking part, `ended` the moment when it was durable or had failed
    (Unix seconds); `outcome` is `durable`, `failed` or `unknown`. `excess_s`: seconds that the
    steps in flight took beyond usual ones; `share`: the same as a share of usual ones; `noise_s`:
    about as much may be chance (two standard deviations). All None where `unknown` says why.
    """

    attempt: int
    step: int
    began: float
    ended: float | None
    outcome: str
    steps: float = 0.0
    usual_step_s: float | None = None
    excess_s: float | None = None
    share: float | None = None
    noise_s: float | None = None
    unknown: str = ""


class Interference(msgspec.Struct, frozen=True, gc=False):
    """All asynchronous saves of a job: of `saves`, `known` are in the sums (None without any)."""

    saves: int
    known: int
    excess_s: float | None
    share: float | None
    noise_s: float | None


class Reports:
    """The reports of one attempt in order of time, in columns.

    >>> reports = Reports([Report(9.0, 4.0, 10, 5.0)])
    >>> reports.add(4.0, 1.0, 6, 3.0)
    >>> [report.end for report in reports]
    [4.0, 9.0]
    """

    __slots__ = ("_archive", "_begins", "_count", "_ends", "_packed", "_step_s", "_steps")

    def __init__(self, reports: Iterable[Report] = (), archive: Archive = IN_MEMORY) -> None:
        """Start with some; `archive` keeps the older ones."""
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
        "_leaders",
        "_reports",
        "_settled",
        "_settled_through",
    )

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing; `archive` keeps what is rarely needed again."""
        self._archive = archive
        self._begun: dict[SaveKey, float] = {}
        self._ended: dict[SaveKey, tuple[float, str]] = {}
        self._reports: dict[int, Reports] = {}
        self._count = 0
        self._leaders: dict[int, int] = {}
        self._settled = Shelf(SaveInterference, archive=archive)
        self._settled_through: SaveKey = (-1, -1)
        """The last of the settled ones."""
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

    def _settled_saves(self) -> dict[SaveKey, SaveInterference]:
        return {(save.attempt, save.step): save for save in self._settled.records()}

    def state(self) -> AsyncSavesState:
        """The saves as a value."""
        return AsyncSavesState(
            list(self._begun.items()),
            list(self._ended.items()),
            {attempt: list(reports) for attempt, reports in self._reports.items()},
            dict(self._leaders),
            self._settled.records(),
            self._forgotten,
        )

    @classmethod
    def of_state(cls, state: AsyncSavesState, archive: Archive = IN_MEMORY) -> AsyncSaves:
        """The saves that gave `state`."""
        saves = cls(archive)
        saves._begun, saves._ended = dict(state.begun), dict(state.ended)
        saves._reports = {attempt: Reports(reports, archive) for attempt, reports in state.reports.items()}
        saves._count = sum(map(len, saves._reports.values()))
        saves._leaders, saves._forgotten = dict(state.leaders), state.forgotten
        saves._settle(state.settled)
        return saves

    def _settle(self, saves: Sequence[SaveInterference]) -> None:
        """Hold these saves, in the order of their keys, as the settled ones."""
        self._settled.put(saves)
        self._settled_through = (saves[-1].attempt, saves[-1].step) if saves else (-1, -1)

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
        leader = self._leaders.get(attempt)
        if leader is not None and event.rank > leader:
            return
        if times is None or not times.count or event.rank < 0 or (attempt, event.time) < self._forgotten:
            return
        if leader is None or event.rank < leader:
            self._leaders[attempt] = event.rank
            self._count -= len(self._reports.pop(attempt, ()))
            self._reports[attempt] = Reports(archive=self._archive)
        step_s = min(times.sum, LARGEST_AMOUNT_S)
        begin = event.time - step_s - min(max(event.data_wait_s, 0.0), LARGEST_AMOUNT_S)
        reports = self._reports.get(attempt)
        if reports is None:
            reports = self._reports[attempt] = Reports(archive=self._archive)
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
        kept = sorted((attempt, report.end) for attempt, some in self._reports.items() for report in some)
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


def measured(reports: Sequence[Report], flights: Mapping[SaveKey, Flight]) -> dict[SaveKey, SaveInterference]:
    """What the saves of one attempt cost, by its reports in order of time.

    A save whose end nobody told is taken to be in flight until the next one begins; it has no
    figures and its steps are not usual ones.
    """
    order = sorted(flights, key=lambda key: (flights[key].begin, key))
    spans = _spans([flights[key] for key in order])
    parts: list[list[Part]] = [[] for _ in spans]
    usual = []
    for report, touched in zip(reports, _touched(reports, spans), strict=True):
        for place, share in touched.items():
            parts[place].append(Part(report, share, share / sum(touched.values())))
        if not touched:
            usual.append(report)
    return {
        key: _measure(key, flights[key], parts[place], _near(usual, spans[place]))
        for place, key in enumerate(order)
    }


def as_object(saves: Sequence[SaveInterference]) -> dict[str, Any]:
    """The saves and their sums as one JSON object; empty without any save."""
    if not saves:
        return {}
    return {**asdict(total(saves)), "save_list": [asdict(save) for save in saves]}


def total(saves: Iterable[SaveInterference]) -> Interference:
    """The sums over saves; those without figures are only counted."""
    saves = list(saves)
    known = [save for save in saves if save.excess_s is not None]
    if not known:
        return Interference(len(saves), 0, None, None, None)
    excess_s = sum(save.excess_s or 0.0 for save in known)
    usual_s = sum(save.steps * (save.usual_step_s or 0.0) for save in known)
    noise_s = sum((save.noise_s or 0.0) ** 2 for save in known) ** 0.5
    return Interference(len(saves), len(known), excess_s, excess_s / usual_s if usual_s else None, noise_s)


def _spans(flights: Sequence[Flight]) -> list[tuple[float, float]]:
    """When saves were in flight, for saves in the order of their beginnings."""
    following = [*(flight.begin for flight in flights), float("inf")][1:]
    return [
        (flight.begin, max(flight.begin, after if flight.end is None else flight.end))
        for flight, after in zip(flights, following, strict=True)
    ]


def _touched(reports: Sequence[Report], spans: Sequence[tuple[float, float]]) -> Iterator[dict[int, float]]:
    """Of each report, the spans that it lies in, and how much of its time in each.

    >>> list(_touched([Report(end=10.0, begin=0.0, steps=5, step_s=10.0)], [(0.0, 2.5), (5.0, 99.0)]))
    [{0: 0.25, 1: 0.5}]
    """
    reach = list(accumulate((end for _, end in spans), max))
    for report in reports:
        places = range(bisect_right(reach, report.begin), bisect_left(spans, (report.end,)))
        if not places:
            yield {}
            continue
        length_s = max(report.end - report.begin, 1e-9)
        shares = ((place, _overlap_s(report, spans[place]) / length_s) for place in places)
        yield {place: share for place, share in shares if share > BRUSH}


def _overlap_s(report: Report, span: tuple[float, float]) -> float:
    return min(span[1], report.end) - max(span[0], report.begin)


def _near(usual: Sequence[Report], span: tuple[float, float]) -> Sequence[Report]:
    """The reports nearest to a span, before and after it."""
    place = bisect_left(usual, (span[0],))
    return usual[max(place - NEAR_REPORTS, 0) : place + NEAR_REPORTS]


def _measure(
    key: SaveKey, flight: Flight, parts: Sequence[Part], usual: Sequence[Report]
) -> SaveInterference:
    steps = sum(part.report.steps * part.share for part in parts)
    save = SaveInterference(*key, flight.begin, flight.end, flight.outcome, steps)
    usual_steps = sum(report.steps for report in usual)
    if flight.end is None:
        return replace(save, unknown=NO_END)
    if not steps:
        return replace(save, unknown=NO_STEPS)
    if len(usual) < USUAL_REPORTS or usual_steps < USUAL_STEPS:
        return replace(save, unknown=NO_USUAL)
    means = [report.step_s / report.steps for report in usual]
    usual_s = median(means)
    spread_s = SPREAD_OF_NORMAL * median(abs(mean - usual_s) for mean in means)
    excess_s = sum((part.report.step_s - part.report.steps * usual_s) * part.part for part in parts)
    seen = sum(part.report.steps * part.part for part in parts)
    by_chance = (seen * usual_steps / len(usual) + (MEDIAN_ERROR * seen) ** 2 / len(usual)) ** 0.5
    return replace(
        save,
        usual_step_s=usual_s,
        excess_s=excess_s,
        share=excess_s / (steps * usual_s) if usual_s else None,
        noise_s=2.0 * spread_s * by_chance,
    )
