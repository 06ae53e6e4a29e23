"""Wall time laid onto the monotonic clock, so that a stepping wall clock bends no duration.

Read by the training thread, re-anchored by the journal's thread; the anchor is one float that
is replaced whole.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STEP_LIMIT_S = 0.5


class Clock:
    """Seconds of the monotonic clock and the Unix seconds that they stand for."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.monotonic = monotonic
        self._wall = wall
        self._anchor_s = wall() - monotonic()

    def wall_at(self, monotonic_s: float) -> float:
        """Unix seconds of a reading of the monotonic clock."""
        return self._anchor_s + monotonic_s

    def now(self) -> float:
        """Unix seconds of this moment."""
        return self._anchor_s + self.monotonic()

    def reanchor(self) -> bool:
        """Follow the wall clock where it was stepped by more than half a second."""
        anchor_s = self._wall() - self.monotonic()
        stepped = abs(anchor_s - self._anchor_s) > STEP_LIMIT_S
        if stepped:
            self._anchor_s = anchor_s
        return stepped


@contextmanager
def later(after_s: float, function: Callable[[], object]) -> Iterator[None]:
    """Call a function in a thread after so many seconds, unless this is left before."""
    timer = threading.Timer(after_s, function)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
