"""One rank as the watchdog follows it, through all parts of its journal, and the clock of its silence.

Used by the launcher's main thread; a reader of files.
"""

from __future__ import annotations

from pathlib import Path

from ett_core.events import AnyEvent, decode
from ett_trainer_hooks.journal.parts import last_part, part_number, part_path
from ett_trainer_hooks.launcher.output.follow import Tail
from ett_trainer_hooks.launcher.ranks import RankProcess
from ett_trainer_hooks.launcher.stalls.rank_progress import RankProgress

LONGEST_LOOK_S = 5.0
"""No more than this is counted between two looks."""


class Followed:
    """A rank process and what its journal has told; `moved_s` is the quiet clock at its last progress."""

    def __init__(self, process: RankProcess, moved_s: float) -> None:
        self.process = process
        self.progress = RankProgress(process.rank)
        self.moved_s = moved_s
        self._part = 0
        self._tail = Tail(process.journal)
        self._rest = b""

    def moves(self) -> bool:
        """Read on, through all parts of the journal; True where any of it is progress."""
        moved = self.progress.take(self._new_events())
        while (following := part_path(self.process.journal, self._part + 1)).exists():
            moved = self.progress.take(self._new_events()) or moved
            self._go_on_in(following, self._part + 1)
            moved = self.progress.take(self._new_events()) or moved
        return moved

    def skips(self) -> bool:
        """Go on in the last part where parts in between are gone; True where that was so."""
        last = last_part(self.process.journal)
        number = part_number(last)
        if number <= self._part:
            return False
        self._go_on_in(last, number)
        self.moves()
        return True

    def _go_on_in(self, part: Path, number: int) -> None:
        self._part, self._tail, self._rest = number, Tail(part), b""

    def _new_events(self) -> list[AnyEvent]:
        """The events that the current part has gained; lines that are none are passed over."""
        found = []
        while data := self._tail.read():
            *lines, self._rest = (self._rest + data).split(b"\n")
            found += [event for line in lines if (event := _event(line)) is not None]
        return found


class QuietClock:
    """Seconds that somebody was there to see pass.

    >>> clock = QuietClock(now_s=0.0)
    >>> clock.tick(1.0), clock.tick(3601.0), clock.tick(3602.0)
    (1.0, 6.0, 7.0)
    """

    def __init__(self, now_s: float) -> None:
        self.read_s = 0.0
        self._last_s = now_s

    def tick(self, now_s: float) -> float:
        """The reading at this moment of a monotonic clock."""
        self.read_s += min(max(now_s - self._last_s, 0.0), LONGEST_LOOK_S)
        self._last_s = now_s
        return self.read_s


def _event(line: bytes) -> AnyEvent | None:
    try:
        return decode(line)
    except ValueError:
        return None
