"""An end without taking the interpreter down: what thousands of imported modules cost is saved.

At its usual end Python lets go of every object of every module, then frees the interpreter. Nobody
needs that of a process that ends: the system takes all of it back. What must happen at an end does:
threads that are no daemons are waited for, exit functions run, output is flushed.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, TextIO

FLUSH_FAILED = 120
"""Exit status of Python where output could not be written at the end."""


@contextmanager
def quick_exit() -> Iterator[None]:
    """End the process with the block: never returns where the block ended or raised `SystemExit`.

    Other exceptions leave the block as they would without it. The status is the one that Python would
    end with. What is left out: `__del__` of objects that are still there, and what native libraries do
    after the interpreter.
    """
    try:
        yield
    except SystemExit as leaving:
        if leaving.code is not None and not isinstance(leaving.code, int):
            raise  # Python writes it down before it ends with 1
        leave(leaving.code or 0)
    leave(0)


def leave(status: int) -> NoReturn:
    """End the process with a status, as at its usual end but for its objects."""
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - as multiprocessing's children end
    atexit._run_exitfuncs()  # noqa: SLF001 - the same
    written = [_flush(stream) for stream in (sys.stdout, sys.stderr)]
    os._exit((status if all(written) else status or FLUSH_FAILED) & 0xFF)


def _flush(stream: TextIO | None) -> bool:
    """Whether what a stream still held is written."""
    try:
        if stream is not None and not stream.closed:
            stream.flush()
    except OSError:  # its reader is gone, its disk is full
        return False
    return True
