"""Events that a fold could not take in, whatever the reason: they cost no other event anything.

An event that was decoded is within the bounds of its kind, so this is a fault of the code that folds, unless
it comes late among events that are deleted. What is refused stays in the history: corrected code takes it in
when it folds that anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ett_core.events import AnyEvent

REMEMBERED = 1000
"""Refused events of one fold that are known again when they are met again."""
REASON_CHARACTERS = 300


class Refused(NamedTuple):
    """One event that counts nowhere, and why."""

    writer: str
    seq: int
    reason: str
    is_fault: bool = True
    """Whether code is to be corrected."""


class GoneError(Exception):
    """An event belongs among others that are deleted: what it would change cannot be told any more."""

    def __init__(self) -> None:
        super().__init__(
            "it is of a time of which the events were deleted, and no longer changes what was told"
        )


class HeldBackError(Exception):
    """An event could not be taken in that was held back at first; its cause says why."""

    def __init__(self, at_ns: int, event: AnyEvent) -> None:
        super().__init__(f"event {event.seq} of writer {event.writer}")
        self.at_ns = at_ns
        self.event = event


_NOTHING: frozenset[tuple[str, int]] = frozenset()
"""Of nearly all folds, one object."""


class Refusals:
    """The refused events of one fold, each told once; held by one thread at a time.

    >>> from ett_core.events import Heartbeat
    >>> event = Heartbeat(job_id="j", writer="w", seq=7, attempt=0, rank=0, time=1.0)
    >>> refusals = Refusals()
    >>> refusals.note(event, OverflowError("too large")); refusals.note(event, OverflowError("too large"))
    >>> refusals.take(), refusals.take()
    ([Refused(writer='w', seq=7, reason='OverflowError: too large', is_fault=True)], [])
    """

    __slots__ = ("_untold", "known")

    def __init__(self) -> None:
        self.known = _NOTHING
        """Writers and numbers of them."""
        self._untold: Sequence[Refused] = ()

    def note(self, event: AnyEvent, error: BaseException) -> None:
        """An event made a fold raise."""
        key = (event.writer, event.seq)
        if key not in self.known and len(self.known) < REMEMBERED:
            self.known |= {key}
            is_fault = not isinstance(error, GoneError)
            reason = f"{type(error).__name__}: {error}"[:REASON_CHARACTERS] if is_fault else str(error)
            self._untold = [*self._untold, Refused(*key, reason, is_fault)]

    def take(self) -> list[Refused]:
        """Those that were not given before."""
        untold, self._untold = self._untold, ()
        return list(untold)
