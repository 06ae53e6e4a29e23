"""Tables of the store and the steps that bring an older database up to date."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    func,
    insert,
    inspect,
    select,
    update,
)

OWNER_LOCK = 0x457474
"""Class of the advisory locks that exporters hold in PostgreSQL."""

PATIENCE = "10min"
"""How long one of several replicas that start together waits while another brings the schema up to date."""

_log = logging.getLogger("ett_exporter.store")

metadata = MetaData()

_AutoId = BigInteger().with_variant(Integer, "sqlite")

schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", String(128), primary_key=True),
    Column("first_received_at", Float, nullable=False),
    Column("last_received_at", Float, nullable=False),
    Column("closed_through", Float),
    Column("pruned_through", Float),
    Column("state", String(32)),
    Column("start_time", Float),
    Column("end_time", Float),
    Column("wall_s", Float),
    Column("detail", Text),
    Column("merged_through", Float),
)
"""`closed_through` is `last_received_at` as it was when the columns after it, and the rows of the job in
`attempts`, `failures`, `checkpoints` and `timelines`, were written; segments that were received up to
`pruned_through` are being deleted, or gone; `merged_through` is `closed_through` as it was when the segments
were put together. `detail`, here and there, is JSON."""

attempts = Table(
    "attempts",
    metadata,
    Column("job_id", String(128), primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("attempt", BigInteger, nullable=False),
    Column("outcome", String(32), nullable=False),
    Column("start_time", Float, nullable=False),
    Column("end_time", Float, nullable=False),
    Column("detail", Text, nullable=False),
)

failures = Table(
    "failures",
    metadata,
    Column("job_id", String(128), primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("attempt", BigInteger, nullable=False),
    Column("time", Float, nullable=False),
    Column("failure_class", String(64), nullable=False),
    Column("domain", String(64), nullable=False),
    Column("detail", Text, nullable=False),
    Index("failures_by_time", "time"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("job_id", String(128), primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("attempt", BigInteger, nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("time", Float, nullable=False),
    Column("durable_at", Float),
    Column("detail", Text, nullable=False),
)

timelines = Table(
    "timelines",
    metadata,
    Column("job_id", String(128), primary_key=True),
    Column("stretches_zlib", LargeBinary, nullable=False),
)
"""The whole partition of a closed job, as compressed JSON of `Stretch`."""

snapshots = Table(
    "snapshots",
    metadata,
    Column("job_id", String(128), primary_key=True),
    Column("transaction_id", BigInteger, nullable=False),
    Column("last_segment_id", BigInteger, nullable=False),
    Column("beyond", Text, nullable=False),
    Column("format", String(64), nullable=False),
    Column("blob", LargeBinary, nullable=False),
)
"""The state of a live job after its segments up to that place and those of the ids in `beyond` (JSON)."""

owners = Table(
    "owners",
    metadata,
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("token", String(64), nullable=False),
)
"""Who may write: 0 is an exporter that has the database for itself, k + 1 the replica of shard k."""

writers = Table(
    "writers",
    metadata,
    Column("job_id", String(128), primary_key=True),
    Column("writer", String(256), primary_key=True),
    Column("ranges", Text, nullable=False),
    Column("clock_offset_s", Float),
    Column("clock_noted_at", Float),
)
"""Which sequence numbers of each writer are held, written with the segment that brings them; of one that has
many gaps the old ones count as held (`arrivals.py`). What its latest `clock` event says, and its time."""

live_jobs = Table(
    "live_jobs",
    metadata,
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("count", BigInteger, nullable=False),
)
"""How many jobs each replica holds in memory; places are those of `owners`."""

clock_readings = Table(
    "clock_readings",
    metadata,
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("read_at", Float, nullable=False),
    Column("steady_since", Float, nullable=False),
)
"""How the clock of each exporter went (`clock_readings.py`); places are those of `owners`."""

segments = Table(
    "segments",
    metadata,
    Column("id", _AutoId, primary_key=True, autoincrement=True),
    Column("job_id", String(128), nullable=False),
    Column("writer", String(256), nullable=False),
    Column("first_seq", BigInteger, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("first_attempt", BigInteger, nullable=False),
    Column("last_attempt", BigInteger, nullable=False),
    Column("count", Integer, nullable=False),
    Column("received_at", Float, nullable=False),
    Column("lines_zlib", LargeBinary, nullable=False),
    Column("transaction_id", BigInteger, nullable=False, server_default="0"),
    Column("held", Text),
    Index("segments_of_job", "job_id", "id"),
    Index("segments_in_order", "transaction_id", "id").ddl_if(dialect="postgresql"),
)
"""`transaction_id` is that of PostgreSQL: what is committed late has not a smaller one than all that ever
was read before `pg_snapshot_xmin`. 0 in SQLite, where ids are given in the order of the commits.
`held` is there in rows of several segments (`merging.py`), whose `writer` is empty: ranges of numbers by
writer, as JSON."""

journal_offsets = Table(
    "journal_offsets",
    metadata,
    Column("path", Text, primary_key=True),
    Column("inode", BigInteger, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("lines", BigInteger, nullable=False),
    Column("fingerprint", BigInteger),
)


class SchemaError(RuntimeError):
    """The database was written by a newer version of the exporter, or is not one of its own."""


def _keep_closed_jobs(connection: Connection) -> None:
    """Rows of closed jobs, snapshots, owners; the transactions of segments."""
    real = "DOUBLE PRECISION" if connection.dialect.name == "postgresql" else "FLOAT"
    for column in ("closed_through", "pruned_through", "start_time", "end_time", "wall_s"):
        connection.exec_driver_sql(f"ALTER TABLE jobs ADD COLUMN {column} {real}")
    connection.exec_driver_sql("ALTER TABLE jobs ADD COLUMN state VARCHAR(32)")
    connection.exec_driver_sql("ALTER TABLE jobs ADD COLUMN detail TEXT")
    connection.exec_driver_sql("ALTER TABLE segments ADD COLUMN transaction_id BIGINT NOT NULL DEFAULT 0")
    for index in segments.indexes:
        index.create(connection, checkfirst=True)
    for table in (attempts, failures, checkpoints, timelines, snapshots, owners):
        table.create(connection)


def _merge_segments(connection: Connection) -> None:
    """Rows of many segments."""
    real = "DOUBLE PRECISION" if connection.dialect.name == "postgresql" else "FLOAT"
    connection.exec_driver_sql(f"ALTER TABLE jobs ADD COLUMN merged_through {real}")
    connection.exec_driver_sql("ALTER TABLE segments ADD COLUMN held TEXT")


def _read_clocks(connection: Connection) -> None:
    """How clocks went: that of each exporter, and when the ones of writers were noted."""
    real = "DOUBLE PRECISION" if connection.dialect.name == "postgresql" else "FLOAT"
    connection.exec_driver_sql(f"ALTER TABLE writers ADD COLUMN clock_noted_at {real}")
    clock_readings.create(connection)


def _know_journals_again(connection: Connection) -> None:
    """Fingerprints of what was read of journals."""
    connection.exec_driver_sql("ALTER TABLE journal_offsets ADD COLUMN fingerprint BIGINT")


def _count_live_jobs(connection: Connection) -> None:
    """How many jobs each replica holds."""
    live_jobs.create(connection)


MIGRATIONS: Sequence[Callable[[Connection], None]] = (
    _keep_closed_jobs,
    _merge_segments,
    _read_clocks,
    _know_journals_again,
    _count_live_jobs,
)
"""Step n brings version n + 1 to n + 2; steps are only ever appended."""
LATEST = 1 + len(MIGRATIONS)


def migrate(connection: Connection) -> None:
    """Bring the database of `connection` to the latest version, in its transaction.

    Raises:
        SchemaError: it is of a later version than this program knows.
    """
    if connection.dialect.name == "postgresql":
        _await_turn(connection)
    version = _version(connection)
    if version > LATEST:
        raise SchemaError(
            f"the database is of version {version}, this program knows {LATEST}: use a newer one"
        )
    if version == 0:
        metadata.create_all(connection)
    for step in MIGRATIONS[version - 1 :] if version else ():
        step(connection)
    connection.execute(update(schema_version).values(version=LATEST))


def _await_turn(connection: Connection) -> None:
    """Wait until no other exporter migrates, longer than for the locks of tables: those stop replicas."""
    if connection.execute(select(func.pg_try_advisory_xact_lock(OWNER_LOCK))).scalar_one():
        return
    _log.warning("waits for another exporter that opens the database, which may have to bring it up to date")
    usual = connection.execute(select(func.current_setting("lock_timeout"))).scalar_one()
    connection.execute(select(func.set_config("lock_timeout", PATIENCE, True)))  # noqa: FBT003 - of SQL
    connection.execute(select(func.pg_advisory_xact_lock(OWNER_LOCK)))
    connection.execute(select(func.set_config("lock_timeout", usual, True)))  # noqa: FBT003 - of SQL


def _version(connection: Connection) -> int:
    """The version of the schema, 0 in a database that holds nothing of it."""
    if not inspect(connection).has_table(schema_version.name):
        schema_version.create(connection)
        connection.execute(insert(schema_version).values(version=0))
    return int(connection.execute(select(schema_version.c.version)).scalar_one())
