"""Batches made ahead by one thread, so that the training loop seldom waits for data.

Execution: the thread alone calls `make`; the trainer's thread alone takes. At most `depth`
batches wait, so memory is bounded. The thread is a daemon: it never keeps a process alive.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
_LOOK_S = 0.2


class Prefetcher(Generic[T]):
    """Yields `make(step)` for each step from `first` up to, not including, `end`, in order.

    What `make` raises is raised where the batch is taken.

    >>> with Prefetcher(lambda step: step * step, first=2, end=5) as squares:
    ...     list(squares)
    [4, 9, 16]
    """

    def __init__(self, make: Callable[[int], T], *, first: int, end: int, depth: int = 4) -> None:
        self._make = make
        self._steps = range(first, end)
        self._ready: queue.Queue[T | Exception] = queue.Queue(maxsize=depth)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._fill, name="prefetch", daemon=True)

    def __enter__(self) -> Prefetcher[T]:
        """Begin to make batches."""
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop making batches and wait for the thread."""
        self._closed.set()
        self._thread.join()

    def warm_up(self) -> None:
        """Wait until the first batch lies ready; it is not taken."""
        while self._ready.empty() and self._thread.is_alive():
            self._thread.join(timeout=_LOOK_S / 20)

    def __iter__(self) -> Iterator[T]:
        """Take the batches in the order of their steps."""
        for _ in self._steps:
            item = self._ready.get()
            if isinstance(item, Exception):
                raise item
            yield item

    def _fill(self) -> None:
        for step in self._steps:
            item = self._outcome(step)
            if not self._put(item) or isinstance(item, Exception):
                return

    def _outcome(self, step: int) -> T | Exception:
        try:
            return self._make(step)
        except Exception as error:  # noqa: BLE001 - handed over and raised in the loop
            return error

    def _put(self, item: T | Exception) -> bool:
        while not self._closed.is_set():
            try:
                self._ready.put(item, timeout=_LOOK_S)
            except queue.Full:
                continue
            return True
        return False
