"""Processes that end with a test, whatever becomes of it: their environment bears a mark.

A job that is tested starts processes in sessions of their own, some of which outlive those that
started them. A guard, a process of its own, kills whatever bears the mark once the test lets go of it
or is itself killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = "ENDS_WITH_TEST"
PAUSE_S = 0.01


@contextmanager
def marked() -> Iterator[dict[str, str]]:
    """A variable for what is started within the block; all that has it is gone after it."""
    mark = uuid.uuid4().hex
    guard = subprocess.Popen(
        [sys.executable, "-S", "-E", __file__, mark], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield {NAME: mark}
    finally:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait()


def bearers(mark: str) -> list[int]:
    """The processes that were started with the mark and live."""
    word = f"{NAME}={mark}".encode()
    processes = [each for each in Path("/proc").iterdir() if each.name.isdecimal()]
    return [int(each.name) for each in processes if word in _environ(each)]


def _environ(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or is somebody else's
        return []


def guard(mark: str) -> None:
    """Wait for the end of the input, then kill all that bear the mark, until there are none."""
    sys.stdin.read()
    while found := bearers(mark):
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    guard(sys.argv[1])
