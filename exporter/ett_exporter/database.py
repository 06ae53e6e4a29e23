"""Opening the database of the store: its driver, its durability, its schema."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from ett_core.plain_text import name_as_text
from ett_exporter import schema
from ett_exporter.errors import StoreError

POSTGRESQL_DRIVER = "postgresql+psycopg"
CONNECTIONS = 40
"""One for each request that works at the same time."""
PATIENCE_S = 5
WRITES = "ett_writes"
"""Option of a connection whose transactions write."""
BUSY_MS = 10_000
"""How long a write to SQLite waits for somebody else's lock."""
_SYNCHRONOUS = """
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""
_SESSION = {
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
"""A replica that hangs in the middle of a transaction, or whose machine is gone, holds up nobody for good."""


def sqlalchemy_url(database: str) -> URL:
    """The URL of a path or URL; errors as in `open_engine`.

    >>> sqlalchemy_url("postgresql://ett@db/ett").drivername
    'postgresql+psycopg'
    """
    try:
        database.encode()
    except UnicodeEncodeError as error:
        raise StoreError(f"cannot open the database {name_as_text(database)}: its name is no text") from error
    if "://" not in database:
        return URL.create("sqlite", database=str(Path(database).absolute()))
    try:
        url = make_url(database.replace("postgres://", "postgresql://", 1))
    except ArgumentError as error:
        raise StoreError(f"cannot open the database {database}: {error}") from error
    return url.set(drivername=POSTGRESQL_DRIVER) if url.drivername == "postgresql" else url


def shown(database: str) -> str:
    """A path or URL as it may be shown: without its password.

    >>> shown("postgresql://ett:secret@db/ett")
    'postgresql+psycopg://ett:***@db/ett'
    """
    return sqlalchemy_url(database).render_as_string(hide_password=True) if "://" in database else database


def open_engine(url: URL) -> Engine:
    """The engine of a database that is there and up to date.

    Raises:
        StoreError: it cannot be opened, is no database, or is of a later version.
    """
    try:
        engine = _engine(url)
        with engine.begin() as connection:
            schema.migrate(connection)
    except (SQLAlchemyError, sqlite3.Error, ImportError, schema.SchemaError) as error:
        where = url.render_as_string(hide_password=True)
        raise StoreError(f"cannot open the database {where}: {_opening_reason(error)}") from error
    return engine


def _opening_reason(error: Exception) -> str:
    if isinstance(error, ImportError) and error.name == "psycopg":
        return "PostgreSQL needs psycopg. In the checkout of ettwatch: pip install '.[postgres]'"
    return reason(error)


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "postgresql":
        return _postgresql(url)
    engine = create_engine(url)
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgresql(url: URL) -> Engine:
    """Connections are tried before they are used, so that a server that was restarted is found again."""
    waiting = {
        "connect_timeout": PATIENCE_S,
        "keepalives_idle": PATIENCE_S,
        "application_name": "ett exporter",
    }
    engine = create_engine(
        url,
        pool_pre_ping=True,
        pool_size=CONNECTIONS,
        max_overflow=CONNECTIONS,
        pool_timeout=PATIENCE_S,
        connect_args={name: value for name, value in waiting.items() if name not in url.query},
    )
    event.listen(engine, "connect", _set_up_postgresql)
    return engine


def _set_up_postgresql(dbapi_connection: object, _record: object) -> None:
    """A commit is on the disk of the server at least, whatever its default is."""
    cursor = dbapi_connection.cursor()  # type: ignore[attr-defined]
    cursor.execute(_SYNCHRONOUS)
    for name, value in _SESSION.items():
        cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
    cursor.close()
    dbapi_connection.commit()  # type: ignore[attr-defined]


def _set_up_sqlite(dbapi_connection: object, _record: object) -> None:
    dbapi_connection.isolation_level = None  # type: ignore[attr-defined]  # transactions begin below
    cursor = dbapi_connection.cursor()  # type: ignore[attr-defined]
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={BUSY_MS}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """A transaction that reads before it writes would not wait for the lock of another program."""
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def reason(error: Exception) -> str:
    """What the database said, in one line."""
    return (str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__])[0]
