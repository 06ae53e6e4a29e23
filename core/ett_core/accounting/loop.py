"""The training loop of one attempt, as its leader reports it (`ett_core.accounting.loop_rows`).

Rows are only ever appended, so a mark is a length and going back is a cut; rows to which no mark
leads back can be closed into blocks. Times and amounts are whole nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

from ett_core.accounting.blocks import Blocks, BlocksState
from ett_core.accounting.columns import BLOCK, Columns
from ett_core.accounting.loop_rows import First, LoopRows
from ett_core.accounting.phases import Phase
from ett_core.accounting.rows import Piece, Row, as_wait_ns, claim, pieces_between
from ett_core.accounting.settings import Settings
from ett_core.archive import IN_MEMORY, Archive, Bytes
from ett_core.components import DATA_WAIT, STALLED, TRAINING
from ett_core.events import Progress


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


class Loop(LoopRows):
    """What one leader reported, report by report."""

    __slots__ = ()

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

    def close(self, rows: int) -> None:
        """Close those of the first rows that fill whole blocks; nothing will cut them again."""
        while self._blocks.rows + BLOCK <= rows:
            self._blocks.append(self._rows.part(0, BLOCK, self._blocks.end_ns))
            self._rows = self._rows.part(BLOCK, len(self._rows), self._blocks.end_ns)
            self._phases_before = self._blocks.phases_from(0)

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
