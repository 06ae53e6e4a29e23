"""Named pieces of work on the tracks of one rank, and who owns an instant among them.

Phases nest within a track, so the intervals of one track never cross: two of them are disjoint
or one holds the other. Times are whole nanoseconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

MAIN = "main"
MAX_DEPTH = 256
"""Phases opened deeper than this are not seen: nobody nests so deep, a missing end repeated does."""
MAX_TRACKS = 64
"""Tracks of one rank beyond these are not seen."""


NO_STACKS: Mapping[str, tuple[Phase, ...]] = MappingProxyType({})


class Phase(NamedTuple):
    """One piece of work; `end_ns` is None while it is open, `order` counts openings."""

    begin_ns: int
    order: int
    end_ns: int | None
    phase: str
    track: str


class Segment(NamedTuple):
    """A part of a track with the innermost and the outermost phase that hold it."""

    begin_ns: int
    end_ns: int
    inner: Phase
    outer: Phase


class PhaseLog:
    """The phases of one rank in the order in which they closed, and those still open.

    Closed phases are only ever appended, so a mark is a length and going back is a cut.
    """

    __slots__ = ("base", "closed", "opened", "stacks")

    def __init__(self, before: PhaseLog | None = None, track: str = MAIN) -> None:
        """Start empty, or with what `before` has open on a track."""
        self.closed: list[Phase] = []
        self.stacks: Mapping[str, tuple[Phase, ...]] = NO_STACKS
        """Never changed, only replaced: marks share them."""
        self.opened = 0
        if before is not None:
            self.stacks = _kept_stacks(track, before.stacks.get(track, ()))
            self.opened = before.opened
        self.base = self.opened
        """Phases with an `order` below this were opened before the log began."""

    def begin(self, at_ns: int, phase: str, track: str) -> None:
        """Open a phase inside whatever is open on its track."""
        stack = self.stacks.get(track, ())
        if len(stack) >= MAX_DEPTH or (track not in self.stacks and len(self.stacks) >= MAX_TRACKS):
            return
        entry = Phase(at_ns, self.opened, None, sys.intern(phase), sys.intern(track))
        self.stacks = {**self.stacks, entry.track: (*stack, entry)}
        self.opened += 1

    def end(self, at_ns: int, phase: str, track: str) -> list[Phase]:
        """Close the innermost open phase of that name and all that is open inside it.

        Those opened before the log began are given back, innermost first; the others are kept.
        An end without a beginning is ignored.
        """
        stack = self.stacks.get(track, ())
        names = [entry.phase for entry in stack]
        if phase not in names:
            return []
        depth = len(names) - 1 - names[::-1].index(phase)
        closed = [entry._replace(end_ns=at_ns) for entry in reversed(stack[depth:])]
        self.stacks = {**self.stacks, track: stack[:depth]}
        self.closed.extend(entry for entry in closed if entry.order >= self.base)
        return [entry for entry in closed if entry.order < self.base]

    def open(self, track: str | None = None) -> Iterator[Phase]:
        """Phases opened since the log began and still open, outermost first on each track."""
        for name, stack in self.stacks.items():
            if track is None or name == track:
                yield from (entry for entry in stack if entry.order >= self.base)

    def is_empty(self) -> bool:
        """Whether no phase was opened or closed since the log began."""
        return self.opened == self.base and not self.closed

    def first_begin_ns(self) -> int | None:
        """When the first phase of any kind began."""
        return min((p.begin_ns for p in (*self.closed, *self.open())), default=None)

    def mark(self) -> PhaseLogMark:
        """What `restore` needs to come back to this point."""
        return PhaseLogMark(len(self.closed), self.stacks, self.opened)

    def restore(self, mark: PhaseLogMark) -> None:
        """Forget everything after `mark`."""
        del self.closed[mark.closed :]
        self.stacks = mark.stacks
        self.opened = mark.opened

    def state(self) -> PhaseLogState:
        """The log as a value."""
        return PhaseLogState(list(self.closed), dict(self.stacks), self.opened, self.base)

    @classmethod
    def of_state(cls, state: PhaseLogState) -> PhaseLog:
        """The log that gave `state`."""
        log = cls()
        log.closed = [p._replace(phase=sys.intern(p.phase), track=sys.intern(p.track)) for p in state.closed]
        log.stacks = {sys.intern(track): stack for track, stack in state.stacks.items()}
        log.opened, log.base = state.opened, state.base
        return log


class PhaseLogState(NamedTuple):
    """A `PhaseLog` as a value."""

    closed: list[Phase]
    stacks: dict[str, tuple[Phase, ...]]
    opened: int
    base: int


class PhaseLogMark(NamedTuple):
    """A point in a `PhaseLog` to come back to."""

    closed: int
    stacks: Mapping[str, tuple[Phase, ...]]
    opened: int


def _kept_stacks(track: str, stack: tuple[Phase, ...]) -> Mapping[str, tuple[Phase, ...]]:
    """The stacks of one track; where nothing is open on the main track they are one object for all."""
    return ALL_CLOSED if track == MAIN and not stack else {track: stack}


ALL_CLOSED: Mapping[str, tuple[Phase, ...]] = MappingProxyType({MAIN: ()})


def close_at(phases: Iterable[Phase], end_ns: int) -> list[Phase]:
    """The phases with open ones closed at `end_ns`."""
    return [p if p.end_ns is not None else p._replace(end_ns=end_ns) for p in phases]


def track_segments(phases: Iterable[Phase]) -> list[Segment]:
    """Cut one track into segments, each with its innermost and outermost phase, in time order.

    All phases are closed and of one track.

    >>> model = Phase(0, 0, 8, "model_init", "main")
    >>> load = Phase(2, 1, 5, "checkpoint_load", "main")
    >>> [(s.begin_ns, s.end_ns, s.inner.phase) for s in track_segments([load, model])]
    [(0, 2, 'model_init'), (2, 5, 'checkpoint_load'), (5, 8, 'model_init')]
    """
    segments: list[Segment] = []
    stack: list[Phase] = []
    at = 0

    def advance(until: int) -> None:
        nonlocal at
        if stack and until > at:
            segments.append(Segment(at, until, stack[-1], stack[0]))
        at = max(at, until)

    for phase in sorted(phases):
        while stack and _end(stack[-1]) <= phase.begin_ns:
            advance(_end(stack[-1]))
            stack.pop()
        advance(phase.begin_ns)
        at = phase.begin_ns
        stack.append(phase)
    while stack:
        advance(_end(stack[-1]))
        stack.pop()
    return segments


def owners(phases: Sequence[Phase]) -> tuple[list[Segment], dict[str, int]]:
    """Who owns each instant among the closed phases of several tracks, and what was hidden.

    An instant belongs to the track whose outermost phase ends last (ties: began first, then
    the name of the track). Hidden are the nanoseconds, by phase, of the other tracks.
    """
    tracks: dict[str, list[Phase]] = {}
    for phase in phases:
        tracks.setdefault(phase.track, []).append(phase)
    by_track = {name: track_segments(members) for name, members in tracks.items()}
    if len(by_track) == 1:
        return next(iter(by_track.values())), {}
    return _merge_tracks(by_track)


def _merge_tracks(by_track: dict[str, list[Segment]]) -> tuple[list[Segment], dict[str, int]]:
    cuts = sorted({edge for part in by_track.values() for s in part for edge in (s.begin_ns, s.end_ns)})
    ahead = {name: iter(part) for name, part in by_track.items()}
    current = {name: next(part, None) for name, part in ahead.items()}
    owned: list[Segment] = []
    hidden: dict[str, int] = {}
    for begin, end in pairwise(cuts):
        for name, segment in current.items():
            if segment is not None and segment.end_ns <= begin:
                current[name] = next(ahead[name], None)
        here = [s for s in current.values() if s is not None and s.begin_ns <= begin]
        if not here:
            continue
        winner = min(here, key=_precedence)
        owned.append(Segment(begin, end, winner.inner, winner.outer))
        for segment in here:
            if segment is not winner:
                hidden[segment.inner.phase] = hidden.get(segment.inner.phase, 0) + end - begin
    return owned, hidden


def _precedence(segment: Segment) -> tuple[int, int, str]:
    return (-_end(segment.outer), segment.outer.begin_ns, segment.outer.track)


def _end(phase: Phase) -> int:
    assert phase.end_ns is not None  # noqa: S101 - callers close phases first
    return phase.end_ns
