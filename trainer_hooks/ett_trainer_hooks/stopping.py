"""The signals that stop a job: a launcher hears them, remembers the first, and passes all of them on.

Handlers run in the main thread; elsewhere nothing is handled.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

STATUS_OF_SIGNAL: Mapping[int, str] = {signal.SIGINT: "cancelled", signal.SIGTERM: "preempted"}
"""How a job ends that somebody stopped by a signal to its launcher."""


class Stop:
    """A signal that the launcher got: it is passed on to the command's group, and remembered."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.decided: tuple[str, float] | None = None
        self._now = now
        self._group: int | None = None
        self._early: int | None = None

    def send_to(self, group: int) -> None:
        """Pass signals on to this process group, also one that came before it was there."""
        self._group = group
        if self._early is not None:
            signal_group(group, self._early)

    def heard(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.decided is None:
            self.decided = (STATUS_OF_SIGNAL[number], self._now())
        if self._group is None:
            self._early = number
        else:
            signal_group(self._group, number)


@contextmanager
def listening(stop: Stop) -> Iterator[None]:
    """Handle the signals that stop a job while the command runs (main thread only)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop.heard) for number in STATUS_OF_SIGNAL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def signal_group(group: int, number: int) -> None:
    """Send a signal to a process group; one that is gone is no error."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
