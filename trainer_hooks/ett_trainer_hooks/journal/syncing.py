"""Has files brought to the disk itself (fsync), in a thread of its own, so that no write waits for it.

The thread starts with the first request and ends with the process. Requests that come while the
disk is busy are answered together.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

NOT_OF_THIS_FILE = (95, 22)
"""EOPNOTSUPP and EINVAL: a pipe or a device, for which there is nothing to do."""


class Syncer:
    """Takes requests from one thread; `sync` is called in another one.

    `say` is told once when the disk refuses; the events are in the operating system's hands then.
    """

    def __init__(self, sync: Callable[[int], object], say: Callable[[str], object]) -> None:
        self._sync = sync
        self._say = say
        self._wanted: SimpleQueue[int | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def request(self, descriptor: int, directory: Path | None = None) -> None:
        """What was written to a file is to reach the disk, and the names in `directory`, if it is there.

        Raises:
            OSError: there is no descriptor left.
        """
        self._wanted.put(os.dup(descriptor))
        if directory is not None:
            with suppress(FileNotFoundError):
                self._wanted.put(os.open(directory, os.O_RDONLY | os.O_CLOEXEC))
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="ett-sync", daemon=True)
            thread.start()
            self._thread = thread

    def close(self, timeout_s: float) -> None:
        """Wait a bounded time until everything requested is on the disk."""
        if self._thread is not None:
            self._wanted.put(None)
            self._thread.join(timeout_s)

    def _run(self) -> None:
        ends = False
        while not ends:
            requests = self._requests()
            ends = None in requests
            descriptors = [each for each in requests if each is not None]
            for descriptor in {_file_of(each): each for each in descriptors}.values():
                self._bring(descriptor)
            for descriptor in descriptors:
                os.close(descriptor)

    def _requests(self) -> list[int | None]:
        descriptors = [self._wanted.get()]
        try:
            while True:
                descriptors.append(self._wanted.get_nowait())
        except Empty:
            return descriptors

    def _bring(self, descriptor: int) -> None:
        try:
            self._sync(descriptor)
        except OSError as error:
            if error.errno not in NOT_OF_THIS_FILE:
                self._say(f"the disk does not confirm what was written ({error.strerror})")


def _file_of(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
