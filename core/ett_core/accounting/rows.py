"""One report of the leader, cut into pieces: what phases own, and what is left between them.

Pure values and functions; times and amounts are whole nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ett_core.accounting.account import NS, Stretch
from ett_core.accounting.phases import MAIN, Phase, close_at, track_segments
from ett_core.components import DATA_WAIT, LOOP_COMPONENT_OF_PHASE, OTHER, STALLED, TRAINING, UNSAVED_TRAINING


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
