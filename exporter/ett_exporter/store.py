"""What was ingested, kept on disk: a segment that is acknowledged survives `kill -9`.

One process owns an SQLite file (a lock beside it says so). Any thread may call; writes take one
lock and one transaction each, and return when the data is durable (WAL, synchronous=FULL).
Readers see only committed data and never wait for the writer.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from sqlalchemy import ColumnElement, Connection, Insert, Select, Table, delete, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from ett_core.events import AnyEvent, encode
from ett_core.lines import decode_lines
from ett_core.sequences import Sequences
from ett_exporter.commits import GroupCommit
from ett_exporter.database import StoreError, lock_file, open_engine, reason, release, sqlalchemy_url
from ett_exporter.ingest import Line, Segment
from ett_exporter.recent import Recent
from ett_exporter.schema import jobs, journal_offsets, segments, writers

COMPRESSION_LEVEL = 1
WRITERS_REMEMBERED = 100_000
"""Writers whose held numbers are kept in memory; those of others are read when they speak again."""
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


class _Arrival(msgspec.Struct, frozen=True):
    """A segment that is to be kept, and when it came."""

    segment: Segment
    received_at: float


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
        self._commits: GroupCommit[_Arrival, list[AnyEvent]] = GroupCommit(self._write_arrivals)
        self._held: Recent[tuple[str, str], Sequences] = Recent(WRITERS_REMEMBERED)
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

        Segments of several threads share a transaction. A line under a number that is held with
        other content is kept as well: which of the two counts, the accounting decides.

        Raises:
            StoreError: it could not be written; nothing of it is kept.
        """
        return self._commits.submit(_Arrival(segment, received_at))

    def _write_arrivals(self, arrivals: Sequence[_Arrival]) -> list[list[AnyEvent]]:
        """Keep what is new of several segments in one transaction."""
        held: dict[tuple[str, str], Sequences] = {}
        rows: list[dict[str, object]] = []
        fresh: list[list[AnyEvent]] = []
        with self._writing() as connection:
            for arrival in arrivals:
                new = self._new_lines(connection, arrival.segment, held, rows)
                fresh.append([line.event for line in new])
                if new:
                    rows.append(_row(arrival.segment, new, arrival.received_at))
            if rows:
                self._note_jobs(connection, rows)
                self._note_held(connection, {key: held[key] for key in map(_writer_of, rows)})
                connection.execute(insert(segments), rows)
        for key, sequences in held.items():
            self._held.put(key, sequences)
        return fresh

    def _new_lines(
        self,
        connection: Connection,
        segment: Segment,
        held: dict[tuple[str, str], Sequences],
        rows: Sequence[Mapping[str, object]],
    ) -> list[Line]:
        """The lines of a segment that are not held; `held` is what will be, `rows` what comes with it."""
        key = (segment.job_id, segment.writer)
        if key not in held:
            held[key] = self._held_by(connection, *key)
        new: list[Line] = []
        known: list[Line] = []
        for line in segment.lines:
            (new if held[key].add(line.event.seq) else known).append(line)
        if known:
            texts = {line.raw for line in new} | self._stored_texts(connection, key, known, rows)
            new += [line for line in known if line.raw not in texts and not texts.add(line.raw)]  # type: ignore[func-returns-value]
        return new

    def _held_by(self, connection: Connection, job_id: str, writer: str) -> Sequences:
        """A copy of the numbers that are held of a writer."""
        known = self._held.get((job_id, writer))
        if known is not None:
            return known.copy()
        query = select(writers.c.ranges).where(_is(job_id, writer))
        return Sequences.parse(connection.execute(query).scalar_one_or_none() or "")

    @staticmethod
    def _stored_texts(
        connection: Connection,
        key: tuple[str, str],
        lines: Sequence[Line],
        rows: Sequence[Mapping[str, object]],
    ) -> set[bytes]:
        """The lines that are held of a writer, of segments that overlap the numbers of `lines`."""
        numbers = [line.event.seq for line in lines]
        query = select(segments.c.lines_zlib).where(
            segments.c.job_id == key[0],
            segments.c.writer == key[1],
            segments.c.first_seq <= max(numbers),
            segments.c.last_seq >= min(numbers),
        )
        blobs = [blob for (blob,) in connection.execute(query)]
        blobs += [row["lines_zlib"] for row in rows if _writer_of(row) == key]
        return {line for blob in blobs for line in unpacked(blob).split(b"\n")}

    def _note_jobs(self, connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        latest = {row["job_id"]: row["received_at"] for row in rows}
        values = [
            {"job_id": job_id, "first_received_at": at, "last_received_at": at}
            for job_id, at in latest.items()
        ]
        statement = self._upsert(jobs, ["job_id"], ["last_received_at"])
        connection.execute(statement, values)

    def _note_held(self, connection: Connection, held: Mapping[tuple[str, str], Sequences]) -> None:
        values = [
            {"job_id": job_id, "writer": writer, "ranges": str(sequences)}
            for (job_id, writer), sequences in held.items()
        ]
        connection.execute(self._upsert(writers, ["job_id", "writer"], ["ranges"]), values)

    def _upsert(self, table: Table, keys: Sequence[str], changing: Sequence[str]) -> Insert:
        """Insert rows of a table; where the key is there, change these columns."""
        kind = postgresql.Insert if self._engine.dialect.name == "postgresql" else sqlite.Insert
        statement = kind(table)
        new = {name: statement.excluded[name] for name in changing}
        return statement.on_conflict_do_update(index_elements=list(keys), set_=new)

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
            found = decode_lines(unpacked(blob).split(b"\n"), f"segment {row_id}")
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


def packed(lines: Sequence[bytes]) -> bytes:
    """Lines as they are kept."""
    return zlib.compress(b"\n".join(lines), COMPRESSION_LEVEL)


def unpacked(blob: bytes) -> bytes:
    """What `packed` was given, joined by newlines."""
    return zlib.decompress(blob)


def _writer_of(row: Mapping[str, object]) -> tuple[str, str]:
    return str(row["job_id"]), str(row["writer"])


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
        "lines_zlib": packed([line.raw for line in fresh]),
    }


def _is(job_id: str, writer: str) -> ColumnElement[bool]:
    return (writers.c.job_id == job_id) & (writers.c.writer == writer)


def _of_job(job_id: str, attempt: int | None) -> Select[int, bytes]:
    query = select(segments.c.id, segments.c.lines_zlib).where(segments.c.job_id == job_id)
    if attempt is None:
        return query
    return query.where(segments.c.first_attempt <= attempt, segments.c.last_attempt >= attempt)
