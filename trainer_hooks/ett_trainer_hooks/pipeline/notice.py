"""The notice that a job will be taken off its machines: a signal, and the time that is left from then on.

Handlers run on the main thread, between two instructions of Python; a notice that comes while that thread
waits in native code is heard when it returns. The handler notes the time and calls one that the program
had before. The recorder's own it stands in for: that one tells of a failure at this moment and ends the
process, but the job trains and saves on until it leaves. Needs no torch.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType, TracebackType
from typing import Any

from ett_trainer_hooks.recording import termination

GRACES_S: Mapping[int, float] = {signal.SIGTERM: 30.0, signal.SIGUSR2: 60.0}
"""Seconds from a signal to the end by force: what Kubernetes and torchrun give after SIGTERM, and what
`--signal=USR2@60` asks of Slurm."""


class Notice:
    """Hears signals while it is entered, in the main thread; elsewhere it hears nothing.

    Enter it after the recorder was made.

    Args:
        graces_s: signals, with the seconds that are left from each.
        clock: monotonic seconds.

    Raises:
        ValueError: a grace is negative or not finite.
    """

    def __init__(
        self, graces_s: Mapping[int, float] = GRACES_S, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        for number, grace_s in graces_s.items():
            if not 0 <= grace_s < math.inf:
                name = signal.Signals(number).name
                raise ValueError(f"the grace after {name} must be 0 s or more, and finite, not {grace_s:g} s")
        self._graces_s = dict(graces_s)
        self._clock = clock
        self._before: dict[int, Any] = {}
        self._ends_s = math.inf
        self.signal: int | None = None
        """The signal that leaves least time; None while there was none."""

    def __enter__(self) -> Notice:  # noqa: PYI034 - Self is younger than Python 3.10
        """Hear signals, but those that were ignored when the process began."""
        if threading.current_thread() is threading.main_thread():
            for number in self._graces_s:
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put back the handlers that were there, where ours still stand."""
        for number, before in self._before.items():
            if signal.getsignal(number) == self._heard:
                signal.signal(number, before)
        self._before.clear()

    @property
    def came(self) -> bool:
        """Whether there was a notice."""
        return self.signal is not None

    @property
    def left_s(self) -> float:
        """Seconds that are left; endless without a notice, below 0 once they are over."""
        return self._ends_s - self._clock()

    def _heard(self, number: int, frame: FrameType | None) -> None:
        ends_s = self._clock() + self._graces_s[number]
        if ends_s < self._ends_s:
            self.signal, self._ends_s = number, ends_s
        before = self._before.get(number)
        if callable(before) and not isinstance(before, termination.Told):
            before(number, frame)
