"""What the leader of one attempt reported, in compact columns, and what is asked of it.

One row a report: the time up to it since the report before, less the phases in between, is
shared out into data wait, stall and training. The first report is kept apart: its interval
begins with the loop, and when that was can still be learnt from other ranks after it came.
Times and amounts are whole nanoseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ett_core.accounting.account import NS
from ett_core.accounting.blocks import Blocks
from ett_core.accounting.columns import Columns
from ett_core.accounting.phases import Phase
from ett_core.accounting.rows import Row, as_wait_ns, pieces_between
from ett_core.accounting.settings import Settings
from ett_core.archive import IN_MEMORY, Archive, Parcels
from ett_core.components import DATA_WAIT, STALLED, TRAINING, UNSAVED_TRAINING
from ett_core.events import Progress

LONGEST_STALL_NS = 4 * 10**9 * NS
"""A lifetime: longer ones do not fit into the columns, and no report lasts as long."""


class First(NamedTuple):
    """What the first report says that its row needs."""

    step: int
    steps: int
    data_wait_s: float


class LoopRows:
    """The reports of one leader; `Loop` appends them."""

    __slots__ = (
        "_blocks",
        "_phases_before",
        "_rows",
        "_settings",
        "first",
        "first_ns",
        "first_stall_ns",
        "phase_ns",
        "prev_ns",
        "stall_ns",
        "step",
        "step_count",
        "step_sum_s",
        "training_ns",
        "wait_ns",
    )

    def __init__(
        self, settings: Settings, at_ns: int, first: First | Progress, archive: Archive = IN_MEMORY
    ) -> None:
        self._settings = settings
        self.first_ns = at_ns
        self.first = First(first.step, first.steps, first.data_wait_s)
        self.step_count = 0
        self.step_sum_s = 0.0
        self.first_stall_ns = self._stall_ns(first) if isinstance(first, Progress) else 0
        self.prev_ns = at_ns
        self.step = first.step
        self.training_ns = self.wait_ns = self.stall_ns = 0
        self.phase_ns: dict[str, int] = {}
        """Never changed, only replaced: marks share it."""
        self._blocks = Blocks(at_ns, Parcels(archive))
        self._rows = Columns()
        """The rows after the blocks."""
        self._phases_before = 0
        """Pieces of phases in the blocks."""

    @property
    def stall_limit_ns(self) -> int:
        """How long a silence or a step may be before it is a stall."""
        mean_s = self.step_sum_s / self.step_count if self.step_count else 0.0
        limit_s = max(self._settings.stall_after_s, self._settings.stall_steps * mean_s)
        return round(limit_s * NS)

    def _stall_ns(self, event: Progress) -> int:
        """Excess of the longest step of a report; also learns how long steps take."""
        seconds = event.step_seconds
        if seconds is None:
            return 0
        excess_s = 0.0
        if seconds.max > self._settings.stall_after_s and round(seconds.max * NS) > self.stall_limit_ns:
            others = seconds.count - 1
            mean_s = max(seconds.sum - seconds.max, 0.0) / others if others > 0 else 0.0
            excess_s = max(seconds.max - mean_s, 0.0)
        self.step_count += seconds.count
        self.step_sum_s += max(seconds.sum - excess_s, 0.0)
        return min(round(excess_s * NS), LONGEST_STALL_NS)

    @property
    def _count(self) -> int:
        """Reports after the first."""
        return self._blocks.rows + len(self._rows)

    def _place(self, at_ns: int, *, after: bool) -> int:
        """The first report at (or, where `after`, beyond) a moment, after the first."""
        place = self._blocks.place(at_ns, after=after)
        if place < self._blocks.rows:
            return place
        search = bisect_right if after else bisect_left
        return place + search(self._rows.ends, at_ns)

    def _parts(self, rows: range) -> Iterator[tuple[Columns, int, int, int]]:
        """The columns that hold some rows: which of theirs, and where the first of these begins."""
        at = rows.start
        while at < rows.stop:
            if at < self._blocks.rows:
                block = self._blocks.block_of(at)
                columns, begin_ns = self._blocks.columns(block), self._blocks.begin_of(block)
                before = self._blocks.first_row(block)
                first, last = at - before, min(rows.stop - before, self._blocks.size(block))
            else:
                columns, begin_ns = self._rows, self._blocks.end_ns
                first, last = at - self._blocks.rows, rows.stop - self._blocks.rows
            yield columns, first, last, columns.ends[first - 1] if first else begin_ns
            at += last - first

    def _from(self, first: int) -> Iterator[tuple[int, Row]]:
        """The reports from one on, each with its end."""
        for columns, begin, end, before_ns in self._parts(range(first, self._count)):
            before = before_ns
            for place in range(begin, end):
                yield columns.ends[place], columns.row(place, before)
                before = columns.ends[place]

    def first_row(self, loop_ns: int, phases: Sequence[Phase]) -> Row:
        """The first report, whose interval begins with the loop at `loop_ns`."""
        begin = min(loop_ns, self.first_ns)
        pieces = pieces_between(begin, self.first_ns, phases)
        left = sum(p.end_ns - p.begin_ns for p in pieces if p.component is None)
        wait = as_wait_ns(self.first.data_wait_s, left)
        stall = min(self.first_stall_ns, left - wait)
        return Row(pieces, left, wait, stall, self.first.step, self.first.steps)

    def rows(self, begin_ns: int) -> Iterator[Row]:
        """The reports after the first that came after `begin_ns`."""
        return (row for _, row in self._from(self._place(begin_ns, after=True)))

    def whole_rows(self, begin_ns: int, end_ns: int) -> range:
        """Reports after the first whose intervals lie wholly between two moments."""
        first = 0 if begin_ns <= self.first_ns else self._place(begin_ns, after=False) + 1
        return range(first, max(first, self._place(end_ns, after=True)))

    def begin_of_report(self, at_ns: int) -> int:
        """Where the interval of the report that tells of a moment begins; of the first one, 0."""
        row = self._place(at_ns, after=True)
        return 0 if at_ns < self.first_ns else self._end_of(row - 1)

    def bounds(self, rows: range) -> tuple[int, int]:
        """Where the intervals of some consecutive reports begin and end."""
        return self._end_of(rows.start - 1), self._end_of(rows.stop - 1)

    def _end_of(self, row: int) -> int:
        if row < 0:
            return self.first_ns
        if row >= self._blocks.rows:
            return self._rows.ends[row - self._blocks.rows]
        block = self._blocks.block_of(row)
        place = row - self._blocks.first_row(block)
        if place == self._blocks.size(block) - 1:
            return self._blocks.ends[block]
        return self._blocks.columns(block).ends[place]

    def totals(self, rows: range, fallback_step: int | None) -> dict[str, int]:
        """Nanoseconds by component in the intervals of some consecutive reports."""
        totals: dict[str, int] = {}
        at = rows.start
        while at < rows.stop:
            block = self._blocks.block_of(at)
            is_closed = at < self._blocks.rows
            end = self._blocks.first_row(block) + self._blocks.size(block) if is_closed else rows.stop
            if is_closed and at == self._blocks.first_row(block) and end <= rows.stop:
                found = self._blocks.totals(block, fallback_step)
            else:
                end = min(end, rows.stop)
                columns, first, last, before_ns = next(self._parts(range(at, end)))
                found = columns.totals(first, last, before_ns, fallback_step)
            at = end
            for component, amount in found.items():
                totals[component] = totals.get(component, 0) + amount
        return totals

    def all_totals(self, fallback_step: int | None) -> dict[str, int]:
        """Nanoseconds by component after the first report."""
        lost = self.lost_ns(fallback_step)
        totals = dict(self.phase_ns)
        totals.update({DATA_WAIT: self.wait_ns, STALLED: self.stall_ns, UNSAVED_TRAINING: lost})
        totals[TRAINING] = self.training_ns - lost
        return totals

    def lost_ns(self, fallback_step: int | None) -> int:
        """Training after the first report that a fall back to a step takes away."""
        in_blocks = sum(self._blocks.lost_ns(block, fallback_step) for block in range(len(self._blocks)))
        return in_blocks + self._rows.lost_ns(0, len(self._rows), fallback_step)
