"""Events put in order with a bounded memory: beyond a number of them, sorted runs lie in one temporary file.

Used by one thread: first `add`, then iterate, as often as wanted.
"""

from __future__ import annotations

import heapq
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import IO, Any

from ett_core.events import AnyEvent, decode, encode

MOST_AT_HAND = 20_000
PIECE_BYTES = 1 << 16


class SortedEvents:
    """Takes events and gives them in the order of `key`; those with equal keys as they came.

    Args:
        key: what is compared.
        most: events held in memory.
    """

    def __init__(self, key: Callable[[AnyEvent], Any], most: int = MOST_AT_HAND) -> None:
        self.count = 0
        """How many were added."""
        self._key = key
        self._most = most
        self._at_hand: list[AnyEvent] = []
        self._file: IO[bytes] | None = None
        self._ends: list[int] = [0]

    def add(self, event: AnyEvent) -> None:
        """Take one.

        Raises:
            OSError: there is no room for the temporary file.
        """
        self.count += 1
        self._at_hand.append(event)
        if len(self._at_hand) >= self._most:
            self._put_away()

    def __iter__(self) -> Iterator[AnyEvent]:
        """All of them."""
        self._at_hand.sort(key=self._key)
        runs = () if self._file is None else map(partial(self._run, self._file), self._ends, self._ends[1:])
        return heapq.merge(*runs, self._at_hand, key=self._key)

    def __enter__(self) -> SortedEvents:  # noqa: PYI034 - Self is younger than Python 3.10
        """Begin; the end removes the temporary file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _put_away(self) -> None:
        self._at_hand.sort(key=self._key)
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="ett-events-")  # noqa: SIM115 - for `__exit__`
        for event in self._at_hand:
            self._file.write(encode(event) + b"\n")
        self._file.flush()
        self._ends.append(self._file.tell())
        self._at_hand.clear()

    @staticmethod
    def _run(file: IO[bytes], at: int, end: int) -> Iterator[AnyEvent]:
        """The events that lie between two places of a file."""
        rest = b""
        while at < end:
            piece = os.pread(file.fileno(), min(PIECE_BYTES, end - at), at)
            at += len(piece)
            whole, newline, rest = (rest + piece).rpartition(b"\n")
            if newline:
                yield from map(decode, whole.split(b"\n"))
