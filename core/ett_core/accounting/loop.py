"""The training loop of one attempt, as its leader reports it, in compact columns.

One row a report: the time up to it since the report before, less the phases in between, is
shared out into data wait, stall and training. Rows are only ever appended, so a mark is a
length and going back is a cut; rows to which no mark leads back can be closed into blocks.
Times and amounts are whole nanoseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from typing import NamedTuple

from ett_core.accounting.account import NS
from ett_core.accounting.blocks import Blocks, BlocksState
from ett_core.accounting.columns import BLOCK, Columns
from ett_core.accounting.phases import Phase
from ett_core.accounting.rows import Piece, Row, as_wait_ns, claim, pieces_between
from ett_core.accounting.settings import Settings
from ett_core.archive import IN_MEMORY, Archive, Bytes, Parcels
from ett_core.components import DATA_WAIT, STALLED, TRAINING, UNSAVED_TRAINING
from ett_core.events import Progress


class First(NamedTuple):
    """What the first report says that its row needs."""

    step: int
    steps: int
    data_wait_s: float


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
    """A `Loop` as a value."""

    first_ns: int
    first: First
    first_stall_ns: int
    prev_ns: int
    step: int
    step_count: int
    step_sum_s: float
    training_ns: int
    wait_ns: int
    stall_ns: int
    phase_ns: dict[str, int]
    blocks: BlocksState
    rows: bytes


class Loop:
    """What one leader reported.

    The first report is kept apart: its interval begins with the loop, and when that was can
    still be learnt from other ranks after it came.
    """

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
        self._rows.append(at_ns, left, wait, stall, step, steps)
        self.prev_ns = at_ns
        self.step = step

    def claimed(self, phases: Sequence[Phase]) -> Loop:
        """The same loop with phases, innermost first, that own what was left inside them.

        They began after the first report or in its interval and have just ended, with reports
        in between. The loop itself stays as it is, for marks that lead back to it.
        """
        first = self._place(min(phase.begin_ns for phase in phases), after=True)
        twin = self._upto(first)
        for end, row in self._from(first):
            pieces = row.pieces
            for phase in phases:
                pieces = claim(pieces, phase)
            left = row.left_ns - twin._keep(pieces) + self._owned_ns(row)
            wait = min(row.wait_ns, left)
            twin._append(end, left, wait, min(row.stall_ns, left - wait), row.step, row.steps)
        return twin

    @staticmethod
    def _owned_ns(row: Row) -> int:
        return sum(piece.end_ns - piece.begin_ns for piece in row.pieces if piece.component is not None)

    def _upto(self, rows: int) -> Loop:
        """A copy that holds only the first rows."""
        twin = copy(self)
        taken = self.totals(range(rows, self._count), None) if rows < self._count else {}
        twin.wait_ns -= taken.pop(DATA_WAIT, 0)
        twin.stall_ns -= taken.pop(STALLED, 0)
        twin.training_ns -= taken.pop(TRAINING, 0)
        twin.phase_ns = {c: amount - taken.get(c, 0) for c, amount in self.phase_ns.items()}
        block = self._blocks.block_of(rows)
        twin._blocks = self._blocks.first(block)
        if rows < self._blocks.rows:
            source, open_rows = self._blocks.columns(block), rows - self._blocks.first_row(block)
            twin._phases_before = self._phases_before - self._blocks.phases_from(block)
        else:
            source, open_rows = self._rows, rows - self._blocks.rows
        twin._rows = source.part(0, open_rows, twin._blocks.end_ns)
        twin.prev_ns = twin._rows.ends[-1] if open_rows else twin._blocks.end_ns
        return twin

    @property
    def _count(self) -> int:
        """Reports after the first."""
        return self._blocks.rows + len(self._rows)

    def close(self, rows: int) -> None:
        """Close those of the first rows that fill whole blocks; nothing will cut them again."""
        while self._blocks.rows + BLOCK <= rows:
            self._blocks.append(self._rows.part(0, BLOCK, self._blocks.end_ns))
            self._rows = self._rows.part(BLOCK, len(self._rows), self._blocks.end_ns)
            self._phases_before = self._blocks.phases_from(0)

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
            taken = self.phase_ns.get(piece.component, 0)
            self.phase_ns = {**self.phase_ns, piece.component: taken + length}
            self._rows.keep(piece)
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

    def mark(self) -> LoopMark:
        """What `restore` needs to come back to this point."""
        return LoopMark(
            self._count,
            self._phases_before + len(self._rows.phases),
            self.prev_ns,
            self.step,
            self.step_count,
            self.step_sum_s,
            self.training_ns,
            self.wait_ns,
            self.stall_ns,
            self.phase_ns,
        )

    def restore(self, mark: LoopMark) -> None:
        """Forget every report after `mark`."""
        self._rows.cut(mark.rows - self._blocks.rows, mark.phases - self._phases_before)
        self.prev_ns, self.step = mark.prev_ns, mark.step
        self.step_count, self.step_sum_s = mark.step_count, mark.step_sum_s
        self.training_ns, self.wait_ns, self.stall_ns = mark.training_ns, mark.wait_ns, mark.stall_ns
        self.phase_ns = mark.phase_ns

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
            self._blocks.state(),
            self._rows.packed(self._blocks.end_ns),
        )

    def packed(self) -> bytes:
        """The closed blocks, which are no part of the state."""
        return self._blocks.packed()

    def put_together(self) -> Bytes | None:
        """The same in a parcel, in which they lie from now on; None without any."""
        return self._blocks.put_together()

    @classmethod
    def of_state(
        cls, settings: Settings, state: LoopState, packed: Bytes | None, archive: Archive = IN_MEMORY
    ) -> Loop:
        """The loop that gave `state`, and `packed`."""
        loop = cls(settings, state.first_ns, state.first, archive)
        loop.first_stall_ns, loop.prev_ns, loop.step = state.first_stall_ns, state.prev_ns, state.step
        loop.step_count, loop.step_sum_s = state.step_count, state.step_sum_s
        loop.training_ns, loop.wait_ns, loop.stall_ns = state.training_ns, state.wait_ns, state.stall_ns
        loop.phase_ns = dict(state.phase_ns)
        loop._blocks = Blocks.of_state(archive, state.blocks, packed)
        loop._phases_before = loop._blocks.phases_from(0)
        loop._rows = Columns.unpacked(state.rows, loop._blocks.end_ns)
        return loop
