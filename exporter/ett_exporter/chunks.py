"""Jobs in chunks, so that what did not change is neither written nor compressed again.

A chunk holds the lines of up to `CHUNK_JOBS` jobs, joined by family, and of each family the
piece of a gzip stream, made when first asked for. Held by one thread at a time.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence

from ett_core.metrics import FAMILIES
from ett_exporter.breath import breathe
from ett_exporter.text import JobText, Sample

CHUNK_JOBS = 1024
"""So many that the text of a family of one line a job is large enough to be sent as it is."""
JOB_FAMILIES = tuple(name for name, family in FAMILIES.items() if family.labels[:1] == ("job_id",))
_NO_LINES = [b""] * len(JOB_FAMILIES)
_ROWS = {family: row for row, family in enumerate(JOB_FAMILIES)}
GZIP_LEVEL = 1
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK = b"\x03\x00"


class Chunk:
    """The lines of some jobs: a row a family, a place in each a job."""

    def __init__(self) -> None:
        self._lines: list[Sequence[bytes]] = []
        """Of the job at each place, by family."""
        self._left: list[int] = []
        """Places that jobs have left."""
        self.changes = 0
        """How often lines of jobs were put since the last `refresh`."""
        self.texts = [b""] * len(JOB_FAMILIES)
        """Of each family, as of the last `refresh`."""
        self._pieces = [b""] * len(JOB_FAMILIES)
        """Of each family; empty where it was not asked for since its text changed."""

    @property
    def has_room(self) -> bool:
        """Whether another job can take a place."""
        return bool(self._left) or len(self._lines) < CHUNK_JOBS

    @property
    def is_empty(self) -> bool:
        """Whether no job has a place."""
        return len(self._left) == len(self._lines)

    def take(self) -> int:
        """A place for one more job."""
        if self._left:
            return self._left.pop()
        self._lines.append(_NO_LINES)
        return len(self._lines) - 1

    def leave(self, place: int) -> None:
        """Give a place back."""
        self.put(place, _NO_LINES)
        self._left.append(place)

    def put(self, place: int, lines: Sequence[bytes]) -> None:
        """Let these be the lines of the job at a place, by family."""
        self._lines[place] = lines
        self.changes += 1

    def piece(self, family: int) -> bytes:
        """The text of a family as a piece of a gzip stream."""
        piece = self._pieces[family]
        if not piece and self.texts[family]:
            piece = self._pieces[family] = gzip_piece(self.texts[family])
        return piece

    def refresh(self) -> bool:
        """Join the lines anew where a job changed; whether one did."""
        if not self.changes:
            return False
        self.changes = 0
        for family, text in enumerate(map(b"".join, zip(*self._lines, strict=True))):
            if text != self.texts[family]:
                self.texts[family] = text
                self._pieces[family] = b""
        return True


class Seat:
    """Where the lines of a job are, and what they were made of last."""

    __slots__ = ("chunk", "place", "series", "text")

    def __init__(self, job_id: str, chunk: Chunk) -> None:
        self.chunk = chunk
        self.place = chunk.take()
        self.text = JobText(job_id, JOB_FAMILIES)
        self.series = 0


class Chunks:
    """All jobs that are exposed; each stays in its chunk as long as it is there."""

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []
        self._seats: dict[str, Seat] = {}
        self._latest = Chunk()
        """Where lines were put last."""
        self.series = 0
        """Series of all jobs."""

    def series_of(self, job_id: str) -> int:
        """Series of a job that is there."""
        return self._seats[job_id].series

    def put(self, job_id: str, samples: Sequence[Sample]) -> None:
        """Make the lines of a job from samples without its `job_id`; it joins where it is new."""
        seat = self._seats.get(job_id)
        if seat is None:
            seat = self._seats[job_id] = Seat(job_id, self._chunk_with_room())
        if seat.chunk is not self._latest:
            self._leave(seat.chunk)
        seat.chunk.put(seat.place, seat.text.update(samples))
        series = len(samples)
        self.series += series - seat.series
        seat.series = series

    def _leave(self, for_chunk: Chunk) -> None:
        """Join the lines of a chunk of which most are new while they are at hand in the processor."""
        if self._latest.changes > CHUNK_JOBS // 2:
            self._latest.refresh()
        self._latest = for_chunk

    def drop(self, job_id: str) -> None:
        """Take a job out."""
        seat = self._seats.pop(job_id)
        self.series -= seat.series
        seat.chunk.leave(seat.place)
        if seat.chunk.is_empty:
            self._chunks.remove(seat.chunk)

    def refresh(self) -> set[str]:
        """Join what changed; returns the families that have lines."""
        for chunk in self._chunks:
            if chunk.refresh():
                breathe()
        texts = zip(*(chunk.texts for chunk in self._chunks), strict=True)
        return {family for family, of_chunks in zip(JOB_FAMILIES, texts, strict=False) if any(of_chunks)}

    def texts(self, family: str) -> Iterator[bytes]:
        """The lines of a family, chunk by chunk."""
        row = _ROWS.get(family)
        return iter(()) if row is None else (chunk.texts[row] for chunk in self._chunks)

    def pieces(self, family: str) -> Iterator[bytes]:
        """The pieces of a gzip stream of a family, chunk by chunk."""
        row = _ROWS.get(family)
        return iter(()) if row is None else (chunk.piece(row) for chunk in self._chunks)

    def _chunk_with_room(self) -> Chunk:
        for chunk in reversed(self._chunks):
            if chunk.has_room:
                return chunk
        self._chunks.append(Chunk())
        return self._chunks[-1]


def gzip_piece(text: bytes) -> bytes:
    """A piece of a gzip stream that refers to nothing before it, so that it can stand anywhere in one."""
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)


def gzip_stream(pieces: Iterable[bytes], texts: Iterable[bytes]) -> list[bytes]:
    """One gzip stream of pieces, in parts; `texts` are what the pieces were made of (RFC 1952).

    One member, not one a piece: many clients read no further than the first member.

    >>> import gzip
    >>> gzip.decompress(b"".join(gzip_stream([gzip_piece(b"a"), gzip_piece(b"b")], [b"a", b"b"])))
    b'ab'
    """
    crc, size = 0, 0
    for text in texts:
        crc = zlib.crc32(text, crc)
        size += len(text)
    trailer = struct.pack("<II", crc, size & 0xFFFFFFFF)
    return [_GZIP_HEAD, *pieces, _LAST_BLOCK + trailer]
