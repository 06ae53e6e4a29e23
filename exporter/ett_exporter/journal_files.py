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
            yield from _appended(file, *_beginning(file, reached, status))
        elif _beginning(file, reached, status)[0].offset != status.st_size:
            yield from _packed(file, status)


class Ends(NamedTuple):
    """The first and the last bytes of the first `size` bytes of a file, as they were read."""

    size: int
    first: bytes
    last: bytes

    @classmethod
    def of(cls, file: BinaryIO, size: int) -> Ends:
        """Those that lie in a file now."""
        number, length = file.fileno(), min(size, PRINT_BYTES)
        return cls(size, os.pread(number, length, 0), os.pread(number, length, size - length))

    def and_then(self, text: bytes) -> Ends:
        """The same with more bytes behind them.

        >>> Ends(3, b"abc", b"abc").and_then(b"de")
        Ends(size=5, first=b'abcde', last=b'abcde')
        """
        first = (self.first + text[:PRINT_BYTES])[:PRINT_BYTES]
        last = (self.last + text[-PRINT_BYTES:])[-PRINT_BYTES:]
        return Ends(self.size + len(text), first, last)

    @property
    def fingerprint(self) -> int:
        """What tells these bytes from those of another file."""
        return crc32(self.last, crc32(self.first))


def _beginning(
    file: BinaryIO, reached: JournalOffset | None, status: os.stat_result
) -> tuple[JournalOffset, Ends]:
    """Where the last look ended; the beginning of a file that is new, replaced, shortened or written anew.

    Without a fingerprint its inode tells whether it is the same one.
    """
    if reached is not None and reached.inode == status.st_ino and reached.offset <= status.st_size:
        ends = Ends.of(file, reached.offset)
        if reached.fingerprint in (None, ends.fingerprint):
            return reached, ends
    return JournalOffset(status.st_ino, 0, 0), Ends(0, b"", b"")


def _appended(file: BinaryIO, at: JournalOffset, ends: Ends) -> Iterator[Piece]:
    file.seek(at.offset)
    while text := _whole_lines(file.read(CHUNK_BYTES)):
        first_line, ends = at.lines + 1, ends.and_then(text)
        at = JournalOffset(at.inode, ends.size, at.lines + text.count(b"\n"), ends.fingerprint)
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
    lines, whole = at.lines + bool(rest), Ends.of(file, status.st_size).fingerprint
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
