"""Opening the database of the store: its lock, its pragmas, its schema."""

from __future__ import annotations

import fcntl
import sqlite3
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from ett_exporter import schema


class StoreError(RuntimeError):
    """The store cannot be opened or written; the message says why in one sentence."""


def sqlalchemy_url(database: str) -> URL:
    """The URL of a path or URL; errors as in `open_engine`."""
    if "://" not in database:
        return URL.create("sqlite", database=str(Path(database).absolute()))
    try:
        return make_url(database)
    except ArgumentError as error:
        raise StoreError(f"cannot open the database {database}: {error}") from error


def lock_file(url: URL) -> IO[str] | None:
    """Hold `<database>.lock` while the exporter lives; the kernel frees it however it ends.

    None for a database that is no file.

    Raises:
        StoreError: another exporter holds it, or it cannot be written.
    """
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    path = Path(f"{url.database}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("w", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise StoreError(f"another exporter is using the database {url.database}") from error
    return lock


def release(lock: IO[str] | None) -> None:
    """Let another exporter have the database."""
    if lock is not None:
        lock.close()


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
        raise StoreError(f"cannot open the database {where}: {reason(error)}") from error
    return engine


def _engine(url: URL) -> Engine:
    engine = create_engine(url)
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(dbapi_connection: object, _record: object) -> None:
    dbapi_connection.isolation_level = None  # type: ignore[attr-defined]  # transactions begin below
    cursor = dbapi_connection.cursor()  # type: ignore[attr-defined]
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def reason(error: Exception) -> str:
    """What the database said, in one line."""
    return str(getattr(error, "orig", None) or error).splitlines()[0]
