"""Identity and clocks of events, by rules 1 and 2 of the accounting: for every fold of events.

Of different events under one key one counts; times of a writer whose clock is off are corrected
by the latest `clock` event of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from ett_core.events import AnyEvent, Clock, Event, Evidence, Failure, encode

CLOCK_TOLERANCE_S = 2.0
"""Smaller offsets are left as they are."""
FIRST_MOMENT_S, LAST_MOMENT_S = 1.0, 4e9 - 1.0
"""Nothing happens before or after these (Unix seconds), whatever is said of a clock."""

Told = TypeVar("Told", bound=Event)


class Clocks:
    """The offsets of writers, by the latest word on each."""

    __slots__ = ("_latest", "_offsets")

    def __init__(self) -> None:
        self._latest: dict[str, Clock] = {}
        self._offsets: dict[str, float] = {}

    @property
    def differ(self) -> bool:
        """Whether any clock is off."""
        return bool(self._offsets)

    @property
    def latest(self) -> list[Clock]:
        """The latest word on each writer."""
        return list(self._latest.values())

    def offset_s(self, writer: str) -> float:
        """How far the clock of a writer is ahead, in seconds; 0 within the tolerance."""
        return self._offsets.get(writer, 0.0)

    def add(self, clock: Clock) -> bool:
        """Take in a word on a writer's clock; whether an offset changes."""
        known = self._latest.get(clock.of_writer)
        if known is not None and order_of(known) >= order_of(clock):
            return False
        self._latest[clock.of_writer] = clock
        before = self._offsets.pop(clock.of_writer, 0.0)
        if abs(clock.offset_s) > CLOCK_TOLERANCE_S:
            self._offsets[clock.of_writer] = clock.offset_s
        return self.offset_s(clock.of_writer) != before


def corrected(event: Told, offset_s: float) -> Told:
    """An event with its moments on the receiver's clock."""
    if not offset_s:
        return event
    moved = {"time": moved_by(event.time, offset_s)}
    if isinstance(event, Evidence) and event.observed_at is not None:
        moved["observed_at"] = moved_by(event.observed_at, offset_s)
    elif isinstance(event, Failure) and event.first_error_at is not None:
        moved["first_error_at"] = moved_by(event.first_error_at, offset_s)
    return replace(event, **moved)


def moved_by(moment: float, offset_s: float) -> float:
    """A moment of a clock that is ahead by an offset, on the receiver's clock.

    >>> moved_by(1000.0, 60.0), moved_by(1000.0, 3e9), moved_by(3e9, -3e9)
    (940.0, 1.0, 3999999999.0)
    """
    return min(max(moment - offset_s, FIRST_MOMENT_S), LAST_MOMENT_S)


def canonical(events: Iterable[AnyEvent]) -> list[AnyEvent]:
    """One event a key: of different ones the earliest, then the one with the smallest text."""
    chosen: dict[tuple[str, int], AnyEvent] = {}
    for event in events:
        key = (event.writer, event.seq)
        other = chosen.get(key)
        if other is None or (other != event and _preference(event) < _preference(other)):
            chosen[key] = event
    return list(chosen.values())


def _preference(event: AnyEvent) -> tuple[float, bytes]:
    return (event.time, encode(event))


def order_of(event: AnyEvent) -> tuple[float, int, int, str, int]:
    """The place of an event among those of a job."""
    return (event.time, event.attempt, event.rank, event.writer, event.seq)
