"""What a job's pipeline decided, and why, joined over the ranks that tell the same.

Part of the details fold (`ett_core.details`): held by one thread, in any order of arrival. The latest
decisions are kept; a report of one that was let go of is not taken in.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from ett_core.archive import IN_MEMORY, Archive
from ett_core.events import Decision
from ett_core.plain_text import plain
from ett_core.seldom import Seldom

DECISIONS_KEPT = 200
WHAT_CHARACTERS, WHY_CHARACTERS = 200, 2000
VALUES_KEPT = 16


class DecisionLine(msgspec.Struct, frozen=True, gc=False):
    """One decision of one attempt: when, who, what, why, with its figures.

    Where several ranks tell the same in the same words, `ranks` is how many reports there were; the
    rest is of the first of them. `rank` is -1 for a launcher.
    """

    attempt: int
    time: float
    rank: int
    node: str
    what: str
    why: str
    values: dict[str, float] = {}
    ranks: int = 1


class DecisionLogState(NamedTuple):
    """A `DecisionLog` as a value."""

    kept: list[DecisionLine]
    forgotten_through: tuple[int, float]


_Key: TypeAlias = tuple[int, str, str]


class DecisionLog:
    """The fold: `add` events, `settle`, then read."""

    __slots__ = ("_forgotten_through", "_kept", "_new")

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing; `archive` keeps what is rarely needed again."""
        self._kept = Seldom(DecisionLine, archive)
        self._forgotten_through: tuple[int, float] = (-1, 0.0)
        self._new: list[DecisionLine] = []

    def add(self, event: Decision) -> None:
        """Take in one report."""
        self._new.append(line_of(event))

    def settle(self) -> None:
        """Some reports that came together were taken in: pack them."""
        if not self._new:
            return
        fresh = [line for line in self._new if (line.attempt, line.time) > self._forgotten_through]
        self._new = []
        lines = _joined([*self._kept.records(), *fresh])
        gone = lines[:-DECISIONS_KEPT]
        if gone:
            self._forgotten_through = (gone[-1].attempt, gone[-1].time)
        self._kept.put(lines[len(gone) :])

    @property
    def latest(self) -> list[DecisionLine]:
        """The latest decisions, at most `DECISIONS_KEPT`, in order of attempt and time."""
        return self._kept.records()

    def state(self) -> DecisionLogState:
        """The log as a value."""
        return DecisionLogState(self._kept.records(), self._forgotten_through)

    @classmethod
    def of_state(cls, state: DecisionLogState, archive: Archive = IN_MEMORY) -> DecisionLog:
        """The log that gave `state`."""
        log = cls(archive)
        log._kept.put(state.kept)
        log._forgotten_through = state.forgotten_through
        return log


def line_of(event: Decision) -> DecisionLine:
    """What one report tells, within bounds."""
    return DecisionLine(
        attempt=event.attempt,
        time=event.time,
        rank=event.rank,
        node=event.node,
        what=plain(event.what[:WHAT_CHARACTERS]),
        why=plain(event.why[:WHY_CHARACTERS]),
        values=dict(islice(event.values.items(), VALUES_KEPT)),
    )


def _joined(lines: Iterable[DecisionLine]) -> list[DecisionLine]:
    """Those that say the same in one, in order."""
    joined: dict[_Key, DecisionLine] = {}
    for line in lines:
        key = (line.attempt, line.what, line.why)
        known = joined.get(key)
        joined[key] = line if known is None else _both(known, line)
    return sorted(joined.values(), key=lambda line: (line.attempt, line.time, line.rank, line.what, line.why))


def _both(one: DecisionLine, other: DecisionLine) -> DecisionLine:
    first = min(one, other, key=_place)
    return replace(first, ranks=one.ranks + other.ranks)


def _place(line: DecisionLine) -> tuple[float, int, str, list[tuple[str, float]]]:
    return line.time, line.rank, line.node, sorted(line.values.items())
