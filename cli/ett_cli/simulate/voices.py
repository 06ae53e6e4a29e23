"""Writing processes of a simulated job: they number their events and stamp them by their clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ett_core.events import Event

NS = 1_000_000_000
Told: TypeAlias = tuple[int, Event]
"""An event with the moment at which it is told, in milliseconds from the beginning of the window."""


class Origin(NamedTuple):
    """Where the window begins: Unix milliseconds."""

    unix_ms: int

    def unix_s(self, at_ms: int, offset_ms: int = 0) -> float:
        """Unix seconds that a clock shows that is `offset_ms` ahead."""
        return (self.unix_ms + at_ms + offset_ms) / 1000

    def ns(self, at_ms: int, offset_ms: int = 0) -> int:
        """The moment as a reader finds it that knows the clock's offset, in nanoseconds.

        A number of seconds holds Unix time to a quarter of a microsecond only. The truth is told of
        the moments as they are written, so that it can be exact.
        """
        return round(self.unix_s(at_ms, offset_ms) * NS) - round(offset_ms / 1000 * NS)


class Voice:
    """One writer. `attempt` moves on where a process lives through several."""

    __slots__ = ("attempt", "job_id", "node", "offset_ms", "origin", "rank", "seq", "writer")

    def __init__(  # noqa: PLR0913 - the envelope of an event
        self, job_id: str, writer: str, rank: int, node: str, *, origin: Origin, offset_ms: int = 0
    ) -> None:
        self.job_id = job_id
        self.writer = writer
        self.rank = rank
        self.node = node
        self.origin = origin
        self.offset_ms = offset_ms
        self.attempt = 0
        self.seq = 0

    def say(self, kind: Callable[..., Event], at_ms: int, **fields: Any) -> Told:  # noqa: ANN401 - of the kind
        """The next event, told at `at_ms`."""
        seq = self.seq
        self.seq = seq + 1
        return at_ms, kind(
            job_id=self.job_id,
            writer=self.writer,
            seq=seq,
            attempt=self.attempt,
            rank=self.rank,
            node=self.node,
            time=(self.origin.unix_ms + at_ms + self.offset_ms) / 1000,
            **fields,
        )

    def unix_s(self, at_ms: int) -> float:
        """Unix seconds by this writer's clock."""
        return self.origin.unix_s(at_ms, self.offset_ms)

    def ns(self, at_ms: int) -> int:
        """The moment as a reader finds it in this writer's events, in nanoseconds."""
        return self.origin.ns(at_ms, self.offset_ms)
