"""The directory in which a launcher's standbys listen: for its user alone, and gone with the launcher.

Ranks put into it what they were started with, so that nothing of it may stay. Where a launcher was killed a
keeper removes it; where there was none, or that was killed as well, the next launcher on the host does:
a lock of the kernel, gone with its holder, tells whether one still lives.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PREFIX = "ett-standbys-"
LONGEST_PLACE = 74
"""Characters: with those of the directory and the socket in it they are fewer than the kernel's 108."""
YOUNG_S = 60.0
"""What is younger may be one that its launcher is about to lock."""


class StandbyPlace:
    """A new directory, `path`; what killed launchers of this user have left beside it is removed.

    Raises:
        OSError: there is no place for one.
    """

    def __init__(self) -> None:
        beside = Path(short_place())
        remove_left(beside)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside))
        self._lock = os.open(self.path, os.O_RDONLY)
        with suppress(OSError):  # no locks there: nobody removes what is left either
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove it with all that lies in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_left(beside: Path, now: float | None = None) -> None:
    """Remove the directories of this user whose launchers are gone."""
    for path in beside.glob(f"{PREFIX}*"):
        with suppress(OSError):  # in use, or gone
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                found = os.fstat(descriptor)
                age_s = (time.time() if now is None else now) - found.st_mtime
                if found.st_uid == os.geteuid() and age_s > YOUNG_S:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


def short_place() -> str:
    """A directory for temporary files whose name leaves room for that of a socket.

    Raises:
        OSError: there is none.
    """
    for place in (tempfile.gettempdir(), "/tmp", "/dev/shm"):  # noqa: S108 - a directory of our own lies in it
        if len(place) <= LONGEST_PLACE and os.access(place, os.W_OK):
            return place
    raise OSError("there is no directory for temporary files with a name that is short enough for a socket")
