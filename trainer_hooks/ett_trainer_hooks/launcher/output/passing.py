"""Passes the output of a command on, from the files that it writes to the launcher's own streams.

One thread a stream. No byte is changed, and none is lost while somebody reads: at the end whoever
reads slowly is waited for, as the command itself would have to wait. Whatever cannot be passed on
stays in the file.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from ett_core.reasons import reason_of
from ett_trainer_hooks.launcher.output.follow import OpenTail

POLL_S = 0.05
UNREAD_AFTER_S = 5.0
"""A reader that took nothing for so long is not waited for once the job was told to stop."""
PIECE_BYTES = 1 << 16
EVERYTHING = 1 << 62

Sink = Callable[[bytes], object]


class Passing:
    """Passes on the file at `path` to `sink`, until `finish`."""

    def __init__(self, path: Path, sink: Sink) -> None:
        self.path = path
        self._trouble = ""
        self._sink = sink
        self._tail = OpenTail(path)
        self._over = threading.Event()
        self._moved_s = time.monotonic()
        self._passed = 0
        self._thread = threading.Thread(target=self._run, name="ett-output", daemon=True)
        self._thread.start()

    @property
    def passed_bytes(self) -> int:
        """Bytes of the file that nobody needs to read any more."""
        return self._passed

    def finish(self, is_asked: Callable[[], bool]) -> str:
        """Nothing more will be written: pass on what is left; why that was not all, if so.

        Waits for whoever reads, unless the job is asked to stop and nobody has read for a while.
        """
        self._moved_s = time.monotonic()
        self._over.set()
        while self._thread.is_alive() and not (is_asked() and self._stands_still()):
            self._thread.join(POLL_S)
        if self._thread.is_alive():
            return "whoever reads it took no more"
        self._tail.close()
        return self._trouble

    def _stands_still(self) -> bool:
        return time.monotonic() - self._moved_s > UNREAD_AFTER_S

    def _run(self) -> None:
        try:
            while True:
                is_last = self._over.is_set()
                while data := self._tail.read(PIECE_BYTES):
                    self._sink(data)
                    self._moved_s = time.monotonic()
                    self._passed = self._tail.offset
                if is_last:
                    return
                self._over.wait(POLL_S)
        except BrokenPipeError:
            return
        except (OSError, ValueError) as error:
            self._trouble = reason_of(error)
        finally:
            self._passed = EVERYTHING


def stream_sink(stream: TextIO | None) -> Sink:
    """A sink that writes to a stream at once; what is written to one that is closed is dropped."""
    try:
        descriptor = None if stream is None else stream.fileno()
    except (OSError, ValueError):
        descriptor = None
    if descriptor is None:
        return lambda _: None
    return lambda data: write_all(descriptor, data)


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, however slowly it is taken.

    Raises:
        OSError: it is not taken.
    """
    while data:
        data = data[_written(descriptor, data) :]


def _written(descriptor: int, data: bytes) -> int:
    """Write what is taken at once; the number of bytes. Waits a moment where that is none."""
    try:
        return os.write(descriptor, data)
    except BlockingIOError:
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        ready.poll(POLL_S * 1000.0)
        return 0
