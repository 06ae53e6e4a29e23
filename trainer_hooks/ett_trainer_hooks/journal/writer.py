"""The on-disk journal of one process, one event a line, in the files that `parts` names.

Any thread, and a signal handler, may `put` events: that is one append to a re-entrant queue. One
daemon thread gives them their sequence numbers, writes them with unbuffered appends and sends a
heartbeat when nothing else was said. A slow disk delays that thread, never the trainer for more
than a bounded moment; a full disk keeps lines in a bounded memory, then drops and counts. What
the operating system has taken survives SIGKILL of the process; the events that weigh most are
brought to the disk itself by a second thread, right after they are written. A forked child inherits a journal
that is closed, so that no two processes write under one name.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, get_args

import msgspec

from ett_core.events import AnyEvent, Counters, Event, Heartbeat, decode, encode
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal.parts import WEIGHTY, PartFiles, Sizes
from ett_trainer_hooks.journal.sayable import plain_value, sayable
from ett_trainer_hooks.journal.syncing import Syncer

BATCH_LINES = 1000
SYNCED = frozenset(kind for kind in get_args(AnyEvent) if kind.kind in WEIGHTY)
SETTLE_S = 0.05
DISPENSABLE_SHARE = 0.8
"""Events that nobody waits for are dropped from this fill of the buffer on."""

_living: weakref.WeakSet[Journal] = weakref.WeakSet()


class _Record(NamedTuple):
    kind: Callable[..., Event]
    time: float
    identity: Identity
    fields: dict[str, Any]


class Journal:
    """Writes the events of one process; see the module for who may call what.

    Attributes:
        identity: stamps the events put from now on; may be replaced (the launcher follows the
            attempts of its job).
        dropped: events that were lost to a full buffer or a full journal, or that no reader would
            accept.

    Args:
        path: where it begins; see `parts`.
        identity: who speaks.
        clock: wall and monotonic time.
        guard: counts the faults and says them once.
        sizes: bounds of what is on disk.
        limit: events that may wait in memory; more are dropped.
        heartbeat_s: seconds of silence after which a heartbeat is written.
        retry_s: seconds between two tries of a disk that takes nothing.
        write: takes a descriptor and bytes, as `os.write`.
        sync: takes a descriptor, as `os.fsync`.

    Raises:
        ValueError: a setting is not above 0; the message names it.
    """

    def __init__(  # noqa: PLR0913 - the world is injected
        self,
        path: Path,
        identity: Identity,
        *,
        clock: Clock,
        guard: Guard | None = None,
        sizes: Sizes | None = None,
        limit: int = 10_000,
        heartbeat_s: float = 10.0,
        retry_s: float = 0.5,
        write: Callable[[int, bytes], int] = os.write,
        sync: Callable[[int], object] = os.fsync,
    ) -> None:
        for name, value in (("limit", limit), ("heartbeat_s", heartbeat_s), ("retry_s", retry_s)):
            if not value > 0:
                raise ValueError(f"{name}={value!r} is not above 0")
        self.path = path
        self.identity = identity
        self.dropped = 0
        self._clock = clock
        self._guard = guard or Guard()
        self._limit = limit
        self._heartbeat_s = heartbeat_s
        self._retry_s = retry_s
        self._files = PartFiles(path, sizes or Sizes(), write)
        self._syncer = Syncer(sync, lambda text: self._guard.say_once("sync", f"{path}: {text}"))
        self._unsynced = False
        self._named: Path | None = None
        """The part whose name was brought to the disk with what it holds."""
        self._queue: SimpleQueue[_Record | threading.Lock | None] = SimpleQueue()
        self._seq = 0
        self._rest = b""
        self._marks: list[threading.Lock] = []
        self._open = True
        self._stopping = False
        self._lagging = False
        self._is_over = False
        """Nobody writes now; `is_alive`, cut short by a signal handler, calls a living thread dead."""
        self._thread = threading.Thread(target=self._run, name="ett-journal", daemon=True)
        self._thread.start()
        _living.add(self)

    @property
    def is_open(self) -> bool:
        """Events put now are written."""
        return self._open

    def put(
        self,
        kind: Callable[..., Event],
        at: float,
        *,
        urgent: bool = False,
        identity: Identity | None = None,
        **fields: Any,  # noqa: ANN401 - the fields of the event
    ) -> None:
        """Append an event of `kind` at Unix seconds `at`, stamped with `identity` or the journal's.

        An urgent one is on its way to the disk when this returns, at the cost of at most 50 ms;
        while the disk is known to lag, nobody waits.
        """
        if not self._open:
            return
        if self._queue.qsize() >= self._limit * (1.0 if urgent else DISPENSABLE_SHARE):
            self.dropped += 1
            self._guard.say_once("full", "journal buffer is full; events are dropped, training goes on")
            return
        self._queue.put(_Record(kind, at, identity or self.identity, fields))
        if urgent and not self._lagging:
            self._lagging = not self.flush(SETTLE_S)

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything put so far is written; False where that took too long."""
        if not self._open or self._is_over:
            return not self._queue.qsize()
        mark = threading.Lock()
        mark.acquire()
        self._queue.put(mark)
        return mark.acquire(timeout=timeout_s)

    def close(self, timeout_s: float = 1.0) -> bool:
        """Write what is left and stop; False where something could not be written in time."""
        if not self._open:
            return True
        if self.dropped:
            self._queue.put(self._losses())
        written = self.flush(timeout_s)
        self._open = False
        self._stopping = True
        self._queue.put(None)
        self._thread.join(timeout_s if written else 0.0)
        self._syncer.close(timeout_s if written else 0.0)
        if not written:
            self._guard.say_once("lost", f"{self.path}: the last events could not be written")
        return written

    def abandon(self) -> None:
        """Forget everything: this is a forked child, and the parent is the writer."""
        self._open = False
        self._queue = SimpleQueue()
        self._files.close()

    def _run(self) -> None:
        try:
            while not self._stopping:
                if not self._guard.call(self._round):
                    time.sleep(self._retry_s)
            self._guard.call(self._files.close)
        finally:
            self._is_over = True

    def _round(self) -> bool:
        """Write what there is; False where the disk takes nothing."""
        if self._rest and not self._push(b""):
            return False
        records = self._drain()
        self._clock.reanchor()
        if not records and not self._marks and not self._stopping:
            records = [_Record(Heartbeat, self._clock.now(), self.identity, {})]
        return self._push(b"".join(map(self._line, records)))

    def _drain(self) -> list[_Record]:
        """Events from the queue, at the latest when a heartbeat is due; marks are set aside."""
        records: list[_Record] = []
        try:
            item = self._queue.get(timeout=self._heartbeat_s)
            while True:
                if isinstance(item, _Record):
                    records.append(item)
                elif item is not None:
                    self._marks.append(item)
                if len(records) >= BATCH_LINES:
                    break
                item = self._queue.get_nowait()
        except Empty:
            pass
        return records

    def _line(self, record: _Record) -> bytes:
        """The line of an event, empty (and counted) where no reader would accept it."""
        line = self._guard.call(self._encoded, record)
        if line is None:
            self.dropped += 1
            return b""
        self._seq += 1
        self._unsynced = self._unsynced or record.kind in SYNCED
        return line

    def _encoded(self, record: _Record) -> bytes:
        try:
            line = encode(self._event(record))
            decode(line)
        except (TypeError, ValueError):
            line = encode(self._event(_sayable(record)))
            decode(line)
        return line + b"\n"

    def _event(self, record: _Record) -> Event:
        who = record.identity
        return record.kind(
            job_id=who.job_id,
            writer=who.writer,
            seq=self._seq,
            attempt=who.attempt,
            rank=who.rank,
            node=who.node,
            time=record.time,
            **record.fields,
        )

    def _push(self, data: bytes) -> bool:
        """Append to the file; what it does not take is kept for the next attempt."""
        self._rest += data
        try:
            while self._rest:
                self._rest = self._rest[self._files.append(self._rest) :]
        except OSError as error:
            self._guard.say_once(
                "disk", f"{self.path}: {error.strerror}; training goes on, events wait in memory"
            )
            return False
        if self._files.was_removed:
            self._guard.say_once(
                "removed", f"{self.path}: somebody removed it with what it held; it goes on in its next part"
            )
        self._lagging = False
        while self._marks:
            self._marks.pop().release()
        self._guard.call(self._settle)
        return True

    def _settle(self) -> None:
        """All is written: bring what weighs most, and all before it, to the disk; turn to the next part."""
        if self._unsynced or self._files.is_full:
            part = self._files.path
            self._syncer.request(self._files.descriptor, None if part == self._named else part.parent)
            self._unsynced, self._named = False, part
        lost = self._files.lost_lines
        if kept := self._files.turn():
            self._unsynced = True
            self._push(kept)
        if new := self._files.lost_lines - lost:
            self.dropped += new
            self._queue.put(self._losses())
            self._guard.say_once("room", f"{self.path}: as large as it may grow; old parts of it are removed")

    def _losses(self) -> _Record:
        lost = {"hooks.dropped_events": float(self.dropped)}
        return _Record(Counters, self._clock.now(), self.identity, {"values": lost})


class NullJournal:
    """Takes everything and keeps nothing: what hooks write to when they are switched off."""

    dropped = 0
    is_open = False

    def put(self, kind: Callable[..., Event], at: float, *, urgent: bool = False, **fields: Any) -> None:  # noqa: ANN401
        """Do nothing."""

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002 - the same call as on a journal
        """Everything is written already."""
        return True

    def close(self, timeout_s: float = 1.0) -> bool:  # noqa: ARG002 - the same call as on a journal
        """Nothing is open."""
        return True


def _sayable(record: _Record) -> _Record:
    """The record with every value as a line can hold it."""
    who = msgspec.structs.replace(record.identity, node=plain_value(record.identity.node))
    return record._replace(identity=who, fields=sayable(record.kind, record.fields))


def _abandon_all() -> None:
    for journal in list(_living):
        journal.abandon()


os.register_at_fork(after_in_child=_abandon_all)
