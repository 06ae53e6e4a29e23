"""Python stacks on request, for a process that no debugger may look into.

The process that is to answer calls `register` once: a signal that nobody else uses then makes the
interpreter write the stacks of all threads into memory of its own (a memory file, so neither a
disk nor a lock is waited for), from C code that needs no running interpreter. Another process of
the same user calls `ask`, which sends the signal only where that memory file is still open and
the signal still has a handler: a process that did not register can never be ended by it.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ett_trainer_hooks.procfs import PROC, catches

MEMORY_NAME = "ett-stacks"
READ_LIMIT = 1 << 16
POLL_S = 0.02
SIGNAL_BELOW_LAST = 7

_memory: BinaryIO | None = None


def signal_number() -> int | None:
    """The real-time signal that asks for stacks; None where the system has none."""
    last: int | None = getattr(signal, "SIGRTMAX", None)
    return None if last is None else last - SIGNAL_BELOW_LAST


def register() -> bool:
    """Let this process answer; False where it cannot, or where it uses the signal itself."""
    global _memory  # noqa: PLW0603 - one process, one memory file, open to its end
    number = signal_number()
    if _memory is not None:
        return True
    if number is None or not hasattr(os, "memfd_create") or signal.getsignal(number) is not signal.SIG_DFL:
        return False
    try:
        memory = os.fdopen(os.memfd_create(MEMORY_NAME), "wb", buffering=0)
    except OSError:
        return False
    faulthandler.register(number, file=memory, all_threads=True, chain=False)
    _memory = memory
    return True


def ask(
    pid: int,
    *,
    patience_s: float = 2.0,
    proc: Path = PROC,
    send: Callable[[int, int], None] = os.kill,
    sleep: Callable[[float], None] = time.sleep,
) -> str | None:
    """The Python stacks of a process that has registered: the latest call first, the main thread last.

    None where it has not, or does not answer within `patience_s` seconds (it may be inside the
    kernel, where no signal reaches it).
    """
    number, memory = signal_number(), memory_of(pid, proc)
    if number is None or memory is None or not catches(pid, number, proc):
        return None
    try:
        before = size = memory.stat().st_size
        send(pid, number)
        for _ in range(round(patience_s / POLL_S)):
            sleep(POLL_S)
            grown = memory.stat().st_size
            if grown > before and grown == size:
                break
            size = grown
        with memory.open("rb") as file:
            file.seek(max(before, size - READ_LIMIT))
            return file.read(READ_LIMIT).decode("utf-8", "replace") or None
    except OSError:
        return None


def memory_of(pid: int, proc: Path = PROC) -> Path | None:
    """The memory file of a process that has registered; None where there is none, or no access."""
    try:
        descriptors = sorted((proc / str(pid) / "fd").iterdir(), key=lambda path: int(path.name))
    except OSError:
        return None
    for descriptor in descriptors:
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue
        if target.startswith(f"/memfd:{MEMORY_NAME} "):
            return descriptor
    return None
