"""Work for another process: it must be importable there, which no module of tests is."""

import os
import time
from pathlib import Path


def own_pid(_: object) -> int:
    """Who runs this."""
    return os.getpid()


def fail_oddly(_: object) -> None:
    """Cannot be pickled: an error of a class that only lives here."""

    class OddError(Exception):
        pass

    raise OddError("no such column")


def wait_beside(path: str) -> None:
    """Say who runs, and stay."""
    Path(path).write_text(str(os.getpid()))
    time.sleep(3600)
