"""Following the journals of a directory: ingest for machines without a network.

One thread looks at every `*.jsonl` file under the watched directories, reads what was appended,
and remembers in the store how far it came. A crash between ingest and remembering reads some
lines again; they count once. A last line without its end waits for the rest. A journal that is
as it was is not opened again, so that ten thousand of them cost one look at each.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ett_core.plain_text import name_as_text
from ett_exporter.errors import StoreError
from ett_exporter.ingest import Rejected, read_lines
from ett_exporter.jobs import BusyError
from ett_exporter.service import Service
from ett_exporter.store import JournalOffset

CHUNK_BYTES = 1024 * 1024
SUFFIX = ".jsonl"

State: TypeAlias = tuple[int, int, int]
"""Inode, bytes and last change of a file."""
Read: TypeAlias = dict[Path, State]

_log = logging.getLogger("ett_exporter.watch")


class Watcher:
    """Looks at directories every `interval_s` seconds in a thread of its own, from `start` to `stop`."""

    def __init__(self, service: Service, directories: Sequence[Path], interval_s: float) -> None:
        self._service = service
        self._directories = directories
        self._interval_s = interval_s
        self._troubles = Troubles()
        self._read: Read = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ett-watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End after what is being read."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._look()
            if self._stopping.wait(self._interval_s):
                return

    def _look(self) -> None:
        try:
            look(self._service, self._directories, self._troubles, self._goes_on, self._read)
        except Exception:  # noqa: BLE001 - the thread lives as long as the exporter
            _log.exception("a look at the journals failed; the next one tries again")

    def _goes_on(self) -> bool:
        return not self._stopping.is_set()


class Troubles:
    """What is wrong where; each trouble is logged when it begins or changes, and when it is over."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def note(self, where: str, error: Exception) -> None:
        """Something does not work there."""
        said = getattr(error, "strerror", None) or str(error)
        if self._said.get(where) != said:
            self._said[where] = said
            _log.warning("%s: %s; it is tried again", where, said)

    def over(self, where: str) -> None:
        """It works there."""
        if self._said.pop(where, None) is not None:
            _log.warning("%s: works again", where)


def look(
    service: Service,
    directories: Sequence[Path],
    troubles: Troubles | None = None,
    go_on: Callable[[], bool] = lambda: True,
    read: Read | None = None,
) -> None:
    """Take in once what was appended to the journals, as long as `go_on` says so.

    A file in trouble is left for later. Where the store takes nothing, so are the rest. `read` are the
    journals as they were when they had been read to their ends; they are noted there for the next look.
    """
    troubles = troubles or Troubles()
    before = {} if read is None else dict(read)
    if read is not None:
        read.clear()
    try:
        for directory in directories:
            for path, status in _journals(directory, troubles):
                seen = _state(status)
                is_read = before.get(path) == seen or _follow_if_possible(service, path, troubles, go_on)
                if is_read and read is not None:
                    read[path] = seen
    except StoreError as error:
        troubles.note("watching", error)
    else:
        troubles.over("watching")


def _state(status: os.stat_result) -> State:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _journals(directory: Path, troubles: Troubles) -> Iterator[tuple[Path, os.stat_result]]:
    """The journals below a directory; what of it cannot be looked into is told, and looked at again."""

    def note(error: OSError) -> None:
        troubles.note(name_as_text(str(error.filename)), error)

    for folder, folders, names in os.walk(directory, onerror=note):
        troubles.over(name_as_text(folder))
        folders.sort()
        for name in sorted(names):
            if name.endswith(SUFFIX):
                path = Path(folder, name)
                with suppress(OSError):  # it is gone, or a link to nowhere
                    status = path.stat()
                    if stat.S_ISREG(status.st_mode):
                        yield path, status


def _follow_if_possible(service: Service, path: Path, troubles: Troubles, go_on: Callable[[], bool]) -> bool:
    """Whether the journal was read to its end, as far as it has one."""
    try:
        _follow(service, path, go_on)
    except (OSError, BusyError) as error:
        troubles.note(name_as_text(str(path)), error)
        return False
    troubles.over(name_as_text(str(path)))
    return go_on()


def _follow(service: Service, path: Path, go_on: Callable[[], bool]) -> None:
    with path.open("rb") as journal:
        reached = _where_to_go_on(service, path, os.fstat(journal.fileno()))
        journal.seek(reached.offset)
        while go_on() and (text := _whole_lines(journal.read(CHUNK_BYTES))):
            _take(service, path, text, reached.lines + 1)
            reached = JournalOffset(
                reached.inode, reached.offset + len(text), reached.lines + text.count(b"\n")
            )
            service.store.set_journal_offset(name_as_text(str(path)), reached)
            journal.seek(reached.offset)


def _where_to_go_on(service: Service, path: Path, status: os.stat_result) -> JournalOffset:
    """Where the last look ended; the beginning for a new, replaced or shortened file."""
    reached = service.store.journal_offset(name_as_text(str(path)))
    if reached is None or reached.inode != status.st_ino or reached.offset > status.st_size:
        return JournalOffset(status.st_ino, 0, 0)
    return reached


def _whole_lines(chunk: bytes) -> bytes:
    r"""The part of a chunk up to its last line end; all of it where a line fills the whole chunk.

    >>> _whole_lines(b"one\ntwo\nthr")
    b'one\ntwo\n'
    """
    end = chunk.rfind(b"\n") + 1
    return chunk[:end] if end or len(chunk) < CHUNK_BYTES else chunk


def _take(service: Service, path: Path, text: bytes, first_line: int) -> None:
    limits = replace(service.settings.limits, segment_lines=CHUNK_BYTES)
    lines, rejected = read_lines(text, limits, first_line)
    service.ingest_lines(lines, len(rejected))
    if rejected:
        where = name_as_text(str(path))
        _log.warning("%s: %d lines are no events; %s", where, len(rejected), _words(rejected[0]))


def _words(rejected: Rejected) -> str:
    return f"line {rejected.line}: {rejected.reason}"
