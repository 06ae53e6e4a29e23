"""Has files brought to the disk itself (fsync), in a thread of its own, so that no write waits for it.

The thread starts with the first request and ends with the process. Requests that come while the
disk is busy are answered together; however many they are, one descriptor a file waits for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

NOT_OF_THIS_FILE = (95, 22)
"""EOPNOTSUPP and EINVAL: a pipe or a device, for which there is nothing to do."""


class Syncer:
    """Takes requests from one thread; `sync` is called in another one.

    `say` is told once when the disk refuses; the events are in the operating system's hands then.
    """

    def __init__(self, sync: Callable[[int], object], say: Callable[[str], object]) -> None:
        self._sync = sync
        self._say = say
        self._changed = threading.Condition()
        self._wanted: dict[tuple[int, int], int] = {}
        """A descriptor of our own of each file that is to be brought to the disk."""
        self._is_over = False
        self._thread: threading.Thread | None = None

    def request(self, descriptor: int, directory: Path | None = None) -> None:
        """What was written to a file is to reach the disk, and the names in `directory`, if it is there.

        Raises:
            OSError: there is no descriptor left.
        """
        self._want(_file_of(descriptor), os.dup(descriptor))
        if directory is not None:
            with suppress(FileNotFoundError):
                opened = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
                self._want(_file_of(opened), opened)
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="ett-sync", daemon=True)
            thread.start()
            self._thread = thread

    def close(self, timeout_s: float) -> None:
        """Wait a bounded time until everything requested is on the disk."""
        if self._thread is not None:
            with self._changed:
                self._is_over = True
                self._changed.notify()
            self._thread.join(timeout_s)

    def _want(self, file: tuple[int, int], descriptor: int) -> None:
        """Have a file brought to the disk; the descriptor goes where one of that file waits already."""
        with self._changed:
            waiting = self._wanted.setdefault(file, descriptor)
            self._changed.notify()
        if waiting != descriptor:
            os.close(descriptor)

    def _run(self) -> None:
        while descriptors := self._next():
            for descriptor in descriptors:
                self._bring(descriptor)
                os.close(descriptor)

    def _next(self) -> list[int]:
        """What is to be brought to the disk now, as soon as there is anything; nothing at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted or self._is_over)
            wanted, self._wanted = self._wanted, {}
        return list(wanted.values())

    def _bring(self, descriptor: int) -> None:
        try:
            self._sync(descriptor)
        except OSError as error:
            if error.errno not in NOT_OF_THIS_FILE:
                self._say(f"the disk does not confirm what was written ({error.strerror})")


def _file_of(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
