"""Old reports of jobs, kept in a file without a name instead of in memory.

The file lies in the temporary directory (`TMPDIR`) and is gone with the process: what it holds is
made again from the store. Where the disk is full, memory is used. Any thread may call.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import weakref

PAGE = 512
LONGEST = 2**32
"""Bytes of a parcel are fewer."""

_log = logging.getLogger("ett_exporter.archive")


class FileArchive:
    """Bytes in pages of one file; pages that were dropped are used again."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile(prefix="ettwatch-") as file:
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self._lock = threading.RLock()
        """Held again where the collector lets go of parcels while their place is given to others."""
        self._end = 0
        self._free: dict[int, list[int]] = {}
        self._is_full = False

    def put(self, data: bytes) -> object:
        """Keep bytes; gives the handle to get them back, a number that says where they are and how many."""
        pages = -(-len(data) // PAGE)
        with self._lock:
            free = self._free.get(pages)
            begin = free.pop() if free else self._end
            self._end = max(self._end, begin + pages)
        try:
            written = os.pwrite(self._file, data, begin * PAGE)
        except OSError as error:
            self._note_full(str(error))
            written = -1
        if written == len(data):
            return _handle(begin, len(data))
        self.drop(_handle(begin, len(data)))
        return data

    def get(self, handle: object, begin: int = 0, end: int | None = None) -> bytes:
        """The bytes under a handle, or a part of them."""
        if isinstance(handle, bytes):
            return handle[begin:end]
        page, length = self._place(handle)
        return os.pread(self._file, (length if end is None else end) - begin, page * PAGE + begin)

    def drop(self, handle: object) -> None:
        """Let others use the pages under a handle."""
        if not isinstance(handle, bytes):
            begin, length = self._place(handle)
            with self._lock:
                self._free.setdefault(-(-length // PAGE), []).append(begin)

    @property
    def bytes_used(self) -> int:
        """Bytes of the file."""
        return self._end * PAGE

    @staticmethod
    def _place(handle: object) -> tuple[int, int]:
        assert isinstance(handle, int)  # noqa: S101 - `put` gave it
        return divmod(handle, LONGEST)

    def _note_full(self, why: str) -> None:
        if not self._is_full:
            self._is_full = True
            _log.warning("old reports stay in memory, as the temporary directory takes no more: %s", why)


def _handle(begin: int, length: int) -> int:
    return begin * LONGEST + length
