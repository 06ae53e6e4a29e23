"""A journal that keeps events in memory until it is known that this process is a rank.

Any thread may put; what is held is bounded, the newest beyond it are left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ett_core.events import Event
from ett_trainer_hooks.journal import Journal, NullJournal

LIMIT = 1000


class HeldJournal(NullJournal):
    """Takes events before there is a place for them."""

    def __init__(self) -> None:
        self.dropped = 0
        self._held: list[tuple[Callable[..., Event], float, dict[str, Any]]] = []

    def put(self, kind: Callable[..., Event], at: float, *, urgent: bool = False, **fields: Any) -> None:  # noqa: ANN401, ARG002
        """Keep an event."""
        if len(self._held) < LIMIT:
            self._held.append((kind, at, fields))
        else:
            self.dropped += 1

    def pour(self, journal: Journal) -> None:
        """Put everything held into a journal that writes, with the times it was put at, and what is lost."""
        held, self._held = self._held, []
        journal.dropped += self.dropped
        for kind, at, fields in held:
            journal.put(kind, at, **fields)

    def forget(self) -> None:
        """What is held, and lost, is of another process."""
        self._held.clear()
        self.dropped = 0
