"""The training loop of one attempt, as its leader reports it, in compact columns.

One row a report: the time up to it since the report before, less the phases in between, is
shared out into data wait, stall and training. Rows are only ever appended, so a mark is a
length and going back is a cut. Times and amounts are whole nanoseconds.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from typing import NamedTuple

from ett_core.accounting.account import NS, Stretch
from ett_core.accounting.phases import MAIN, Phase, close_at, track_segments
from ett_core.accounting.settings import Settings
from ett_core.components import DATA_WAIT, LOOP_COMPONENT_OF_PHASE, OTHER, STALLED, TRAINING, UNSAVED_TRAINING
from ett_core.events import Progress

BLOCK = 1024
_COLUMNS = ("_ends", "_lefts", "_waits", "_stalls", "_last", "_steps")


class Piece(NamedTuple):
    """A part of a report's interval: of a component, or what is left (`component` None)."""

    begin_ns: int
    end_ns: int
    component: str | None


class Row(NamedTuple):
    """One report with the pieces of its interval."""

    pieces: Sequence[Piece]
    left_ns: int
    wait_ns: int
    stall_ns: int
    step: int
    steps: int

    def training_until(self, left_ns: int) -> int:
        """Training in the first `left_ns` of what is left between the phases."""
        if not self.left_ns:
            return 0
        return left_ns - (self.wait_ns + self.stall_ns) * left_ns // self.left_ns

    def kept_until(self, fallback_step: int | None) -> int:
        """How far into what is left the training survives a fall back to a step.

        Kept steps come first. A report without new steps survives if it is not behind.
        """
        if fallback_step is None or self.step <= fallback_step:
            return self.left_ns
        if not self.steps:
            return 0
        kept_steps = fallback_step - (self.step - self.steps)
        return self.left_ns * kept_steps // self.steps if kept_steps > 0 else 0

    def lost_ns(self, fallback_step: int | None) -> int:
        """Training that a fall back to a step takes away."""
        return self.training_until(self.left_ns) - self.training_until(self.kept_until(fallback_step))

    def stretches(self, attempt: int, fallback_step: int | None) -> Iterator[Stretch]:
        """The interval as stretches of the partition, in time order."""
        kept = self.kept_until(fallback_step)
        before = 0
        for begin, end, component in self.pieces:
            if component is not None:
                yield Stretch(begin, end, attempt, ((component, end - begin),))
                continue
            after = before + end - begin
            cut = min(max(kept, before), after)
            if cut > before:
                yield self._spread(begin, before, cut, attempt, TRAINING)
            if after > cut:
                yield self._spread(begin + cut - before, cut, after, attempt, UNSAVED_TRAINING)
            before = after

    def _spread(self, begin: int, left_from: int, left_to: int, attempt: int, training: str) -> Stretch:
        idle_ns = self.wait_ns + self.stall_ns
        wait = self.wait_ns * left_to // self.left_ns - self.wait_ns * left_from // self.left_ns
        idle = idle_ns * left_to // self.left_ns - idle_ns * left_from // self.left_ns
        length = left_to - left_from
        shares = ((DATA_WAIT, wait), (STALLED, idle - wait), (training, length - idle))
        return Stretch(begin, begin + length, attempt, tuple(s for s in shares if s[1]))


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


def _first_lost_from(step: int, steps: int) -> int:
    """The highest fallback that takes the whole report away."""
    return step - steps if steps else step - 1


def claim(pieces: Sequence[Piece], phase: Phase) -> list[Piece]:
    """Give a phase what is left inside it.

    >>> claim([Piece(0, 10, None)], Phase(4, 0, 7, "evaluation", "main"))[1]
    Piece(begin_ns=4, end_ns=7, component='evaluation')
    """
    claimed: list[Piece] = []
    for piece in pieces:
        begin, end = max(piece.begin_ns, phase.begin_ns), min(piece.end_ns, phase.end_ns or 0)
        if piece.component is not None or begin >= end:
            claimed.append(piece)
            continue
        cut = (
            Piece(piece.begin_ns, begin, None),
            Piece(begin, end, loop_component(phase.phase)),
            Piece(end, piece.end_ns, None),
        )
        claimed.extend(part for part in cut if part.begin_ns < part.end_ns)
    return claimed


def as_wait_ns(data_wait_s: float, left_ns: int) -> int:
    """A reported data wait within 0 and what is left."""
    if data_wait_s <= 0.0:
        return 0
    return min(int(data_wait_s * NS + 0.5), left_ns) if data_wait_s * NS < left_ns else left_ns


def pieces_between(begin_ns: int, end_ns: int, phases: Sequence[Phase]) -> list[Piece]:
    """Cut an interval of the loop into phases and what is left, in time order.

    Of nested phases the innermost names the component; one that is still open ends with the
    interval.
    """
    closed = [p for p in close_at(phases, end_ns) if p.track == MAIN]
    owned = [Piece(s.begin_ns, s.end_ns, loop_component(s.inner.phase)) for s in track_segments(closed)]
    return fill_between(begin_ns, end_ns, owned)


def fill_between(begin_ns: int, end_ns: int, owned: Sequence[Piece]) -> list[Piece]:
    """Owned pieces cut to an interval, with what is left between them."""
    cut = [Piece(max(p.begin_ns, begin_ns), min(p.end_ns, end_ns), p.component) for p in owned]
    return fill(begin_ns, end_ns, [p for p in cut if p.begin_ns < p.end_ns])


def loop_component(phase: str) -> str:
    """The component of a phase in the loop.

    >>> loop_component("checkpoint"), loop_component("my_hook")
    ('checkpoint_blocking', 'other')
    """
    return LOOP_COMPONENT_OF_PHASE.get(phase, OTHER)


def fill(begin_ns: int, end_ns: int, owned: Sequence[Piece]) -> list[Piece]:
    """Put what is left between owned pieces, which are disjoint and in order."""
    pieces: list[Piece] = []
    at = begin_ns
    for piece in owned:
        if piece.begin_ns > at:
            pieces.append(Piece(at, piece.begin_ns, None))
        pieces.append(piece)
        at = piece.end_ns
    if end_ns > at:
        pieces.append(Piece(at, end_ns, None))
    return pieces
