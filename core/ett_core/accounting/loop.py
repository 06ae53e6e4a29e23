"""The training loop of one attempt, as its leader reports it, in compact columns.

One row a report: the time up to it since the report before, less the phases in between, is
shared out into data wait, stall and training. Rows are only ever appended, so a mark is a
length and going back is a cut. Times and amounts are whole nanoseconds.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from typing import NamedTuple

from ett_core.accounting.account import NS
from ett_core.accounting.phases import Phase
from ett_core.accounting.rows import Piece, Row, as_wait_ns, claim, fill, pieces_between
from ett_core.accounting.settings import Settings
from ett_core.components import DATA_WAIT, STALLED, TRAINING, UNSAVED_TRAINING
from ett_core.events import Progress

BLOCK = 1024
_COLUMNS = ("_ends", "_lefts", "_waits", "_stalls", "_last", "_steps")


class LoopMark(NamedTuple):
    """A point in a `Loop` to come back to."""

    rows: int
    phases: int
    prev_ns: int
    step: int
    step_count: int
    step_sum_s: float
    training_ns: int
    wait_ns: int
    stall_ns: int
    phase_ns: dict[str, int]


class LoopState(NamedTuple):
    """A `Loop` as a value; `columns` hold 64-bit integers, lowest byte first."""

    first_ns: int
    first: Progress
    first_stall_ns: int
    prev_ns: int
    step: int
    step_count: int
    step_sum_s: float
    training_ns: int
    wait_ns: int
    stall_ns: int
    phase_ns: dict[str, int]
    columns: list[bytes]
    phases: list[Piece]


class Loop:
    """What one leader reported.

    The first report is kept apart: its interval begins with the loop, and when that was can
    still be learnt from other ranks after it came.
    """

    def __init__(self, settings: Settings, at_ns: int, first: Progress) -> None:
        self._settings = settings
        self.first_ns = at_ns
        self.first = first
        self.step_count = 0
        self.step_sum_s = 0.0
        self.first_stall_ns = self._stall_ns(first)
        self.prev_ns = at_ns
        self.step = first.step
        self.training_ns = self.wait_ns = self.stall_ns = 0
        self.phase_ns: dict[str, int] = {}
        self._ends = array("q")
        self._lefts = array("q")
        self._waits = array("q")
        self._stalls = array("q")
        self._last = array("q")
        self._steps = array("q")
        self._phases: list[Piece] = []
        self._phase_ends = array("q")
        self._blocks: list[tuple[int, int, int]] = []

    @property
    def stall_limit_ns(self) -> int:
        """How long a silence or a step may be before it is a stall."""
        mean_s = self.step_sum_s / self.step_count if self.step_count else 0.0
        limit_s = max(self._settings.stall_after_s, self._settings.stall_steps * mean_s)
        return round(limit_s * NS)

    def report(self, at_ns: int, event: Progress, phases: Sequence[Phase]) -> None:
        """Append the leader's next report; `phases` began on its main track since the last."""
        left = at_ns - self.prev_ns
        if phases:
            left -= self._keep(pieces_between(self.prev_ns, at_ns, phases))
        wait = as_wait_ns(event.data_wait_s, left)
        stall = 0
        if event.step_seconds is not None:
            stall = min(self._stall_ns(event), left - wait)
        self._append(at_ns, left, wait, stall, event.step, event.steps)

    def _append(self, at_ns: int, left: int, wait: int, stall: int, step: int, steps: int) -> None:  # noqa: PLR0913, PLR0917 - a row
        self.wait_ns += wait
        self.stall_ns += stall
        self.training_ns += left - wait - stall
        self._ends.append(at_ns)
        self._lefts.append(left)
        self._waits.append(wait)
        self._stalls.append(stall)
        self._last.append(step)
        self._steps.append(steps)
        self.prev_ns = at_ns
        self.step = step

    def claimed(self, phases: Sequence[Phase]) -> Loop:
        """The same loop with phases, innermost first, that own what was left inside them.

        They began after the first report or in its interval and have just ended, with reports
        in between. The loop itself stays as it is, for marks that lead back to it.
        """
        first = bisect_right(self._ends, min(phase.begin_ns for phase in phases))
        twin = self._upto(first)
        for index in range(first, len(self._ends)):
            row = self._row(index)
            pieces = row.pieces
            for phase in phases:
                pieces = claim(pieces, phase)
            left = row.left_ns - twin._keep(pieces) + self._owned_ns(row)
            wait = min(row.wait_ns, left)
            twin._append(self._ends[index], left, wait, min(row.stall_ns, left - wait), row.step, row.steps)
        return twin

    @staticmethod
    def _owned_ns(row: Row) -> int:
        return sum(piece.end_ns - piece.begin_ns for piece in row.pieces if piece.component is not None)

    def _upto(self, rows: int) -> Loop:
        """A copy that holds only the first rows."""
        twin = copy(self)
        taken = self.totals(range(rows, len(self._ends)), None) if rows < len(self._ends) else {}
        twin.wait_ns -= taken.pop(DATA_WAIT, 0)
        twin.stall_ns -= taken.pop(STALLED, 0)
        twin.training_ns -= taken.pop(TRAINING, 0)
        twin.phase_ns = {c: amount - taken.get(c, 0) for c, amount in self.phase_ns.items()}
        for name in _COLUMNS:
            setattr(twin, name, getattr(self, name)[:rows])
        begin_ns = twin._ends[-1] if rows else self.first_ns
        kept = bisect_right(self._phase_ends, begin_ns)
        twin._phases, twin._phase_ends = self._phases[:kept], self._phase_ends[:kept]
        twin._blocks = self._blocks[: rows // BLOCK]
        twin.prev_ns = begin_ns
        return twin

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
        return round(excess_s * NS)

    def _keep(self, pieces: Sequence[Piece]) -> int:
        """Keep the pieces that phases own; returns their nanoseconds."""
        owned = 0
        for piece in pieces:
            if piece.component is None:
                continue
            length = piece.end_ns - piece.begin_ns
            owned += length
            self.phase_ns[piece.component] = self.phase_ns.get(piece.component, 0) + length
            self._phases.append(piece)
            self._phase_ends.append(piece.end_ns)
        return owned

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
        for index in range(bisect_right(self._ends, begin_ns), len(self._ends)):
            yield self._row(index)

    def _row(self, index: int) -> Row:
        begin = self._ends[index - 1] if index else self.first_ns
        end = self._ends[index]
        first = bisect_right(self._phase_ends, begin)
        last = bisect_right(self._phase_ends, end)
        pieces = fill(begin, end, self._phases[first:last])
        return Row(
            pieces,
            self._lefts[index],
            self._waits[index],
            self._stalls[index],
            self._last[index],
            self._steps[index],
        )

    def whole_rows(self, begin_ns: int, end_ns: int) -> range:
        """Reports after the first whose intervals lie wholly between two moments."""
        first = 0 if begin_ns <= self.first_ns else bisect_left(self._ends, begin_ns) + 1
        return range(first, max(first, bisect_right(self._ends, end_ns)))

    def bounds(self, rows: range) -> tuple[int, int]:
        """Where the intervals of some consecutive reports begin and end."""
        begin = self._ends[rows.start - 1] if rows.start else self.first_ns
        return begin, self._ends[rows.stop - 1]

    def totals(self, rows: range, fallback_step: int | None) -> dict[str, int]:
        """Nanoseconds by component in the intervals of some consecutive reports."""
        part = slice(rows.start, rows.stop)
        wait, stall = sum(self._waits[part]), sum(self._stalls[part])
        lost = self.lost_ns(fallback_step, rows)
        kept = sum(self._lefts[part]) - wait - stall - lost
        totals = {DATA_WAIT: wait, STALLED: stall, TRAINING: kept, UNSAVED_TRAINING: lost}
        begin, end = self.bounds(rows)
        for place in range(bisect_right(self._phase_ends, begin), bisect_right(self._phase_ends, end)):
            piece = self._phases[place]
            if piece.component is not None:
                totals[piece.component] = totals.get(piece.component, 0) + piece.end_ns - piece.begin_ns
        return totals

    def all_totals(self, fallback_step: int | None) -> dict[str, int]:
        """Nanoseconds by component after the first report."""
        lost = self.lost_ns(fallback_step)
        totals = dict(self.phase_ns)
        totals.update({DATA_WAIT: self.wait_ns, STALLED: self.stall_ns, UNSAVED_TRAINING: lost})
        totals[TRAINING] = self.training_ns - lost
        return totals

    def lost_ns(self, fallback_step: int | None, rows: range | None = None) -> int:
        """Training after the first report that a fall back to a step takes away."""
        if fallback_step is None:
            return 0
        self._summarise_blocks()
        rows = range(len(self._ends)) if rows is None else rows
        lost = 0
        for number in range(rows.start // BLOCK, -(-rows.stop // BLOCK)):
            first, last = number * BLOCK, (number + 1) * BLOCK
            if number >= len(self._blocks) or first < rows.start or last > rows.stop:
                lost += self._lost_in(max(first, rows.start), min(last, rows.stop), fallback_step)
                continue
            lowest, highest, training = self._blocks[number]
            if lowest >= fallback_step:
                lost += training
            elif highest > fallback_step:
                lost += self._lost_in(first, last, fallback_step)
        return lost

    def _lost_in(self, begin: int, end: int, fallback_step: int) -> int:
        return sum(
            Row((), *row).lost_ns(fallback_step)
            for row in zip(*(column[begin:end] for column in self._columns()), strict=True)
            if row[3] > fallback_step
        )

    def _summarise_blocks(self) -> None:
        while (len(self._blocks) + 1) * BLOCK <= len(self._ends):
            rows = slice(len(self._blocks) * BLOCK, (len(self._blocks) + 1) * BLOCK)
            last, steps = self._last[rows], self._steps[rows]
            lowest = min(map(_first_lost_from, last, steps))
            training = sum(self._lefts[rows]) - sum(self._waits[rows]) - sum(self._stalls[rows])
            self._blocks.append((lowest, max(last), training))

    def _columns(self) -> tuple[array[int], ...]:
        return (self._lefts, self._waits, self._stalls, self._last, self._steps)

    def mark(self) -> LoopMark:
        """What `restore` needs to come back to this point."""
        return LoopMark(
            len(self._ends),
            len(self._phases),
            self.prev_ns,
            self.step,
            self.step_count,
            self.step_sum_s,
            self.training_ns,
            self.wait_ns,
            self.stall_ns,
            dict(self.phase_ns),
        )

    def restore(self, mark: LoopMark) -> None:
        """Forget every report after `mark`."""
        for column in (self._ends, *self._columns()):
            del column[mark.rows :]
        del self._phases[mark.phases :]
        del self._phase_ends[mark.phases :]
        del self._blocks[mark.rows // BLOCK :]
        self.prev_ns, self.step = mark.prev_ns, mark.step
        self.step_count, self.step_sum_s = mark.step_count, mark.step_sum_s
        self.training_ns, self.wait_ns, self.stall_ns = mark.training_ns, mark.wait_ns, mark.stall_ns
        self.phase_ns = dict(mark.phase_ns)

    def state(self) -> LoopState:
        """The loop as a value."""
        return LoopState(
            self.first_ns,
            self.first,
            self.first_stall_ns,
            self.prev_ns,
            self.step,
            self.step_count,
            self.step_sum_s,
            self.training_ns,
            self.wait_ns,
            self.stall_ns,
            dict(self.phase_ns),
            [_as_bytes(getattr(self, name)) for name in _COLUMNS],
            list(self._phases),
        )

    @classmethod
    def of_state(cls, settings: Settings, state: LoopState) -> Loop:
        """The loop that gave `state`.

        Raises:
            ValueError: its columns do not fit each other.
        """
        if len({len(column) for column in state.columns}) != 1 or len(state.columns) != len(_COLUMNS):
            raise ValueError("the columns of a loop are not of one length")
        loop = cls(settings, state.first_ns, state.first)
        loop.first_stall_ns, loop.prev_ns, loop.step = state.first_stall_ns, state.prev_ns, state.step
        loop.step_count, loop.step_sum_s = state.step_count, state.step_sum_s
        loop.training_ns, loop.wait_ns, loop.stall_ns = state.training_ns, state.wait_ns, state.stall_ns
        loop.phase_ns = dict(state.phase_ns)
        for name, column in zip(_COLUMNS, state.columns, strict=True):
            setattr(loop, name, _from_bytes(column))
        loop._phases = list(state.phases)
        loop._phase_ends = array("q", [piece.end_ns for piece in state.phases])
        return loop


def _as_bytes(column: array[int]) -> bytes:
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column.tobytes()


def _from_bytes(data: bytes) -> array[int]:
    column = array("q")
    column.frombytes(data)
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _first_lost_from(step: int, steps: int) -> int:
    """The highest fallback that takes the whole report away."""
    return step - steps if steps else step - 1
