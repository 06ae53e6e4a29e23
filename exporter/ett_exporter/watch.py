"""Following the journals of a directory: ingest for machines without a network.

One thread looks at every `*.jsonl` file under the watched directories, reads what was appended,
and remembers in the store how far it came. A crash between ingest and remembering reads some
lines again; they count once. A last line without its end waits for the rest.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ett_exporter.errors import StoreError
from ett_exporter.ingest import Rejected, read_lines
from ett_exporter.service import BusyError, Service
from ett_exporter.store import JournalOffset

CHUNK_BYTES = 1024 * 1024

_log = logging.getLogger("ett_exporter.watch")


class Watcher:
    """Looks at directories every `interval_s` seconds in a thread of its own, from `start` to `stop`."""

    def __init__(self, service: Service, directories: Sequence[Path], interval_s: float) -> None:
        self._service = service
        self._directories = directories
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ett-watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End after the current look."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            look(self._service, self._directories)
            if self._stopping.wait(self._interval_s):
                return


def look(service: Service, directories: Sequence[Path]) -> None:
    """Take in once what was appended to the journals; a file in trouble is logged and left for later."""
    for directory in directories:
        for path in _journals(directory):
            _follow_or_log(service, path)


def _journals(directory: Path) -> Sequence[Path]:
    """The journals below a directory; none, until the next look, where it changes under the reader."""
    try:
        return sorted(path for path in directory.rglob("*.jsonl") if path.is_file())
    except OSError as error:
        _log.warning("%s: %s", directory, error)
        return ()


def _follow_or_log(service: Service, path: Path) -> None:
    try:
        _follow(service, path)
    except (OSError, BusyError, StoreError) as error:
        _log.warning("%s: %s", path, error)


def _follow(service: Service, path: Path) -> None:
    with path.open("rb") as journal:
        reached = _where_to_go_on(service, path, os.fstat(journal.fileno()))
        journal.seek(reached.offset)
        while text := _whole_lines(journal.read(CHUNK_BYTES)):
            _take(service, path, text, reached.lines + 1)
            reached = JournalOffset(
                reached.inode, reached.offset + len(text), reached.lines + text.count(b"\n")
            )
            service.store.set_journal_offset(str(path), reached)
            journal.seek(reached.offset)


def _where_to_go_on(service: Service, path: Path, status: os.stat_result) -> JournalOffset:
    """Where the last look ended; the beginning for a new, replaced or shortened file."""
    reached = service.store.journal_offset(str(path))
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
        _log.warning("%s: %d lines are no events; %s", path, len(rejected), _words(rejected[0]))


def _words(rejected: Rejected) -> str:
    return f"line {rejected.line}: {rejected.reason}"
