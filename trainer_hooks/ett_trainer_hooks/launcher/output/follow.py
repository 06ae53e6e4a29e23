"""Follows a growing file without disturbing its writer: no pipe that could fill, no lock.

Each `Tail` belongs to one thread and keeps its own offset.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

CHUNK_BYTES = 1 << 18
LINE_LIMIT = 16_384


class Tail:
    """Reads what was appended to a file since the last call."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path = path
        self._offset = offset

    def read(self, limit: int = CHUNK_BYTES) -> bytes:
        """New bytes, at most `limit`; none where the file is missing or has not grown."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(limit)
        except FileNotFoundError:
            return b""
        self._offset += len(data)
        return data

    def skip(self, keep: int) -> int:
        """Go on to where at most `keep` bytes are left to read; how many were passed over."""
        try:
            passed = self._path.stat().st_size - keep - self._offset
        except FileNotFoundError:
            return 0
        self._offset += max(passed, 0)
        return max(passed, 0)


class Lines:
    r"""Turns bytes as they come into whole lines of text.

    >>> lines = Lines()
    >>> lines.feed(b"one\ntw"), lines.feed(b"o\nthree\n")
    (['one'], ['two', 'three'])
    """

    def __init__(self) -> None:
        self._rest = b""
        self._torn = False

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes, as a terminal shows them; an endless line is cut.

        Of a progress bar, which returns to the beginning of its line, only the last state is kept.
        """
        if self._torn:
            _, newline, data = data.partition(b"\n")
            self._torn = not newline
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_LIMIT:
            whole.append(self._rest)
            self._rest = b""
        shown = (line.rstrip(b"\r").rpartition(b"\r")[2] for line in whole)
        return [line[:LINE_LIMIT].decode("utf-8", "replace") for line in shown]

    def gap(self) -> None:
        """Bytes are missing here: the line that was begun, and what is left of the next, are none."""
        self._rest = b""
        self._torn = True

    def finish(self) -> list[str]:
        """What is left without a newline, as a last line."""
        return self.feed(b"\n") if self._rest else []


def copy(tail: Tail, sink: Callable[[bytes], object], stop: threading.Event, poll_s: float = 0.05) -> None:
    """Pass a file on to `sink` as it grows, until `stop` is set and the end is reached.

    Stops early where the sink is closed; the file goes on growing.
    """
    try:
        while True:
            last_round = stop.is_set()
            while data := tail.read():
                sink(data)
            if last_round:
                return
            stop.wait(poll_s)
    except (OSError, ValueError):
        return
