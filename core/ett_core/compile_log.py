"""What a job compiled, and why again: of each of its latest attempts the compilations of its lowest rank.

Part of the details fold (`ett_core.details`): held by one thread, in any order of arrival. Ranks compile
much the same, so that one of them tells what there is to tell; how many compilations there were is
counted over all.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

import msgspec

from ett_core.archive import IN_MEMORY, Archive
from ett_core.events import Compile, CompileInput
from ett_core.plain_text import plain
from ett_core.seldom import Seldom

ATTEMPTS_KEPT = 4
COMPILATIONS_KEPT = 64
"""The first compilations kept of one attempt."""
REASON_CHARACTERS = 2000
INPUTS_KEPT = 128
"""Of a compilation for more inputs none is kept, as is the way of recorders."""
NATIVE = "native"


class CompileLine(msgspec.Struct, frozen=True, gc=False):
    """One compilation: `seconds` of the compiler's stages, `native_s` of the native compiler beside them.

    The other fields are those of the event `compile`.
    """

    attempt: int
    rank: int
    time: float
    writer: str
    seq: int
    graph: str
    code: str
    seconds: float
    native_s: float
    recompile_reason: str | None = None
    inputs: tuple[CompileInput, ...] | None = None
    symbols: tuple[str, ...] = ()


class Compilations(msgspec.Struct, frozen=True):
    """What is known of a job's compilations.

    `count` are all of them, over all ranks and attempts, `again` those for which torch gave a reason why
    the graphs there were did not fit. `lines` are of the lowest rank of the latest attempts, in order.
    """

    count: int
    again: int
    lines: list[CompileLine]


class CompileLogState(NamedTuple):
    """A `CompileLog` as a value."""

    compiled: int
    again: int
    kept: list[CompileLine]


class CompileLog:
    """The fold: `add` events, `settle`, then read."""

    __slots__ = ("_again", "_count", "_kept", "_new")

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing; `archive` keeps what is rarely needed again."""
        self._count = self._again = 0
        self._kept = Seldom(CompileLine, archive)
        self._new: list[CompileLine] = []

    def add(self, event: Compile) -> None:
        """Take in one compilation."""
        self._count += 1
        self._again += event.recompile_reason is not None
        if event.rank >= 0:
            self._new.append(line_of(event))

    def settle(self) -> None:
        """Some compilations that came together were taken in: pack them."""
        if self._new:
            self._kept.put(_wanted([*self._kept.records(), *self._new]))
            self._new = []

    def read(self) -> Compilations | None:
        """What is known; None where nothing was compiled."""
        return Compilations(self._count, self._again, self._kept.records()) if self._count else None

    def state(self) -> CompileLogState:
        """The log as a value."""
        return CompileLogState(self._count, self._again, self._kept.records())

    @classmethod
    def of_state(cls, state: CompileLogState, archive: Archive = IN_MEMORY) -> CompileLog:
        """The log that gave `state`."""
        log = cls(archive)
        log._count, log._again = state.compiled, state.again
        log._kept.put(state.kept)
        return log


def line_of(event: Compile) -> CompileLine:
    """What one event tells, within bounds."""
    stages, reason = event.stage_seconds, event.recompile_reason
    return CompileLine(
        attempt=event.attempt,
        rank=event.rank,
        time=event.time,
        writer=event.writer,
        seq=event.seq,
        graph=plain(event.graph),
        code=plain(event.code),
        seconds=sum(seconds for stage, seconds in stages.items() if stage != NATIVE),
        native_s=event.native_compile_s or stages.get(NATIVE, 0.0),
        recompile_reason=None if reason is None else plain(reason[:REASON_CHARACTERS]),
        inputs=event.inputs if len(event.inputs or ()) <= INPUTS_KEPT else None,
        symbols=event.symbols[:INPUTS_KEPT],
    )


def _wanted(lines: Iterable[CompileLine]) -> list[CompileLine]:
    in_order = sorted(lines, key=lambda line: (line.attempt, line.rank, line.time, line.writer, line.seq))
    attempts = [list(group) for _, group in groupby(in_order, key=lambda line: line.attempt)]
    return [
        line
        for attempt in attempts[-ATTEMPTS_KEPT:]
        for line in [each for each in attempt if each.rank == attempt[0].rank][:COMPILATIONS_KEPT]
    ]
