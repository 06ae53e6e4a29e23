"""What the order of events decides, folded in the order of time: stragglers, and the cost of saves.

Memory of the folds is bounded: what comes when they have let go of its minutes is left out, and they count
it (`late`). Whoever has all events at hand gives them to a `Collected`, in any order, and folds anew
what came late: then the order of arrival changes nothing.
"""

from __future__ import annotations

import heapq
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import gt

from ett_core.archive import IN_MEMORY, Archive
from ett_core.clocks import corrected, moved_by
from ett_core.events import AnyEvent, Checkpoint, CheckpointDurable, CheckpointFailed, Progress
from ett_core.interference import AsyncSaves
from ett_core.runs import NO_BUCKETS, Row, rows_of
from ett_core.sequences import Sequences
from ett_core.stragglers import USUAL_RULES, RankPaces

FIELDS = 6
"""Of a report, each one number: when it ended and began, steps, their seconds, the longest, data wait."""
_TOLD = (Progress, Checkpoint, CheckpointDurable, CheckpointFailed)


class Collected:
    """Reports of step times and saves of one job; `add` them in any order, then `fold`.

    Takes 48 bytes a report. Each event counts once: where one comes again, or another under its key,
    `has_repeats` says so, and `ett_core.clocks.canonical` which of them count.
    """

    __slots__ = ("_known", "_lanes", "_saves", "has_repeats")

    def __init__(self) -> None:
        self._lanes: dict[int, dict[tuple[int, str], array[float]]] = {}
        """By attempt, and by rank and writer in it, the fields of its reports, as its clock had them."""
        self._saves: dict[int, list[Checkpoint | CheckpointDurable | CheckpointFailed]] = {}
        """Those of each attempt that asynchronous saves are told by."""
        self._known: defaultdict[str, Sequences] = defaultdict(Sequences)
        self.has_repeats = False

    def add(self, events: Iterable[AnyEvent]) -> None:
        """Collect what there is to collect in them; what cannot be folded is passed over."""
        for event in events:
            if not isinstance(event, _TOLD) or event.rank < 0:
                continue
            if not self._known[event.writer].add(event.seq):
                self.has_repeats = True
            elif isinstance(event, Progress):
                self._add_report(event)
            elif event.mode == "async":
                self._saves.setdefault(event.attempt, []).append(event)

    def fold(
        self, offset_s: Callable[[str], float], archive: Archive = IN_MEMORY
    ) -> tuple[RankPaces, AsyncSaves]:
        """Everything in the order of time; `offset_s` says by how many seconds a writer's clock is ahead."""
        paces, saves = RankPaces(archive=archive), AsyncSaves(archive)
        for attempt in sorted(self._lanes.keys() | self._saves.keys()):
            told = [corrected(event, offset_s(event.writer)) for event in self._saves.get(attempt, ())]
            told.sort(key=lambda event: event.time)
            place = 0
            for until, rank, rows in self._slices(attempt, offset_s):
                while place < len(told) and told[place].time < until:
                    saves.add(told[place])
                    place += 1
                paces.add(attempt, rank, rows)
                saves.add_reports(attempt, rank, rows)
            for event in told[place:]:
                saves.add(event)
        return paces, saves

    def _add_report(self, report: Progress) -> None:
        for end, begin, _, _, steps, step_s, max_s, wait_s, _ in rows_of([report], _pass_over):
            if not steps:
                continue
            lanes = self._lanes.setdefault(report.attempt, {})
            lane = lanes.get((report.rank, report.writer))
            if lane is None:
                lane = lanes[report.rank, report.writer] = array("d")
            lane.extend((end, begin, steps, step_s, max_s, wait_s))

    def _slices(
        self, attempt: int, offset_s: Callable[[str], float]
    ) -> Iterator[tuple[float, int, list[Row]]]:
        """The reports of an attempt by half window and rank, in order: until when that is, rank, rows."""
        lanes = self._lanes.get(attempt, {})
        cells = (
            _cells(rank, writer, _rows(fields, offset_s(writer))) for (rank, writer), fields in lanes.items()
        )
        for half, rank, _, rows in heapq.merge(*cells, key=lambda cell: cell[:3]):
            yield (half + 1) * USUAL_RULES.half_s, rank, rows


def _cells(rank: int, writer: str, rows: Iterable[Row]) -> Iterator[tuple[float, int, str, list[Row]]]:
    """The reports of one lane by half window."""
    for half, together in groupby(rows, key=lambda row: row[0] // USUAL_RULES.half_s):
        yield half, rank, writer, list(together)


def _rows(fields: array[float], offset_s: float) -> Iterator[Row]:
    """The reports of one lane in order of time, on the receiver's clock."""
    reports: Iterable[tuple[float, ...]] = zip(*[iter(fields)] * FIELDS, strict=True)
    ends = fields[::FIELDS]
    if any(map(gt, ends, ends[1:])):
        reports = sorted(reports)
    for end, begin, steps, step_s, max_s, wait_s in reports:
        ended, began = (moved_by(end, offset_s), moved_by(begin, offset_s)) if offset_s else (end, begin)
        yield ended, began, int(steps), 0.0, int(steps), step_s, max_s, wait_s, NO_BUCKETS


def _pass_over(_event: AnyEvent, _error: BaseException) -> None:
    """What cannot be folded was refused before."""
