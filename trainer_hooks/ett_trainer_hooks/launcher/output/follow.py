"""Follows a growing file without disturbing its writer: no pipe that could fill, no lock.

Each `Tail` belongs to one thread and keeps its own offset.
"""

from __future__ import annotations

import os
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


class OpenTail:
    """Reads what was appended to a file since the last call, also after its name was removed.

    Where another file has taken the name, that one is read on, once the first is read to its end.
    `offset` counts the bytes read of the file that is open.
    """

    def __init__(self, path: Path) -> None:
        self.offset = 0
        self._path = path
        self._fd: int | None = None
        self._turn()

    def read(self, limit: int = CHUNK_BYTES) -> bytes:
        """New bytes, at most `limit`; none where the file is missing or has not grown."""
        data = self._more(limit)
        return data or (self._more(limit) if self._turn() else b"")

    def skip(self, keep: int) -> int:
        """Go on to where at most `keep` bytes are left to read; how many were passed over."""
        passed = max(self.left() - keep, 0)
        self.offset += passed
        return passed

    def left(self) -> int:
        """Bytes that are there and were not read."""
        if self._fd is None and not self._turn():
            return 0
        assert self._fd is not None  # noqa: S101 - for the type checker
        return max(os.fstat(self._fd).st_size - self.offset, 0)

    def close(self) -> None:
        """Let go of the file."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def _more(self, limit: int) -> bytes:
        if self._fd is None:
            return b""
        data = os.pread(self._fd, limit, self.offset)
        self.offset += len(data)
        return data

    def _turn(self) -> bool:
        """Open the file that has the name; False where it is open already, or there is none."""
        try:
            found = self._path.stat()
            if self._fd is not None and os.path.samestat(found, os.fstat(self._fd)):
                return False
            fresh = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        self.close()
        self._fd, self.offset = fresh, 0
        return True


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
