"""Jobs in chunks, so that what did not change is neither written nor compressed again.

A chunk holds the lines of up to `CHUNK_JOBS` jobs, joined by family, and of each family the
piece of a gzip stream, made when first asked for. Held by one thread at a time.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence

from ett_exporter.breath import breathe
from ett_exporter.text import JobText, Sample

CHUNK_JOBS = 128
GZIP_LEVEL = 1
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK = b"\x03\x00"


class Chunk:
    """The lines of some jobs: a column a family, a place in it a job."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobText] = {}
        self._places: dict[str, int] = {}
        self._free = list(range(CHUNK_JOBS - 1, -1, -1))
        self._columns: dict[str, list[bytes]] = {}
        self._changed: set[str] = set()
        self._texts: dict[str, bytes] = {}
        self._pieces: dict[str, bytes] = {}

    @property
    def is_full(self) -> bool:
        """No further job belongs here."""
        return not self._free

    @property
    def families(self) -> Iterable[str]:
        """Families that have lines."""
        return self._texts.keys()

    def put(self, job_id: str, samples: Sequence[Sample]) -> None:
        """Make the lines of a job from samples without its `job_id`; it joins where it is new."""
        if job_id not in self.jobs:
            self.jobs[job_id] = JobText((job_id,))
            self._places[job_id] = self._free.pop()
        job, place = self.jobs[job_id], self._places[job_id]
        families, before = job.families, job.lines
        job.update(samples)
        if job.families is families:
            for family, old, new in zip(families, before, job.lines, strict=True):
                if new != old:
                    self._columns[family][place] = new
                    self._changed.add(family)
        else:
            self._clear(families, place)
            for family, lines in zip(job.families, job.lines, strict=True):
                self._column(family)[place] = lines

    def drop(self, job_id: str) -> None:
        """Take a job out."""
        place = self._places.pop(job_id)
        self._free.append(place)
        self._clear(self.jobs.pop(job_id).families, place)

    def _clear(self, families: Iterable[str], place: int) -> None:
        for family in families:
            self._column(family)[place] = b""

    def _column(self, family: str) -> list[bytes]:
        """The column of a family, to be changed."""
        self._changed.add(family)
        column = self._columns.get(family)
        if column is None:
            column = self._columns[family] = [b""] * CHUNK_JOBS
        return column

    def text(self, family: str) -> bytes:
        """The lines of a family, empty where no job has any."""
        return self._texts.get(family, b"")

    def piece(self, family: str) -> bytes:
        """The same as a piece of a gzip stream."""
        text = self._texts.get(family)
        if text is None:
            return b""
        piece = self._pieces.get(family)
        if piece is None:
            piece = self._pieces[family] = gzip_piece(text)
        return piece

    def refresh(self) -> None:
        """Join the lines of the families in which something changed."""
        for family in self._changed:
            self._pieces.pop(family, None)
            text = b"".join(self._columns[family])
            if text:
                self._texts[family] = text
            else:
                del self._columns[family]
                self._texts.pop(family, None)
        self._changed.clear()


class Chunks:
    """All jobs that are exposed; each stays in its chunk as long as it is there."""

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []
        self._of_job: dict[str, Chunk] = {}
        self.series = 0
        """Series of all jobs."""

    def series_of(self, job_id: str) -> int:
        """Series of a job that is there."""
        return self._of_job[job_id].jobs[job_id].series

    def put(self, job_id: str, samples: Sequence[Sample]) -> None:
        """Make the lines of a job from samples without its `job_id`; it joins where it is new."""
        chunk = self._of_job.get(job_id)
        if chunk is None:
            chunk = self._of_job[job_id] = self._chunk_with_room()
        else:
            self.series -= chunk.jobs[job_id].series
        chunk.put(job_id, samples)
        self.series += len(samples)

    def drop(self, job_id: str) -> None:
        """Take a job out."""
        chunk = self._of_job.pop(job_id)
        self.series -= chunk.jobs[job_id].series
        chunk.drop(job_id)
        if not chunk.jobs:
            self._chunks.remove(chunk)

    def refresh(self) -> set[str]:
        """Join what changed; returns the families that have lines."""
        for chunk in self._chunks:
            chunk.refresh()
            breathe()
        return {family for chunk in self._chunks for family in chunk.families}

    def texts(self, family: str) -> Iterator[bytes]:
        """The lines of a family, chunk by chunk."""
        return (chunk.text(family) for chunk in self._chunks)

    def pieces(self, family: str) -> Iterator[bytes]:
        """The pieces of a gzip stream of a family, chunk by chunk."""
        return (chunk.piece(family) for chunk in self._chunks)

    def _chunk_with_room(self) -> Chunk:
        for chunk in reversed(self._chunks):
            if not chunk.is_full:
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
