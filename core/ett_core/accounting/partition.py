"""The partition of one attempt's time into components.

Initialisation belongs to the phases of the critical rank, the loop to the reports of the
leader, the rest to what the end of the attempt makes of it. Times are whole nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ett_core.accounting.account import Stretch
from ett_core.accounting.attempt_state import SUCCEEDED
from ett_core.accounting.layout import Span
from ett_core.accounting.loop import Loop
from ett_core.accounting.phases import MAIN, Phase, close_at, owners
from ett_core.accounting.rows import Piece, Row, pieces_between
from ett_core.components import (
    OTHER,
    SHUTDOWN,
    STALLED,
    TRAINING,
    UNOBSERVED,
    UNSAVED_TRAINING,
    init_component,
)

Totals = dict[str, int]


class Partition(NamedTuple):
    """One attempt with what it needs to be shared out.

    `threshold` is the highest step whose training survives (None: all of it does);
    `begin_step` the step the attempt began at, None where unknown.
    """

    span: Span
    threshold: int | None
    begin_step: int | None

    def totals(self) -> Totals:
        """Nanoseconds by component; together they are the length of the span."""
        span, loop = self.span, self.span.attempt.loop
        if loop is None or span.loop_ns is None or not span.observed or loop.first_ns < span.start_ns:
            return add_up(self.stretches())
        totals = add_up(self._init_stretches(span.loop_ns))
        merge(totals, add_up(self._first_row(loop, span.loop_ns).stretches(0, self.threshold)))
        merge(totals, loop.all_totals(self.threshold))
        merge(totals, add_up(self._tail(loop.prev_ns)))
        return totals

    def lost_ns(self) -> int:
        """Training that the threshold takes away."""
        span, loop = self.span, self.span.attempt.loop
        if loop is None or span.loop_ns is None or not span.observed or loop.first_ns < span.start_ns:
            return self.totals().get(UNSAVED_TRAINING, 0)
        around = [
            *self._first_row(loop, span.loop_ns).stretches(0, self.threshold),
            *self._tail(loop.prev_ns),
        ]
        return loop.lost_ns(self.threshold) + add_up(around).get(UNSAVED_TRAINING, 0)

    def stretches(self, begin_ns: int | None = None, end_ns: int | None = None) -> Iterator[Stretch]:
        """The partition in time order, cut to the span and to [`begin_ns`, `end_ns`]."""
        low = self.span.start_ns if begin_ns is None else max(begin_ns, self.span.start_ns)
        high = self.span.end_ns if end_ns is None else min(end_ns, self.span.end_ns)
        for stretch in self.uncut(low) if high > low else ():
            if stretch.start_ns >= high:
                return
            if stretch.end_ns > low:
                yield stretch.cut(low, high)

    def window(self, begin_ns: int, end_ns: int) -> Totals:
        """Nanoseconds by component between two moments."""
        loop = self.span.attempt.loop
        low, high = max(begin_ns, self.span.start_ns), min(end_ns, self.span.end_ns)
        rows = loop.whole_rows(low, high) if loop is not None else range(0)
        if loop is None or not rows or self.span.loop_ns is None:
            return add_up(self.stretches(low, high))
        first_ns, last_ns = loop.bounds(rows)
        totals = loop.totals(rows, self.threshold)
        merge(totals, add_up(self.stretches(low, first_ns)))
        merge(totals, add_up(self.stretches(last_ns, high)))
        return totals

    def uncut(self, low: int) -> Iterator[Stretch]:
        """Its stretches in time order; those that end by a moment may be left out."""
        span, number = self.span, self.span.attempt.number
        if not span.observed:
            yield from _single(span.start_ns, span.end_ns, number, UNOBSERVED)
            return
        if span.loop_ns is None:
            yield from self._init_stretches(span.end_ns)
            return
        if low < span.loop_ns:
            yield from self._init_stretches(span.loop_ns)
        loop = span.attempt.loop
        if loop is None:
            yield from self._tail(span.loop_ns)
            return
        if low < loop.first_ns:
            yield from self._first_row(loop, span.loop_ns).stretches(number, self.threshold)
        for row in loop.rows(low):
            yield from row.stretches(number, self.threshold)
        yield from self._tail(loop.prev_ns)

    def _first_row(self, loop: Loop, loop_ns: int) -> Row:
        leader = self.span.attempt.leader
        assert leader is not None  # noqa: S101 - whoever reported is the leader
        log = self.span.attempt.ranks.look(leader).starting
        return loop.first_row(loop_ns, _begun_since(loop_ns, (*log.closed, *log.open())))

    def _init_stretches(self, until_ns: int) -> Iterator[Stretch]:
        """From the start of the attempt to the beginning of its loop, or to `until_ns`."""
        start_ns, number = self.span.start_ns, self.span.attempt.number
        phases, first_ns = self._init_phases(until_ns)
        prefix = "recover" if self.span.after_failure else "start"
        yield from _single(start_ns, min(first_ns, until_ns), number, f"{prefix}.process_start")
        at = max(min(first_ns, until_ns), start_ns)
        for segment in owners(phases)[0] if phases else ():
            begin, end = max(segment.begin_ns, at), min(segment.end_ns, until_ns)
            if end <= begin:
                continue
            yield from _single(at, begin, number, init_component(prefix, OTHER))
            yield from _single(begin, end, number, init_component(prefix, segment.inner.phase))
            at = end
        yield from _single(at, until_ns, number, init_component(prefix, OTHER))

    def _init_phases(self, until_ns: int) -> tuple[list[Phase], int]:
        """Phases of the critical rank that own time, and when its first of any kind began."""
        if self.span.critical is None:
            return [], until_ns
        log = self.span.attempt.ranks.look(self.span.critical).starting
        first_ns = log.first_begin_ns()
        if self.span.loop_ns is None:
            phases = close_at((*log.closed, *log.open()), until_ns)
        else:
            phases = [p for p in log.closed if p.end_ns is not None and p.end_ns <= until_ns]
        return phases, until_ns if first_ns is None else first_ns

    def hidden_ns(self) -> Totals:
        """Initialisation that another track hid, by phase: what overlapping gained."""
        until_ns = self.span.end_ns if self.span.loop_ns is None else self.span.loop_ns
        phases = self._init_phases(until_ns)[0] if self.span.observed else []
        return owners(phases)[1] if phases else {}

    def _tail(self, since_ns: int) -> Iterator[Stretch]:
        for begin, end, component in self._tail_pieces(since_ns):
            yield from _single(
                begin, end, self.span.attempt.number, component or self._tail_component(end - begin)
            )

    def _tail_pieces(self, since_ns: int) -> list[Piece]:
        """After the last report: phases of the followed rank, and what is left between them."""
        attempt, follow = self.span.attempt, self.span.attempt.follow_rank()
        if follow is None:
            return pieces_between(since_ns, self.span.end_ns, ())
        phases = attempt.ranks.look(follow).loop_phases()
        if attempt.loop is None:
            phases = _begun_since(since_ns, phases)
        return pieces_between(since_ns, self.span.end_ns, phases)

    def _tail_component(self, length_ns: int) -> str:
        if self.span.outcome == SUCCEEDED:
            return SHUTDOWN
        if length_ns > self.stall_limit_ns():
            return STALLED
        lost = self.threshold is not None and self.threshold <= self._last_step()
        return UNSAVED_TRAINING if lost and self.span.failed else TRAINING

    def _last_step(self) -> int:
        """The step of the last report, else the one that the attempt began at."""
        loop = self.span.attempt.loop
        return self.begin_step or 0 if loop is None else loop.step

    def stall_limit_ns(self) -> int:
        """How long a silence in the loop may be before it is a stall."""
        loop = self.span.attempt.loop
        return self.span.attempt.stall_floor_ns if loop is None else loop.stall_limit_ns

    def silence_ns(self) -> int:
        """Length of the last stretch outside phases after the last report, 0 if there is none."""
        if self.span.loop_ns is None:
            return 0
        loop = self.span.attempt.loop
        pieces = self._tail_pieces(self.span.loop_ns if loop is None else loop.prev_ns)
        last = pieces[-1] if pieces else None
        return last.end_ns - last.begin_ns if last is not None and last.component is None else 0


def _begun_since(since_ns: int, phases: Sequence[Phase]) -> list[Phase]:
    return [p for p in phases if p.begin_ns >= since_ns and p.track == MAIN]


def _single(begin_ns: int, end_ns: int, attempt: int, component: str) -> Iterator[Stretch]:
    if end_ns > begin_ns:
        yield Stretch(begin_ns, end_ns, attempt, ((component, end_ns - begin_ns),))


def add_up(stretches: Iterable[Stretch]) -> Totals:
    """Nanoseconds by component over stretches."""
    totals: Totals = {}
    add_to(totals, stretches)
    return totals


def add_to(totals: Totals, stretches: Iterable[Stretch]) -> None:
    """Add stretches into `totals`."""
    for stretch in stretches:
        for component, amount in stretch.shares:
            totals[component] = totals.get(component, 0) + amount


def merge(totals: Totals, more: Totals) -> None:
    """Add `more` into `totals`."""
    for component, amount in more.items():
        if amount:
            totals[component] = totals.get(component, 0) + amount
