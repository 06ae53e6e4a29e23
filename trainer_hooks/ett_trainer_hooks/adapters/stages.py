"""Phases that a framework begins in one hook and ends in another.

Used by the training thread; a phase stays open between hooks, and whatever hook comes next closes
what was left open by work that raised.
"""

from __future__ import annotations

from ett_trainer_hooks.recording.recorder import Recorder
from ett_trainer_hooks.recording.spans import PhaseSpan, SaveSpan


class Stages:
    """The open phases of the main track, outermost first."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: list[PhaseSpan] = []

    @property
    def is_open(self) -> bool:
        """Any phase is."""
        return bool(self._open)

    def has(self, name: str) -> bool:
        """A phase of this name is open."""
        return any(span.name == name for span in self._open)

    def enter(self, name: str) -> None:
        """Begin a phase inside those that are open."""
        self.follow(self._recorder.phase(name))

    def follow(self, span: PhaseSpan) -> None:
        """Begin this phase inside those that are open."""
        span.__enter__()
        self._open.append(span)

    def leave(self, name: str) -> PhaseSpan | None:
        """End the innermost phase of this name, with what is open inside; None where there is none."""
        if not self.has(name):
            return None
        while (span := self._open.pop()).name != name:
            PhaseSpan.__exit__(span, None, None, None)
        span.__exit__(None, None, None)
        return span

    def leave_save(self, size: int | None) -> SaveSpan | None:
        """End the save that is open, of `size` bytes; None where there is none."""
        for span in reversed(self._open):
            if isinstance(span, SaveSpan):
                span.bytes = size
                self.leave(span.name)
                return span
        return None

    def leave_all(self) -> None:
        """End what is open; a save among it is not told as one."""
        while self._open:
            PhaseSpan.__exit__(self._open.pop(), None, None, None)

    def turn_to(self, name: str) -> None:
        """End what is open and begin the next phase."""
        self.leave_all()
        self.enter(name)
