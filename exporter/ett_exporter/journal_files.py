"""Journals on a disk: what is new in one since it was read last, in pieces of whole lines.

A journal that is written (`*.jsonl`) is read on from where the last look ended, and a last line without
its end waits for the rest. One that was packed (`*.jsonl.gz`) is read whole, once: nobody adds to it.
Whether a file is still the one that was read, a fingerprint of what was read tells: a new file may have
the name, the inode and no less bytes.
Any thread may call; the caller looks at a file from one thread at a time.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

from ett_exporter.store import JournalOffset

CHUNK_BYTES = 1024 * 1024
PRINT_BYTES = 1024
"""Of what was read, the first and the last bytes by which it is known again."""
PACKED = ".jsonl.gz"
SUFFIXES = (".jsonl", PACKED)


class DamagedError(ValueError):
    """A packed journal breaks off, or is none; what came before that was given."""


class Piece(NamedTuple):
    """Some whole lines of a journal, the number of the first, and how far it is read with them."""

    text: bytes
    first_line: int
    reached: JournalOffset


def is_packed(path: str) -> bool:
    """Whether a journal is one that nobody adds to."""
    return path.endswith(PACKED)


def new_pieces(path: str, reached: JournalOffset | None) -> Iterator[Piece]:
    """What of a journal is beyond `reached`; all of it where that was another file.

    Raises:
        OSError: it cannot be read.
        DamagedError: it is packed, and not whole.
    """
    with Path(path).open("rb") as file:
        status = os.fstat(file.fileno())
        if not is_packed(path):
            yield from _appended(file, _beginning(file, reached, status))
        elif reached is None or reached.offset != status.st_size or not _is_of(file, reached, status):
            yield from _packed(file, status)


def fingerprint(file: BinaryIO, size: int) -> int:
    """What tells the first `size` bytes of a file from those of another: a checksum of both their ends."""
    number, length = file.fileno(), min(size, PRINT_BYTES)
    return crc32(os.pread(number, length, size - length), crc32(os.pread(number, length, 0)))


def _is_of(file: BinaryIO, reached: JournalOffset, status: os.stat_result) -> bool:
    """Whether what was read is the beginning of this file; without a fingerprint its inode tells."""
    if reached.inode != status.st_ino or reached.offset > status.st_size:
        return False
    return reached.fingerprint in (None, fingerprint(file, reached.offset))


def _beginning(file: BinaryIO, reached: JournalOffset | None, status: os.stat_result) -> JournalOffset:
    """Where the last look ended; the beginning of a file that is new, replaced, shortened or written anew."""
    if reached is None or not _is_of(file, reached, status):
        return JournalOffset(status.st_ino, 0, 0)
    return reached


def _appended(file: BinaryIO, at: JournalOffset) -> Iterator[Piece]:
    file.seek(at.offset)
    while text := _whole_lines(file.read(CHUNK_BYTES)):
        first_line, end = at.lines + 1, at.offset + len(text)
        at = JournalOffset(at.inode, end, at.lines + text.count(b"\n"), fingerprint(file, end))
        yield Piece(text, first_line, at)
        file.seek(at.offset)


def _packed(file: BinaryIO, status: os.stat_result) -> Iterator[Piece]:
    """All of it, read only with its last piece; a last line without its end is one of its lines."""
    at, rest = JournalOffset(status.st_ino, 0, 0), b""
    for chunk in _unpacked(file):
        text = _whole_lines(rest + chunk)
        rest = (rest + chunk)[len(text) :]
        if text:
            yield Piece(text, at.lines + 1, at)
            at = JournalOffset(at.inode, 0, at.lines + text.count(b"\n"))
    lines, whole = at.lines + bool(rest), fingerprint(file, status.st_size)
    yield Piece(rest, at.lines + 1, JournalOffset(at.inode, status.st_size, lines, whole))


def _unpacked(file: BinaryIO) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=file) as stream:
            while chunk := stream.read1(CHUNK_BYTES):  # one that is broken gives what came before
                yield chunk
    except EOFError as error:
        raise DamagedError("it ends in the middle of its gzip stream") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DamagedError(f"it is no gzip stream: {error}") from error


def _whole_lines(chunk: bytes) -> bytes:
    r"""The part of a chunk up to its last line end; all of it where a line fills the whole chunk.

    >>> _whole_lines(b"one\ntwo\nthr")
    b'one\ntwo\n'
    """
    end = chunk.rfind(b"\n") + 1
    return chunk[:end] if end or len(chunk) < CHUNK_BYTES else chunk
