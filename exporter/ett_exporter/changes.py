"""Which jobs changed after which: a numbered list for readers that follow along.

Threads that take in segments note changes; coroutines of the event loop wait for them. A cursor
names this process and a number: with one of another process a reader gets everything anew.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import OrderedDict
from contextlib import suppress

import msgspec


class Changed(msgspec.Struct, frozen=True):
    """Jobs in the order of their latest change, and the cursor after them."""

    job_ids: list[str]
    cursor: str
    is_all: bool
    more: bool


class ChangeLog:
    """The latest change of each job; any thread may call, but for `wait`."""

    def __init__(self) -> None:
        self._name = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._number = 0
        self._of_job: OrderedDict[str, int] = OrderedDict()
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._closed = False

    def note(self, job_id: str) -> None:
        """A job changed."""
        with self._lock:
            self._number += 1
            self._of_job[job_id] = self._number
            self._of_job.move_to_end(job_id)
            self._wake()

    def since(self, cursor: str, limit: int) -> Changed:
        """The jobs that changed after a cursor, the longest ago first; all of them for a strange one.

        >>> log = ChangeLog()
        >>> for job_id in ("a", "b", "a"): log.note(job_id)
        >>> first = log.since("", 10)
        >>> first.job_ids, first.is_all, log.since(first.cursor, 10).job_ids
        (['b', 'a'], True, [])
        """
        with self._lock:
            number, is_all = self._number_of(cursor)
            found: list[tuple[str, int]] = []
            for job_id, changed in reversed(self._of_job.items()):
                if changed <= number:
                    break
                found.append((job_id, changed))
            found.reverse()
            shown = found[:limit]
            reached = shown[-1][1] if shown else max(number, 0)
            more = len(found) > limit
            return Changed([job_id for job_id, _ in shown], f"{self._name}-{reached}", is_all, more)

    async def wait(self, cursor: str, for_s: float) -> None:
        """Return once something changed after a cursor, at `close`, or after `for_s` seconds."""
        changed = asyncio.Event()
        with self._lock:
            number, is_all = self._number_of(cursor)
            if is_all or number < self._number or self._closed:
                return
            self._waiting[changed] = asyncio.get_running_loop()
        try:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(changed.wait(), for_s)
        finally:
            with self._lock:
                self._waiting.pop(changed, None)

    def close(self) -> None:
        """Let everybody go who waits."""
        with self._lock:
            self._closed = True
            self._wake()

    def _wake(self) -> None:
        for changed, loop in self._waiting.items():
            with suppress(RuntimeError):  # a loop that has ended waits for nothing
                loop.call_soon_threadsafe(changed.set)
        self._waiting.clear()

    def _number_of(self, cursor: str) -> tuple[int, bool]:
        """The number of a cursor of ours; else one before everything."""
        name, _, number = cursor.partition("-")
        if name != self._name or not number.isdecimal() or len(number) > 18:  # noqa: PLR2004 - digits of 2**59
            return 0, True
        return min(int(number), self._number), False
