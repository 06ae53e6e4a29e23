"""Reading logs of jobs from files, directories and standard input; the only I/O of `ett diagnose`.

Plain files are read whole up to a limit, of larger ones the beginning and the end; a directory
gives its files at any depth, each with the rank that its name tells; journals give their words.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO

import msgspec

from ett_cli.told import as_log, events_of, is_journal
from ett_core.events import AnyEvent
from ett_core.plain_text import name_as_text
from ett_core.reasons import reason_of

STDIN = "-"
READ_LIMIT = 64 * 1024 * 1024
"""Bytes read of one log; of a longer one half from its beginning and half from its end."""
FILES_LIMIT = 10_000
CUT = b"\n"
_RANK_IN_NAME = re.compile(
    r"(?:^|[^a-z])(?:rank|trainer|default|worker|task|proc)[-_.]?(\d{1,6})(?:\D|$)", re.IGNORECASE
)
_RANK_FOLDER = re.compile(r"attempt_\d+/(\d{1,6})/(?:stdout|stderr|error)\b")
_NOT_TEXT = frozenset(
    {".pt", ".pth", ".distcp", ".bin", ".safetensors", ".so", ".png", ".jpg", ".zip", ".tar", ".sqlite"}
)


class Log(msgspec.Struct, frozen=True):
    """One log: its name, its bytes, and what its name and age tell of its lines.

    Of a journal the bytes are what was said in it in words; `events` are all that it holds.
    """

    name: str
    data: bytes
    rank: int | None = None
    date: datetime | None = None
    events: Sequence[AnyEvent] = ()


class Unread(msgspec.Struct, frozen=True):
    """A path that gave nothing, and why."""

    name: str
    reason: str


def read_logs(
    names: Iterable[str], *, stdin: Callable[[], BinaryIO] = lambda: sys.stdin.buffer
) -> Iterator[Log | Unread]:
    """The logs behind `names`: files, directories (their files, at any depth) or `-`."""
    for name in names:
        if name == STDIN:
            yield Log("<stdin>", stdin().read(READ_LIMIT))
        elif not name:
            yield Unread("''", "an empty name is no file")
        elif Path(name).is_dir():
            yield from _read_directory(Path(name))
        else:
            yield _read_file(Path(name))


def rank_of(name: str) -> int | None:
    """The rank that the name of a log tells, if it does.

    >>> rank_of("run/rank_3.log"), rank_of("x/attempt_0/12/stderr.log"), rank_of("train.log")
    (3, 12, None)
    """
    posix = name.replace(os.sep, "/")
    found = _RANK_FOLDER.search(posix) or _RANK_IN_NAME.search(posix.rpartition("/")[2])
    return int(found[1]) if found else None


def _read_directory(directory: Path) -> Iterator[Log | Unread]:
    found = 0
    for root, folders, files in os.walk(directory):
        folders.sort()
        for file in sorted(files):
            path = Path(root, file)
            if path.suffix in _NOT_TEXT or not path.is_file():
                continue
            found += 1
            if found > FILES_LIMIT:
                yield Unread(
                    name_as_text(str(directory)), f"holds more than {FILES_LIMIT} files; the rest is not read"
                )
                return
            yield _read_file(path)
    if not found:
        yield Unread(name_as_text(str(directory)), "there is no file in this directory")


def _read_file(path: Path) -> Log | Unread:
    name = name_as_text(str(path))
    try:
        data = _gunzipped(path) if path.suffix == ".gz" else _both_ends(path)
        date = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    except (OSError, EOFError, zlib.error) as error:
        return Unread(name, reason_of(error))
    midnight = date.replace(hour=0, minute=0, second=0, microsecond=0)
    events = events_of(data) if is_journal(data) else []
    if events:
        data = as_log(events, has_output=_has_output(path))
    return Log(name, data, rank_of(name), midnight, events)


def _has_output(journal: Path) -> bool:
    """Whether the output that `ett run` keeps beside its journal is there to be read itself."""
    writer = journal.name.partition("-")[0]
    return journal.with_name(f"{writer}.stderr.log").exists()


def _both_ends(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(READ_LIMIT // 2)
        rest = os.fstat(file.fileno()).st_size - len(data)
        if rest > READ_LIMIT // 2:
            file.seek(-READ_LIMIT // 2, os.SEEK_END)
            data += CUT
        return data + file.read(READ_LIMIT // 2)


def _gunzipped(path: Path) -> bytes:
    with gzip.open(path) as file:
        return file.read(READ_LIMIT)
