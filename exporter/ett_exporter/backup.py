"""A copy of an SQLite database, made while its exporter goes on writing."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from ett_exporter.database import shown, sqlalchemy_url
from ett_exporter.errors import StoreError

PAGES_AT_ONCE = 4096


def back_up(database: str, file: Path) -> int:
    """Copy a database as it is at one moment; returns the bytes of the copy, which is on the disk then.

    Raises:
        StoreError: it is no SQLite file, cannot be read, or the copy cannot be written; the message
            says why, and `file` is not there.
    """
    url = sqlalchemy_url(database)
    if url.get_backend_name() != "sqlite":
        raise StoreError(
            f"a PostgreSQL database is copied by its own program: pg_dump -Fc -f {file} {shown(database)}"
        )
    source = Path(str(url.database))
    if not source.is_file():
        raise StoreError(f"there is no database at {source}")
    if file.exists():
        raise StoreError(f"{file} is there already")
    part = file.with_name(f"{file.name}.part")
    try:
        _copy(source, part)
        _sync(part)
        part.rename(file)
        _sync(file.parent)
    except (sqlite3.Error, OSError) as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"cannot copy {source} to {file}: {error}") from error
    return file.stat().st_size


def _copy(source: Path, part: Path) -> None:
    """Copy, from one snapshot of the database, page by page."""
    part.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as one,
        closing(sqlite3.connect(part)) as other,
    ):
        one.execute("BEGIN")
        one.execute("SELECT version FROM schema_version").fetchone()
        one.backup(other, pages=PAGES_AT_ONCE)
        other.execute("PRAGMA journal_mode=DELETE")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
