"""A copy of an SQLite database, made while its exporter goes on writing."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from ett_core.reasons import reason_of
from ett_exporter.database import shown, sqlalchemy_url
from ett_exporter.errors import StoreError

PAGES_AT_ONCE = 4096
BESIDE = ("-journal", "-wal", "-shm")
"""Ends of the names of what SQLite keeps beside a database."""
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Of file systems that give a file one name only."""


def back_up(database: str, file: Path) -> int:
    """Copy a database as it is at one moment; returns the bytes of the copy, which is on the disk then.

    Nothing that is there is replaced, also by two copies that are made at the same time.

    Raises:
        StoreError: it is no SQLite file, cannot be read, or the copy cannot be written; the message
            says why, and nothing is left of the copy.
    """
    url = sqlalchemy_url(database)
    if url.get_backend_name() != "sqlite":
        raise StoreError(
            f"a PostgreSQL database is copied by its own program: pg_dump -Fc -f {file} {shown(database)}"
        )
    source = Path(str(url.database))
    if not os.path.isfile(source):  # noqa: PTH113 - false also where the directory cannot be entered
        raise StoreError(f"there is no database at {source}")
    if os.path.lexists(file):
        raise StoreError(f"{file} is there already")
    if not os.path.isdir(file.parent):  # noqa: PTH112 - as above
        raise StoreError(f"cannot copy {source} to {file}: there is no directory {file.parent}")
    part = file.with_name(f".ett-backup-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        _copy(source, part)
        _sync(part)
        _name(part, file)
        _sync(file.parent)
        return file.stat().st_size
    except FileExistsError as error:
        raise StoreError(f"{file} is there already") from error
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"cannot copy {source} to {file}: {reason_of(error)}") from error
    finally:
        for left in (part, *(part.with_name(f"{part.name}{end}") for end in BESIDE)):
            with suppress(OSError):
                left.unlink()


def _copy(source: Path, part: Path) -> None:
    """Copy, from one snapshot of the database, page by page."""
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as one,
        closing(sqlite3.connect(part)) as other,
    ):
        one.execute("BEGIN")
        one.execute("SELECT version FROM schema_version").fetchone()
        one.backup(other, pages=PAGES_AT_ONCE)
        other.execute("PRAGMA journal_mode=DELETE")


def _name(part: Path, file: Path) -> None:
    """Give the copy its name.

    Raises:
        FileExistsError: something has that name.
    """
    try:
        os.link(part, file, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(file):
            raise FileExistsError(file) from error
        part.rename(file)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
