"""What was ingested, kept on disk: a segment that is acknowledged survives `kill -9`.

One process owns an SQLite file (a lock beside it says so). Any thread may call; writes take one
lock and one transaction each, and return when the data is durable (WAL, synchronous=FULL).
Readers see only committed data and never wait for the writer.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, delete, insert, select
from sqlalchemy.exc import SQLAlchemyError

from ett_core.events import AnyEvent, encode
from ett_core.lines import decode_lines
from ett_core.sequences import Sequences
from ett_exporter.database import StoreError, lock_file, open_engine, reason, release, sqlalchemy_url
from ett_exporter.ingest import Line, Segment
from ett_exporter.schema import jobs, journal_offsets, segments, writers

COMPRESSION_LEVEL = 6
READ_ROWS = 200

_log = logging.getLogger("ett_exporter.store")


class KnownJob(msgspec.Struct, frozen=True, gc=False):
    """A job of the store, and when its latest segment came."""

    job_id: str
    last_received_at: float


class JournalOffset(msgspec.Struct, frozen=True, gc=False):
    """How far a watched journal has been read: bytes and lines of the file with this inode."""

    inode: int
    offset: int
    lines: int


class Store:
    """The database of one exporter; `close` it at the end.

    Raises:
        StoreError: the database cannot be opened, belongs to a running exporter, or is of a
            later version.
    """

    def __init__(self, database: str) -> None:
        url = sqlalchemy_url(database)
        self._file_lock = lock_file(url)
        self._write_lock = threading.Lock()
        try:
            self._engine = open_engine(url)
        except StoreError:
            release(self._file_lock)
            raise

    def close(self) -> None:
        """Release the file."""
        self._engine.dispose()
        release(self._file_lock)

    def append(self, segment: Segment, received_at: float) -> list[AnyEvent]:
        """Keep the lines of `segment` that are not held yet; returns their events, once durable.

        Raises:
            StoreError: it could not be written; nothing of it is kept.
        """
        with self._writing() as connection:
            held = _held(connection, segment)
            fresh = [line for line in segment.lines if held.add(line.event.seq)]
            if fresh:
                _note_job(connection, segment.job_id, received_at)
                _note_held(connection, segment, held)
                connection.execute(insert(segments).values(_row(segment, fresh, received_at)))
        return [line.event for line in fresh]

    def clock_offset_s(self, job_id: str, writer: str) -> float | None:
        """The offset last recorded of a writer's clock."""
        query = select(writers.c.clock_offset_s).where(_is(job_id, writer))
        with self._reading() as connection:
            return connection.execute(query).scalar_one_or_none()

    def record_clock_offset(self, job_id: str, writer: str, offset_s: float) -> None:
        """Remember the offset that was recorded as an event."""
        with self._writing() as connection:
            connection.execute(writers.update().where(_is(job_id, writer)).values(clock_offset_s=offset_s))

    def jobs(self) -> list[KnownJob]:
        """All jobs, in the order in which they were first heard of."""
        query = select(jobs.c.job_id, jobs.c.last_received_at).order_by(jobs.c.first_received_at)
        with self._reading() as connection:
            return [KnownJob(*row) for row in connection.execute(query)]

    def events(self, job_id: str, attempt: int | None = None) -> Iterator[list[AnyEvent]]:
        """The events of a job (of one attempt), a list a segment, in the order of their arrival.

        A line that this version no longer takes for an event is logged and left out.
        """
        for row_id, blob in self._blobs(_of_job(job_id, attempt)):
            found = decode_lines(zlib.decompress(blob).split(b"\n"), f"segment {row_id}")
            for bad in found.bad:
                _log.warning("left out of job %s: %s", job_id, bad)
            yield [e for e in found.events if attempt is None or e.attempt == attempt]

    def journal_offset(self, path: str) -> JournalOffset | None:
        """How far the journal at `path` has been read."""
        columns = (journal_offsets.c.inode, journal_offsets.c.offset, journal_offsets.c.lines)
        with self._reading() as connection:
            row = connection.execute(select(*columns).where(journal_offsets.c.path == path)).first()
        return JournalOffset(*row) if row else None

    def set_journal_offset(self, path: str, reached: JournalOffset) -> None:
        """Remember how far the journal at `path` has been read."""
        with self._writing() as connection:
            connection.execute(delete(journal_offsets).where(journal_offsets.c.path == path))
            values = {"path": path, **msgspec.structs.asdict(reached)}
            connection.execute(insert(journal_offsets).values(values))

    def _blobs(self, query: Select[int, bytes]) -> Iterator[tuple[int, bytes]]:
        """The blobs of a query, read in pages so that no read transaction stays open long."""
        last_id = 0
        while True:
            page = query.where(segments.c.id > last_id).order_by(segments.c.id).limit(READ_ROWS)
            with self._reading() as connection:
                rows = connection.execute(page).all()
            if not rows:
                return
            yield from ((row[0], row[1]) for row in rows)
            last_id = rows[-1][0]

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreError(f"cannot read the database: {reason(error)}") from error

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        try:
            with self._write_lock, self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreError(f"cannot write to the database: {reason(error)}") from error


def raw_line(of: AnyEvent) -> Line:
    """An event of the exporter itself as a line to keep."""
    return Line(0, encode(of), of)


def _held(connection: Connection, segment: Segment) -> Sequences:
    query = select(writers.c.ranges).where(_is(segment.job_id, segment.writer))
    return Sequences.parse(connection.execute(query).scalar_one_or_none() or "")


def _note_job(connection: Connection, job_id: str, received_at: float) -> None:
    known = connection.execute(
        jobs.update().where(jobs.c.job_id == job_id).values(last_received_at=received_at)
    )
    if not known.rowcount:
        moments = {"first_received_at": received_at, "last_received_at": received_at}
        connection.execute(insert(jobs).values(job_id=job_id, **moments))


def _note_held(connection: Connection, segment: Segment, held: Sequences) -> None:
    known = connection.execute(
        writers.update().where(_is(segment.job_id, segment.writer)).values(ranges=str(held))
    )
    if not known.rowcount:
        key = {"job_id": segment.job_id, "writer": segment.writer}
        connection.execute(insert(writers).values(ranges=str(held), **key))


def _row(segment: Segment, fresh: Sequence[Line], received_at: float) -> dict[str, object]:
    sequence = [line.event.seq for line in fresh]
    attempts = [line.event.attempt for line in fresh]
    return {
        "job_id": segment.job_id,
        "writer": segment.writer,
        "first_seq": min(sequence),
        "last_seq": max(sequence),
        "first_attempt": min(attempts),
        "last_attempt": max(attempts),
        "count": len(fresh),
        "received_at": received_at,
        "lines_zlib": zlib.compress(b"\n".join(line.raw for line in fresh), COMPRESSION_LEVEL),
    }


def _is(job_id: str, writer: str) -> ColumnElement[bool]:
    return (writers.c.job_id == job_id) & (writers.c.writer == writer)


def _of_job(job_id: str, attempt: int | None) -> Select[int, bytes]:
    query = select(segments.c.id, segments.c.lines_zlib).where(segments.c.job_id == job_id)
    if attempt is None:
        return query
    return query.where(segments.c.first_attempt <= attempt, segments.c.last_attempt >= attempt)
