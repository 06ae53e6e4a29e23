"""Reading recorded events from files, directories and standard input; the only I/O is here.

One thread reads a file at a time, in pieces that fit the caches of a processor, so that a long
journal never lies in memory as a whole.
"""

from __future__ import annotations

import gc
import gzip
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ett_core.lines import BadLine, Decoded, decode_chunks
from ett_core.plain_text import name_as_text
from ett_core.reasons import reason_within

PIECE_BYTES = 1 << 18
STDIN = "-"
SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
ERRORS = "error.json"
"""How the files end in which torch keeps the error of a process; the launcher has one beside the journals."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the garbage collector: events and accounts hold no cycles that it could find."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_journals(
    names: Iterable[str], *, stdin: Callable[[], BinaryIO] = lambda: sys.stdin.buffer
) -> Iterator[Decoded]:
    """The events of journals, in pieces, in the order of the names.

    Args:
        names: files, directories (their `.jsonl` and `.json` files, at any depth) or `-`; `.gz` is unpacked.
        stdin: gives the stream that `-` stands for.

    What cannot be read is one bad line, number 0, with the system's reason.
    """
    for name in names:
        if name == STDIN:
            yield from decode_chunks(_pieces(stdin().read), "<stdin>")
        else:
            yield from _read_path(name)


def _read_path(name: str) -> Iterator[Decoded]:
    path = Path(name)
    try:
        status = os.stat(name)  # noqa: PTH116 - the path of an empty name would be the working directory
    except OSError as error:
        yield _unread(name or "''", reason_within(error) if name else "an empty name is no file")
        return
    if stat.S_ISDIR(status.st_mode):
        yield from _read_directory(path)
    elif stat.S_ISREG(status.st_mode) and not status.st_size:
        yield _unread(name, "the file is empty")
    else:
        yield from _read_file(path)


def _read_directory(directory: Path) -> Iterator[Decoded]:
    """All journals below; a part of it that cannot be read is told."""
    errors: list[OSError] = []
    files = _journals_below(directory, errors.append)
    unread = [BadLine(name_as_text(str(error.filename)), 0, reason_within(error)) for error in errors]
    yield Decoded((), unread)
    if not files and not errors:
        yield _unread(str(directory), "no journal (*.jsonl, *.json) in this directory")
    for file in files:
        yield from _read_file(file)


def _read_file(file: Path) -> Iterator[Decoded]:
    try:
        yield from decode_chunks(_pieces_of(file), name_as_text(str(file)))
    except (OSError, EOFError, zlib.error) as error:
        yield _unread(str(file), reason_within(error))


def _pieces_of(file: Path) -> Iterator[bytes]:
    if file.suffix == ".gz":
        with gzip.open(file) as packed:
            yield from _pieces(packed.read1)  # of one that breaks off all that came before
    else:
        with file.open("rb") as plain:
            yield from _pieces(plain.read)


def _journals_below(directory: Path, on_error: Callable[[OSError], None]) -> Sequence[Path]:
    paths = (
        Path(folder, name) for folder, _, names in os.walk(directory, onerror=on_error) for name in names
    )
    named = (path for path in paths if path.name.endswith(SUFFIXES) and not path.name.endswith(ERRORS))
    return sorted(path for path in named if path.is_file())


def _unread(source: str, reason: str) -> Decoded:
    return Decoded((), [BadLine(name_as_text(source), 0, reason)])


def _pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while piece := read(PIECE_BYTES):
        yield piece
