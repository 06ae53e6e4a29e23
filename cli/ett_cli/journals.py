"""Reading recorded events from files, directories and standard input; the only I/O is here.

One thread reads a file at a time, in pieces that fit the caches of a processor, so that a long
journal never lies in memory as a whole.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ett_core.lines import BadLine, Decoded, decode_chunks

PIECE_BYTES = 1 << 18
STDIN = "-"
SUFFIXES = (".jsonl", ".json")


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
        names: files, directories (their `.jsonl` and `.json` files, at any depth) or `-`.
        stdin: gives the stream that `-` stands for.

    A file that cannot be read is one bad line, number 0, with the system's reason.
    """
    for name in names:
        if name == STDIN:
            yield from decode_chunks(_pieces(stdin()), "<stdin>")
        else:
            yield from _read_path(Path(name))


def _read_path(path: Path) -> Iterator[Decoded]:
    files = _journals_below(path) if path.is_dir() else [path]
    if not files:
        yield _unread(path, "no .jsonl or .json file in this directory")
    for file in files:
        yield from _read_file(file)


def _read_file(file: Path) -> Iterator[Decoded]:
    try:
        with file.open("rb") as stream:
            yield from decode_chunks(_pieces(stream), str(file))
    except OSError as error:
        yield _unread(file, error.strerror or str(error))


def _journals_below(folder: Path) -> Sequence[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())


def _unread(path: Path, reason: str) -> Decoded:
    return Decoded((), [BadLine(str(path), 0, reason)])


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    while piece := stream.read(PIECE_BYTES):
        yield piece
