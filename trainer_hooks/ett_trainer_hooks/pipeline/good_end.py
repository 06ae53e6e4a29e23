"""A good end of a process although one of its threads hangs in native code.

Once the interpreter is ending, a thread that comes back from native code is ended where it stands, which
C++ takes for a fault: the whole process dies by SIGABRT, in the midst of an end that went well, and whoever
started it starts the job again. Here such a thread stops instead, and the process ends with the status
that it has. Linux.
"""

from __future__ import annotations

import atexit
import ctypes
import signal
import threading

LIMIT_S = 60
"""Longest time from the exit functions to the end; then the process dies by SIGALRM."""


def end_well_despite(thread: threading.Thread) -> None:
    """See to it that a thread which may hang does not spoil the end of this process, whenever that comes."""
    atexit.register(_prepare, thread)


def _prepare(thread: threading.Thread) -> None:
    if thread.is_alive():
        libc = ctypes.CDLL(None)
        libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
        libc.signal(signal.SIGABRT, ctypes.cast(libc.pause, ctypes.c_void_p))  # stops whoever aborts
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT_S)
