"""What was ingested, kept on disk: a segment that is acknowledged survives `kill -9`.

One process owns an SQLite file or a PostgreSQL database; replicas may share a PostgreSQL database,
each owns a shard of its jobs and takes in segments of any (`owners.py`). Any thread may call; writes
take one lock and one transaction each, and return when the data is durable (SQLite: WAL and
synchronous=FULL; PostgreSQL: synchronous_commit). Readers see only committed data and never wait
for the writer. A connection that was lost is made anew by the next call.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    RootTransaction,
    Select,
    delete,
    insert,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from ett_core.events import AnyEvent, encode
from ett_core.lines import decode_lines
from ett_core.sequences import Sequences
from ett_exporter import closed_rows, snapshot_rows
from ett_exporter.commits import GroupCommit
from ett_exporter.database import open_engine, reason, sqlalchemy_url
from ett_exporter.errors import InDoubtError, StoreError
from ett_exporter.ingest import Line, Segment
from ett_exporter.live import JobPage
from ett_exporter.owners import FileOwnership, NoOwnership, Ownership, SessionOwnership, Shard
from ett_exporter.places import LAST_ID, Kept, Place, Snapshot, Stored
from ett_exporter.recent import Recent
from ett_exporter.schema import jobs, journal_offsets, segments, writers
from ett_exporter.statements import Statements

COMPRESSION_LEVEL = 1
WRITERS_REMEMBERED = 100_000
"""Writers whose held numbers are kept in memory; those of others are read when they speak again."""
READ_ROWS = 200
SQLITE_BUSY, SQLITE_FULL = 5, 13
LOST_STATES = ("08", "57")
"""Classes of SQLSTATE of a connection that ends."""


_log = logging.getLogger("ett_exporter.store")
_STORED = (
    segments.c.transaction_id,
    segments.c.id,
    segments.c.job_id,
    segments.c.received_at,
    segments.c.lines_zlib,
)
_TRANSACTION = select(literal_column("pg_current_xact_id()::text::bigint", BigInteger))
_OLDEST_RUNNING = select(literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", BigInteger))
_NEXT = select(literal_column("pg_snapshot_xmax(pg_current_snapshot())::text::bigint", BigInteger))


class KnownJob(msgspec.Struct, frozen=True, gc=False):
    """A job of the store, and when its latest segment came."""

    job_id: str
    last_received_at: float
    closed_through: float | None = None
    end_time: float | None = None
    """When a job that is over ended (Unix seconds)."""

    @property
    def is_closed(self) -> bool:
        """Whether its rows hold everything that ever came."""
        return self.closed_through is not None and self.closed_through >= self.last_received_at


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

    def __init__(self, database: str, shard: Shard | None = None) -> None:
        self.shard = shard
        self._write_lock = threading.Lock()
        self._commits: GroupCommit[_Arrival, Kept] = GroupCommit(self._write_arrivals, (InDoubtError,))
        self._held: Recent[tuple[str, str], Sequences] = Recent(WRITERS_REMEMBERED)
        self._offsets: Recent[tuple[str, str], tuple[float | None]] = Recent(WRITERS_REMEMBERED)
        self._offsets_lock = threading.Lock()
        self._engine, self._ownership = _opened(sqlalchemy_url(database), shard)
        self._is_postgresql = self._engine.dialect.name == "postgresql"
        self._statements = Statements(is_postgresql=self._is_postgresql)
        try:
            self._forget_the_future()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let somebody else have the database."""
        self._ownership.release()
        self._engine.dispose()

    def owns(self, job_id: str) -> bool:
        """Whether the job is one of this replica's."""
        return self.shard is None or self.shard.holds(job_id)

    def append(self, segment: Segment, received_at: float) -> Kept:
        """Keep the lines of `segment` that are not held yet; returns their events, once durable.

        Segments of several threads share a transaction. A line under a number that is held with
        other content is kept as well: which of the two counts, the accounting decides.

        Raises:
            InDoubtError: the connection was lost; it may be kept or not.
            StoreError: it could not be written; nothing of it is kept.
        """
        return self._commits.submit(_Arrival(segment, received_at))

    def _write_arrivals(self, arrivals: Sequence[_Arrival]) -> list[Kept]:
        """Keep what is new of several segments in one transaction."""
        keys = sorted({_key_of(arrival.segment) for arrival in arrivals})
        try:
            with self._writing() as connection:
                held = self._held_by(connection, keys)
                kept = self._write(connection, arrivals, held)
        except BaseException:
            for key in keys:
                self._held.drop(key)
            raise
        if self.shard is None:
            for key, sequences in held.items():
                self._held.put(key, sequences)
        return kept

    def _write(
        self,
        connection: Connection,
        arrivals: Sequence[_Arrival],
        held: Mapping[tuple[str, str], Sequences],
    ) -> list[Kept]:
        rows: list[dict[str, object]] = []
        fresh: list[list[Line]] = []
        for arrival in arrivals:
            new = self._new_lines(connection, arrival.segment, held[_key_of(arrival.segment)], rows)
            fresh.append(new)
            if new:
                rows.append(_row(arrival.segment, new, arrival.received_at))
        places = iter(self._insert(connection, rows, held)) if rows else iter(())
        return [Kept([line.event for line in new], next(places) if new else None) for new in fresh]

    def _insert(
        self,
        connection: Connection,
        rows: Sequence[dict[str, object]],
        held: Mapping[tuple[str, str], Sequences],
    ) -> list[Place]:
        transaction_id = connection.execute(_TRANSACTION).scalar_one() if self._is_postgresql else 0
        self._note_jobs(connection, rows)
        self._note_held(connection, {key: held[key] for key in sorted(set(map(_writer_of, rows)))})
        values = [{**row, "transaction_id": transaction_id} for row in rows]
        ids = connection.execute(self._statements.keep, values).scalars()
        return [Place(transaction_id, row_id) for row_id in ids]

    def _new_lines(
        self,
        connection: Connection,
        segment: Segment,
        held: Sequences,
        rows: Sequence[Mapping[str, object]],
    ) -> list[Line]:
        """The lines of a segment that are not held; `held` is what will be, `rows` what comes with it."""
        new: list[Line] = []
        known: list[Line] = []
        for line in segment.lines:
            (new if held.add(line.event.seq) else known).append(line)
        if known:
            stored = self._stored_texts(connection, _key_of(segment), known, rows)
            texts = {line.raw for line in new}.union(*(texts for _, texts in stored))
            for line in known:
                if line.raw not in texts and any(line.event.seq in numbers for numbers, _ in stored):
                    texts.add(line.raw)
                    new.append(line)
        return new

    def _held_by(
        self, connection: Connection, keys: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], Sequences]:
        """A copy of the numbers that are held of each writer.

        With other replicas beside, nobody else changes them before the transaction ends: their rows
        are locked, in one order, so that two never wait for each other.
        """
        known = {key: found.copy() for key in keys if (found := self._held.get(key)) is not None}
        missing = [key for key in keys if key not in known]
        if not missing:
            return known
        query = select(writers.c.job_id, writers.c.writer, writers.c.ranges).where(_among(missing))
        if self.shard is not None:
            blank = [{"job_id": job_id, "writer": writer, "ranges": ""} for job_id, writer in missing]
            connection.execute(self._statements.note_writer, blank)
            query = query.order_by(writers.c.job_id, writers.c.writer).with_for_update()
        ranges = {(row[0], row[1]): row[2] for row in connection.execute(query)}
        return known | {key: Sequences.parse(ranges.get(key, "")) for key in missing}

    @staticmethod
    def _stored_texts(
        connection: Connection,
        key: tuple[str, str],
        lines: Sequence[Line],
        rows: Sequence[Mapping[str, Any]],
    ) -> list[tuple[range, set[bytes]]]:
        """Of each segment of a writer that overlaps the numbers of `lines`: its numbers and its lines.

        A number that is held but lies in none of them was deleted by the retention: it comes again.
        """
        numbers = [line.event.seq for line in lines]
        c = segments.c
        query = select(c.first_seq, c.last_seq, c.lines_zlib).where(
            c.job_id == key[0], c.writer == key[1], c.first_seq <= max(numbers), c.last_seq >= min(numbers)
        )
        found = [tuple(row) for row in connection.execute(query)]
        found += [
            (row["first_seq"], row["last_seq"], row["lines_zlib"]) for row in rows if _writer_of(row) == key
        ]
        return [(range(first, last + 1), set(unpacked(blob).split(b"\n"))) for first, last, blob in found]

    def _note_jobs(self, connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        latest = {row["job_id"]: row["received_at"] for row in rows}
        values = [
            {"job_id": job_id, "first_received_at": at, "last_received_at": at}
            for job_id, at in sorted(latest.items())
        ]
        connection.execute(self._statements.note_job, values)

    def _note_held(self, connection: Connection, held: Mapping[tuple[str, str], Sequences]) -> None:
        values = [
            {"job_id": job_id, "writer": writer, "ranges": str(sequences)}
            for (job_id, writer), sequences in held.items()
        ]
        connection.execute(self._statements.note_held, values)

    def clock_offset_s(self, job_id: str, writer: str) -> float | None:
        """The offset last recorded of a writer's clock."""
        key = (job_id, writer)
        with self._offsets_lock:
            known = self._offsets.get(key)
        if known is None:
            with self._reading() as connection:
                query = select(writers.c.clock_offset_s).where(_is(*key))
                known = (connection.execute(query).scalar_one_or_none(),)
            with self._offsets_lock:
                self._offsets.put(key, known)
        return known[0]

    def record_clock_offset(self, job_id: str, writer: str, offset_s: float) -> None:
        """Remember the offset that was recorded as an event."""
        with self._writing() as connection:
            connection.execute(writers.update().where(_is(job_id, writer)).values(clock_offset_s=offset_s))
        with self._offsets_lock:
            self._offsets.put((job_id, writer), (offset_s,))

    def jobs(self) -> list[KnownJob]:
        """All jobs of this replica, in the order in which they were first heard of."""
        columns = (jobs.c.job_id, jobs.c.last_received_at, jobs.c.closed_through, jobs.c.end_time)
        query = select(*columns).order_by(jobs.c.first_received_at, jobs.c.job_id)
        with self._reading() as connection:
            known = [KnownJob(*row) for row in connection.execute(query)]
        return [job for job in known if self.owns(job.job_id)]

    def events(self, job_id: str, attempt: int | None = None) -> Iterator[list[AnyEvent]]:
        """The events of a job (of one attempt), a list a segment, in the order of their arrival.

        A line that this version no longer takes for an event is logged and left out.
        """
        for stored in self._stored(_of_job(job_id, attempt)):
            yield [e for e in stored.events if attempt is None or e.attempt == attempt]

    def segments_after(self, job_id: str, place: Place) -> Iterator[Stored]:
        """The segments of a job beyond a place."""
        return self._stored(_of_job(job_id, None).where(_beyond(place)))

    def horizon(self) -> Place:
        """A place behind which nothing comes any more: what is committed from now on is beyond it."""
        with self._reading() as connection:
            return Place(connection.execute(_OLDEST_RUNNING).scalar_one() - 1, LAST_ID)

    def arrivals(self, after: Place, most: int = READ_ROWS) -> list[tuple[Place, str]]:
        """Place and job of the next segments of any replica, in order, up to the horizon."""
        settled = segments.c.transaction_id < _OLDEST_RUNNING.scalar_subquery()
        query = select(segments.c.transaction_id, segments.c.id, segments.c.job_id)
        query = query.where(_beyond(after), settled)
        query = query.order_by(segments.c.transaction_id, segments.c.id).limit(most)
        with self._reading() as connection:
            return [(Place(row[0], row[1]), row[2]) for row in connection.execute(query)]

    def segment(self, segment_id: int) -> Stored | None:
        """One segment; None where it was deleted."""
        query = select(*_STORED).where(segments.c.id == segment_id)
        return next(self._stored(query), None)

    def save_snapshots(self, made: Sequence[Snapshot], code: str) -> None:
        """Keep snapshots that this code has made in the place of older ones."""
        with self._writing() as connection:
            snapshot_rows.write(connection, self._statements.save_snapshot, made, code)

    def snapshot(self, job_id: str, code: str) -> Snapshot | None:
        """The last snapshot of a job; None where other code than `code` has made it."""
        with self._reading() as connection:
            return snapshot_rows.read(connection, job_id, code)

    def close_job(self, page: JobPage, through: float, made: Snapshot | None, code: str) -> bool:
        """Write the rows of a job that is over, with its last snapshot, in the place of older ones.

        `through` is `last_received_at` as it was when `page`, with its whole timeline, was made. Returns
        whether it was written: not where something has come since.
        """
        with self._writing() as connection:
            written = closed_rows.write(connection, page, through)
            if written and made is not None:
                snapshot_rows.write(connection, self._statements.save_snapshot, [made], code)
            return written

    def closed_job(self, job_id: str) -> JobPage | None:
        """The page of a job whose rows were written, with its whole timeline."""
        with self._reading() as connection:
            return closed_rows.read(connection, job_id)

    def prunable(self, before: float, ended_before: float) -> list[str]:
        """Closed jobs that ended before a moment, of which nothing came since another (Unix seconds)."""
        with self._reading() as connection:
            return list(filter(self.owns, closed_rows.prunable(connection, before, ended_before)))

    def begin_pruning(self, job_id: str, before: float) -> bool:
        """Note that the rows of a job are all that will be left of it; False where something came."""
        with self._writing() as connection:
            return closed_rows.begin_pruning(connection, job_id, before)

    def half_pruned(self) -> list[str]:
        """Jobs of which segments are to be deleted."""
        with self._reading() as connection:
            return list(filter(self.owns, closed_rows.half_pruned(connection)))

    def prune(self, job_id: str, most: int = READ_ROWS) -> int:
        """Delete some segments of a job that is being pruned; returns their number."""
        with self._writing() as connection:
            return closed_rows.prune(connection, job_id, most)

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

    def _stored(self, query: Select[Any]) -> Iterator[Stored]:
        """The segments of a query, read in pages so that no read transaction stays open long."""
        last_id = -1
        while True:
            page = query.where(segments.c.id > last_id).order_by(segments.c.id).limit(READ_ROWS)
            with self._reading() as connection:
                rows = connection.execute(page).all()
            for transaction_id, row_id, job_id, received_at, blob in rows:
                events = _events_of(row_id, job_id, blob)
                yield Stored(Place(transaction_id, row_id), job_id, received_at, events)
                last_id = row_id
            if len(rows) < READ_ROWS:
                return

    def _forget_the_future(self) -> None:
        """Places of another server, of which this database is a copy, mean nothing here."""
        if not self._is_postgresql:
            return
        with self._writing() as connection:
            next_id = connection.execute(_NEXT).scalar_one()
            strange = segments.c.transaction_id >= next_id
            changed = connection.execute(segments.update().where(strange).values(transaction_id=0)).rowcount
            snapshot_rows.forget(connection, None if changed else next_id)

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
            with self._write_lock, self._engine.connect() as connection:
                with _rolled_back(connection.begin()) as transaction:
                    self._ownership.check(connection)
                    yield connection
                _commit(transaction)
        except SQLAlchemyError as error:
            raise StoreError(f"cannot write to the database: {reason(error)}") from error


@contextmanager
def _rolled_back(transaction: RootTransaction) -> Iterator[RootTransaction]:
    """Take back a transaction whose statements failed."""
    try:
        yield transaction
    except BaseException:
        with suppress(SQLAlchemyError):
            transaction.rollback()
        raise


def _commit(transaction: RootTransaction) -> None:
    try:
        transaction.commit()
    except SQLAlchemyError as error:
        with suppress(SQLAlchemyError):
            transaction.rollback()
        if _was_refused(error):
            raise
        raise InDoubtError(f"cannot tell whether the database has it: {reason(error)}") from error


def _was_refused(error: SQLAlchemyError) -> bool:
    """Whether a database has said that it did not commit; else nobody knows."""
    said = getattr(error, "orig", None)
    state = getattr(said, "sqlstate", None) or ""
    code = getattr(said, "sqlite_errorcode", None)
    return code in (SQLITE_BUSY, SQLITE_FULL) or (state != "" and not state.startswith(LOST_STATES))


def _opened(url: URL, shard: Shard | None) -> tuple[Engine, Ownership]:
    backend = url.get_backend_name()
    if shard is not None and backend != "postgresql":
        raise StoreError("shards need a PostgreSQL database that all replicas share")
    if backend != "postgresql":
        lock = FileOwnership(url) if backend == "sqlite" and url.database else NoOwnership()
        try:
            return open_engine(url), lock
        except BaseException:
            lock.release()
            raise
    engine = open_engine(url)
    try:
        return engine, SessionOwnership(engine, shard)
    except SQLAlchemyError as error:
        engine.dispose()
        raise StoreError(f"cannot take the database: {reason(error)}") from error
    except StoreError:
        engine.dispose()
        raise


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


def _key_of(segment: Segment) -> tuple[str, str]:
    return segment.job_id, segment.writer


def _is(job_id: str, writer: str) -> ColumnElement[bool]:
    return (writers.c.job_id == job_id) & (writers.c.writer == writer)


def _among(keys: Sequence[tuple[str, str]]) -> ColumnElement[bool]:
    return tuple_(writers.c.job_id, writers.c.writer).in_(keys)


def _beyond(place: Place) -> ColumnElement[bool]:
    order = tuple_(segments.c.transaction_id, segments.c.id)
    return order > tuple_(place.transaction_id, place.segment_id)


def _events_of(row_id: int, job_id: str, blob: bytes) -> list[AnyEvent]:
    found = decode_lines(unpacked(blob).split(b"\n"), f"segment {row_id}")
    for bad in found.bad:
        _log.warning("left out of job %s: %s", job_id, bad)
    return list(found.events)


def _of_job(job_id: str, attempt: int | None) -> Select[Any]:
    query = select(*_STORED).where(segments.c.job_id == job_id)
    if attempt is None:
        return query
    return query.where(segments.c.first_attempt <= attempt, segments.c.last_attempt >= attempt)
