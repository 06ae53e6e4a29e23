"""A process that kills itself, or stands still, at the n-th thing that it does to files."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

FILE_EVENTS = ("open", "os.", "shutil.")


def kill_at(number: int, below: str = "", by: int = signal.SIGKILL) -> None:
    """From now on the number-th event on files, of those below a path, is the last this process sees.

    With SIGSTOP it is the last until the process is told to go on.
    """
    seen = 0

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event.startswith(FILE_EVENTS) and event != "os.kill" and _is_below(arguments, below):
            seen += 1
            if seen == number:
                os.kill(os.getpid(), by)

    sys.addaudithook(count)


def was_killed(number: int, work: Callable[[], object], below: str = "") -> bool:
    """Do something in a child that is killed at its number-th event on files; False where it got through."""
    pid = os.fork()
    if pid == 0:
        kill_at(number, below)
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the parent goes by the status
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def _is_below(arguments: tuple[object, ...], path: str) -> bool:
    return not path or any(str(each).startswith(path) for each in arguments[:2])
