"""Following the journals of a directory: ingest for machines without a network.

One thread looks at every journal (`*.jsonl`, `*.jsonl.gz`) under the watched directories; some others read
what is new in them, so that journals of several jobs share a commit. A journal that is as it was is not
opened again, so that ten thousand of them cost one look at each; a packed one is read once it has been the
same at two looks.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ett_core.plain_text import name_as_text
from ett_core.reasons import reason_of
from ett_exporter.errors import StoreError
from ett_exporter.ingest import Rejected, read_lines
from ett_exporter.jobs import BusyError
from ett_exporter.journal_files import CHUNK_BYTES, SUFFIXES, DamagedError, Piece, is_packed, new_pieces
from ett_exporter.reached import Reached
from ett_exporter.repeated import Repeated
from ett_exporter.service import Service

READERS = 16
"""Threads that read journals: so many jobs, at most, share a commit."""

NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""A journal that is gone, and a link to nowhere or to itself."""

State: TypeAlias = tuple[int, int, int]
"""Inode, bytes and last change of a file."""
GoesOn: TypeAlias = Callable[[], bool]

_log = logging.getLogger("ett_exporter.watch")


class Known:
    """What is known of journals from one look to the next."""

    def __init__(self, service: Service) -> None:
        self.seen: dict[str, State] = {}
        """As they were at the last look."""
        self.read: dict[str, State] = {}
        """As they were when they had been read to their ends."""
        self.reached = Reached(service.store)

    def is_due(self, path: str, state: State) -> bool:
        """Whether a journal, as it is now, is to be read."""
        return self.read.get(path) != state and (not is_packed(path) or self.seen.get(path) == state)

    def saw(self, journals: dict[str, State]) -> None:
        """These are there; what is known of others is forgotten."""
        self.seen = journals
        self.read = {path: state for path, state in self.read.items() if path in journals}
        self.reached.keep_only(journals)


class Watcher:
    """Looks at directories every `interval_s` seconds in a thread of its own, from `start` to `stop`."""

    def __init__(self, service: Service, directories: Sequence[Path], interval_s: float) -> None:
        self._service = service
        self._directories = directories
        self._troubles = Troubles()
        self._known = Known(service)
        self._thread = Repeated("watcher", self._look, interval_s)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End after what is being read."""
        self._thread.stop()

    def _look(self) -> None:
        look(self._service, self._directories, self._troubles, self._thread.goes_on, self._known)


class Troubles:
    """What is wrong where; each trouble is logged when it begins or changes, and when it is over."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def note(self, where: str, error: Exception, then: str = "it is tried again") -> None:
        """Something does not work there."""
        said = reason_of(error)
        if self._said.get(where) != said:
            self._said[where] = said
            _log.warning("%s: %s; %s", where, said, then)

    def over(self, where: str) -> None:
        """It works there."""
        if self._said.pop(where, None) is not None:
            _log.warning("%s: works again", where)


def look(
    service: Service,
    directories: Sequence[Path],
    troubles: Troubles | None = None,
    go_on: GoesOn = lambda: True,
    known: Known | None = None,
) -> None:
    """Take in once what was appended to the journals, as long as `go_on` says so.

    A file in trouble is left for later. Where the store takes nothing, so are the rest. `known` goes from one
    look to the next.
    """
    troubles, known = troubles or Troubles(), known or Known(service)
    journals = {path: _state(status) for each in directories for path, status in _journals(each, troubles)}
    due = [path for path, state in journals.items() if known.is_due(path, state)]
    known.saw(journals)
    try:
        known.read |= {path: journals[path] for path in _Reading(service, troubles, go_on, known).all_of(due)}
        known.reached.write()
    except StoreError as error:
        troubles.note("watching", error)
    else:
        troubles.over("watching")


def _state(status: os.stat_result) -> State:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _journals(directory: Path, troubles: Troubles) -> Iterator[tuple[str, os.stat_result]]:
    """The journals below a directory; what of it cannot be looked into is told, and looked at again."""

    def note(error: OSError) -> None:
        if error.errno not in NOTHING_THERE or error.filename == str(directory):
            troubles.note(name_as_text(str(error.filename)), error)

    for folder, folders, names in os.walk(directory, onerror=note):
        troubles.over(name_as_text(folder))
        folders.sort()
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                path = f"{folder}/{name}"
                try:
                    status = os.stat(path)  # noqa: PTH116 - paths of ten thousand would cost as much as this
                except OSError as error:
                    if error.errno not in NOTHING_THERE:
                        note(error)
                    continue
                if stat.S_ISREG(status.st_mode):
                    yield path, status


class _Reading:
    """One look's reading of the journals that are due."""

    def __init__(self, service: Service, troubles: Troubles, go_on: GoesOn, known: Known) -> None:
        self._service = service
        self._troubles = troubles
        self._go_on = go_on
        self._reached = known.reached
        self._limits = replace(service.settings.limits, segment_lines=CHUNK_BYTES)
        self._store_failed = threading.Event()

    def all_of(self, paths: Sequence[str]) -> Iterable[str]:
        """Read journals, neighbours (often of one job) one after the other; gives those that are done.

        Raises:
            StoreError: the store takes nothing; what it took stays taken.
        """
        readers = min(READERS, len(paths))
        if not readers:
            return []
        shares = [paths[len(paths) * n // readers : len(paths) * (n + 1) // readers] for n in range(readers)]
        with ThreadPoolExecutor(readers, thread_name_prefix="ett-watch") as pool:
            return [path for done in list(pool.map(self._share, shares)) for path in done]

    def _share(self, paths: Sequence[str]) -> list[str]:
        try:
            return [path for path in paths if not self._store_failed.is_set() and self._is_read(path)]
        except StoreError:
            self._store_failed.set()
            raise

    def _is_read(self, path: str) -> bool:
        """Whether a journal was read to its end, as far as it has one."""
        name = name_as_text(path)
        try:
            for piece in new_pieces(path, self._reached.of(path)):
                if not self._go_on():
                    return False
                self._take(name, piece)
                self._reached.note(path, piece.reached)
        except DamagedError as error:
            self._troubles.note(name, error, "it is read again once it changes")
        except (OSError, BusyError) as error:
            if getattr(error, "errno", None) not in NOTHING_THERE:
                self._troubles.note(name, error)
            return False
        else:
            self._troubles.over(name)
        return True

    def _take(self, name: str, piece: Piece) -> None:
        lines, rejected = read_lines(piece.text, self._limits, piece.first_line)
        self._service.ingest_lines(lines, len(rejected))
        if rejected:
            _log.warning("%s: %d lines are no events; %s", name, len(rejected), _words(rejected[0]))


def _words(rejected: Rejected) -> str:
    return f"line {rejected.line}: {rejected.reason}"
