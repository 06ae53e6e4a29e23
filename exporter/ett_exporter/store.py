"""What was ingested, kept on disk: a segment that is acknowledged survives `kill -9`.

One process owns an SQLite file or a PostgreSQL database; replicas may share a PostgreSQL database,
each owns a shard of its jobs and takes in segments of any (`owners.py`). Any thread may call; writes
take one lock and one transaction each, and return when the data is durable (SQLite: WAL and
synchronous=FULL; PostgreSQL: synchronous_commit). Readers see only committed data and never wait
for the writer. A connection that was lost is made anew by the next call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from sqlalchemy import BigInteger, bindparam, delete, func, insert, literal_column, select

from ett_core.events import AnyEvent, encode
from ett_exporter import clock_readings, closed_rows, merging, restored, segment_rows, snapshot_rows
from ett_exporter.arrivals import Arrivals
from ett_exporter.clock_readings import Reading
from ett_exporter.ingest import Line, Segment
from ett_exporter.noted_clocks import NotedClocks
from ett_exporter.owners import Shard, place_of
from ett_exporter.places import LAST_ID, Kept, Place, Snapshot, Stored
from ett_exporter.schema import jobs, journal_offsets, live_jobs, segments
from ett_exporter.segment_rows import READ_ROWS, beyond, of_id, of_job
from ett_exporter.statements import Statements
from ett_exporter.transactions import Transactions
from ett_exporter.views import JobPage

_OLDEST_RUNNING = select(literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", BigInteger))


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
    """How far a watched journal has been read: bytes and lines of the file with this inode.

    `fingerprint` is that of these bytes; None where an earlier version has read them.
    """

    inode: int
    offset: int
    lines: int
    fingerprint: int | None = None


class Store:
    """The database of one exporter; `close` it at the end.

    Raises:
        StoreError: the database cannot be opened, belongs to a running exporter, or is of a
            later version.
    """

    def __init__(self, database: str, shard: Shard | None = None) -> None:
        self.shard = shard
        self.transactions = Transactions(database, shard)
        self.noted_clocks = NotedClocks(self.transactions)
        """What was noted of the clocks of writers."""
        self._statements = Statements(is_postgresql=self.transactions.is_postgresql)
        self._arrivals = Arrivals(self.transactions, self._statements, has_replicas=shard is not None)
        try:
            if self.transactions.is_postgresql:
                with self.transactions.writing() as connection:
                    restored.adopt(connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let somebody else have the database."""
        self.transactions.close()

    def owns(self, job_id: str) -> bool:
        """Whether the job is one of this replica's."""
        return self.shard is None or self.shard.holds(job_id)

    def append(self, segment: Segment, received_at: float) -> Kept:
        """As `append_all`, of one segment."""
        (kept,) = self.append_all([segment], received_at)
        return kept

    def append_all(self, segments: Sequence[Segment], received_at: float) -> list[Kept]:
        """Keep the lines of segments that are not held yet; returns the events of each, once all are durable.

        Segments of several threads share a transaction. A line under a number that is held with
        other content is kept as well: which of the two counts, the accounting decides.

        Raises:
            InDoubtError: the connection was lost; some may be kept and some not.
            StoreError: they could not be written; nothing of them is kept.
        """
        return self._arrivals.keep(segments, received_at)

    def clock_reading(self) -> Reading | None:
        """How the clock of this exporter went, as it was written last."""
        with self.transactions.reading() as connection:
            return clock_readings.read(connection, place_of(self.shard))

    def write_clock_reading(self, reading: Reading) -> None:
        """Write how the clock of this exporter goes."""
        with self.transactions.writing() as connection:
            clock_readings.write(connection, place_of(self.shard), reading)

    def jobs(self) -> list[KnownJob]:
        """All jobs of this replica, in the order in which they were first heard of."""
        columns = (jobs.c.job_id, jobs.c.last_received_at, jobs.c.closed_through, jobs.c.end_time)
        query = select(*columns).order_by(jobs.c.first_received_at, jobs.c.job_id)
        with self.transactions.reading() as connection:
            known = [KnownJob(*row) for row in connection.execute(query)]
        return [job for job in known if self.owns(job.job_id)]

    def job(self, job_id: str) -> KnownJob | None:
        """One job, whoever owns it; None where nothing of it is kept."""
        columns = (jobs.c.job_id, jobs.c.last_received_at, jobs.c.closed_through, jobs.c.end_time)
        with self.transactions.reading() as connection:
            row = connection.execute(select(*columns).where(jobs.c.job_id == job_id)).first()
        return KnownJob(*row) if row else None

    def count_live_jobs(self, count: int) -> dict[int, int]:
        """Tell other replicas how many jobs this one holds; gives how many each does, by its place."""
        place = place_of(self.shard)
        with self.transactions.writing() as connection:
            connection.execute(self._statements.count_live_jobs, {"place": place, "count": count})
        with self.transactions.reading() as connection:
            return {row[0]: row[1] for row in connection.execute(select(live_jobs))}

    def events(self, job_id: str, attempt: int | None = None) -> Iterator[list[AnyEvent]]:
        """The events of a job (of one attempt), a list a segment, in the order of their arrival.

        A line that this version no longer takes for an event is logged and left out.
        """
        for stored in segment_rows.read(self.transactions, of_job(job_id, attempt)):
            yield [e for e in stored.events if attempt is None or e.attempt == attempt]

    def event_count(self, job_id: str) -> int:
        """How many events of a job are stored."""
        query = select(func.coalesce(func.sum(segments.c.count), 0)).where(segments.c.job_id == job_id)
        with self.transactions.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def segments_after(self, job_id: str, place: Place) -> Iterator[Stored]:
        """The segments of a job beyond a place."""
        return segment_rows.read(self.transactions, of_job(job_id, None).where(beyond(place)))

    def horizon(self) -> Place:
        """A place behind which nothing comes any more: what is committed from now on is beyond it."""
        with self.transactions.reading() as connection:
            return Place(connection.execute(_OLDEST_RUNNING).scalar_one() - 1, LAST_ID)

    def unseen_since(self) -> float | None:
        """When the first segment came that is beyond the horizon (Unix seconds); None where none is."""
        beyond_it = segments.c.transaction_id >= _OLDEST_RUNNING.scalar_subquery()
        query = select(func.min(segments.c.received_at)).where(beyond_it)
        with self.transactions.reading() as connection:
            since: float | None = connection.execute(query).scalar_one()
            return since

    def arrivals(self, after: Place, most: int = READ_ROWS) -> list[tuple[Place, str]]:
        """Place and job of the next segments of any replica, in order, up to the horizon."""
        settled = segments.c.transaction_id < _OLDEST_RUNNING.scalar_subquery()
        query = select(segments.c.transaction_id, segments.c.id, segments.c.job_id)
        query = query.where(beyond(after), settled)
        query = query.order_by(segments.c.transaction_id, segments.c.id).limit(most)
        with self.transactions.reading() as connection:
            return [(Place(row[0], row[1]), row[2]) for row in connection.execute(query)]

    def segment(self, segment_id: int) -> Stored | None:
        """One segment; None where it was deleted."""
        return next(segment_rows.read(self.transactions, of_id(segment_id)), None)

    def save_snapshots(self, made: Sequence[Snapshot], code: str) -> None:
        """Keep snapshots that this code has made in the place of older ones."""
        with self.transactions.writing() as connection:
            snapshot_rows.write(connection, self._statements.save_snapshot, made, code)

    def snapshot(self, job_id: str, code: str) -> Snapshot | None:
        """The last snapshot of a job; None where other code than `code` has made it.

        Where events that it holds are deleted, whatever code has made it: there is nothing else left of them.
        """
        with self.transactions.reading() as connection:
            return snapshot_rows.read(connection, job_id, code)

    def is_cut(self, known: Snapshot) -> bool:
        """Whether the events that a snapshot holds are deleted, or about to be."""
        with self.transactions.reading() as connection:
            return snapshot_rows.is_cut(connection, known)

    def close_job(self, page: JobPage, through: float, made: Snapshot | None, code: str) -> bool:
        """Write the rows of a job that is over, with its last snapshot, in the place of older ones.

        `through` is `last_received_at` as it was when `page`, with its whole timeline, was made. Returns
        whether it was written: not where something has come since.
        """
        with self.transactions.writing() as connection:
            written = closed_rows.write(connection, page, through)
            if written and made is not None:
                snapshot_rows.write(connection, self._statements.save_snapshot, [made], code)
            return written

    def closed_job(self, job_id: str) -> JobPage | None:
        """The page of a job whose rows were written, with its whole timeline."""
        with self.transactions.reading() as connection:
            return closed_rows.read(connection, job_id)

    def prunable(self, before: float, ended_before: float) -> list[str]:
        """Closed jobs that ended before a moment, of which nothing came since another (Unix seconds)."""
        with self.transactions.reading() as connection:
            return list(filter(self.owns, closed_rows.prunable(connection, before, ended_before)))

    def begin_pruning(self, job_id: str, before: float) -> bool:
        """Note that the rows of a job are all that will be left of it; False where something came."""
        with self.transactions.writing() as connection:
            return closed_rows.begin_pruning(connection, job_id, before)

    def half_pruned(self) -> list[str]:
        """Jobs of which segments are to be deleted."""
        with self.transactions.reading() as connection:
            return list(filter(self.owns, closed_rows.half_pruned(connection)))

    def prune(self, job_id: str, most: int = READ_ROWS) -> int:
        """Delete some segments of a job that is being pruned; returns their number."""
        with self.transactions.writing() as connection:
            return closed_rows.prune(connection, job_id, most)

    def mergeable(self) -> list[str]:
        """Closed jobs whose segments are not put together."""
        with self.transactions.reading() as connection:
            return list(filter(self.owns, merging.mergeable(connection)))

    def merge(self, job_id: str, through: Place | None = None) -> bool:
        """Put some segments of a closed job together, those up to a place; whether there may be more.

        Nobody may read or delete segments of the job meanwhile.
        """
        with self.transactions.reading() as connection:
            made = merging.together(connection, job_id, through)
        with self.transactions.writing() as connection:
            return merging.replace(connection, job_id, made)

    def journal_offset(self, path: str) -> JournalOffset | None:
        """How far the journal at `path` has been read."""
        columns = [journal_offsets.c[field] for field in JournalOffset.__struct_fields__]
        with self.transactions.reading() as connection:
            row = connection.execute(select(*columns).where(journal_offsets.c.path == path)).first()
        return JournalOffset(*row) if row else None

    def set_journal_offsets(self, reached: Mapping[str, JournalOffset]) -> None:
        """Remember how far the journals at these paths have been read."""
        gone = delete(journal_offsets).where(journal_offsets.c.path == bindparam("gone"))
        values = [{"path": path, **msgspec.structs.asdict(at)} for path, at in reached.items()]
        with self.transactions.writing() as connection:
            connection.execute(gone, [{"gone": path} for path in reached])
            connection.execute(insert(journal_offsets), values)


def raw_line(of: AnyEvent) -> Line:
    """An event of the exporter itself as a line to keep."""
    return Line(0, encode(of), of)
