"""Somebody who presses Ctrl-C wants an end, and no traceback of where the program stood."""

from __future__ import annotations

import sys
from types import TracebackType


def quiet_interrupts() -> None:
    """From now on this process ends by an uncaught `KeyboardInterrupt` as before, but writes nothing of it.

    Hooks for uncaught exceptions that are set later and call the one before them see it all the same.
    """
    before = sys.excepthook

    def told(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            before(kind, error, traceback)

    sys.excepthook = told
