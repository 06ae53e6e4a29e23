"""Tables of the store and the steps that bring an older database up to date."""

from __future__ import annotations

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
    insert,
    inspect,
    select,
    update,
)

metadata = MetaData()

_AutoId = BigInteger().with_variant(Integer, "sqlite")

schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", String(128), primary_key=True),
    Column("first_received_at", Float, nullable=False),
    Column("last_received_at", Float, nullable=False),
)

writers = Table(
    "writers",
    metadata,
    Column("job_id", String(128), primary_key=True),
    Column("writer", String(256), primary_key=True),
    Column("ranges", Text, nullable=False),
    Column("clock_offset_s", Float),
)
"""Which sequence numbers of each writer are held; written with the segment that brings them."""

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
    Index("segments_of_job", "job_id", "id"),
)

journal_offsets = Table(
    "journal_offsets",
    metadata,
    Column("path", Text, primary_key=True),
    Column("inode", BigInteger, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("lines", BigInteger, nullable=False),
)


class SchemaError(RuntimeError):
    """The database was written by a newer version of the exporter, or is not one of its own."""


def _create_all(connection: Connection) -> None:
    metadata.create_all(connection)


MIGRATIONS: Sequence[Callable[[Connection], None]] = (_create_all,)
"""Step n brings version n to n + 1; steps are only ever appended."""


def migrate(connection: Connection) -> None:
    """Bring the database of `connection` to the latest version, in its transaction.

    Raises:
        SchemaError: it is of a later version than this program knows.
    """
    version = _version(connection)
    if version > len(MIGRATIONS):
        raise SchemaError(
            f"the database is of version {version}, this program knows {len(MIGRATIONS)}: use a newer one"
        )
    for step in MIGRATIONS[version:]:
        step(connection)
    connection.execute(update(schema_version).values(version=len(MIGRATIONS)))


def _version(connection: Connection) -> int:
    if not inspect(connection).has_table(schema_version.name):
        schema_version.create(connection)
        connection.execute(insert(schema_version).values(version=0))
    return int(connection.execute(select(schema_version.c.version)).scalar_one())
