"""Who may write to a database: one exporter, or one replica a shard.

An SQLite file is locked by a lock file, which the kernel frees however its holder ends. In
PostgreSQL an advisory lock of a session of its own says that a place is taken. A lock file may be
removed, and a server that restarts ends its locks unseen; so each place has a row as well, with the
token of whoever took it last: every write looks at it first, and one whose place was taken by
somebody else writes nothing, for good.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol
from zlib import crc32

import msgspec
from sqlalchemy import ColumnElement, Connection, Engine, delete, func, insert, select, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from ett_exporter.errors import StoreError, TakenError
from ett_exporter.schema import OWNER_LOCK, owners

COUNT_LOCK = OWNER_LOCK + 1
"""Class of the locks by which replicas see that others count the shards differently."""

MOST_SHARDS = 1024


class Shard(msgspec.Struct, frozen=True):
    """The share of one replica: jobs whose hash falls on `index`, of 0 to `count` - 1."""

    index: int
    count: int

    @classmethod
    def parse(cls, words: str) -> Shard:
        """The shard of words such as `0/3`.

        Raises:
            ValueError: they name no share.
        """
        index, slash, count = words.partition("/")
        if not (slash and index.isascii() and index.isdigit() and count.isascii() and count.isdigit()):
            raise ValueError(f"--shard needs a share such as 0/3, not {words!r}")
        shard = cls(int(index), int(count))
        if not 0 <= shard.index < shard.count <= MOST_SHARDS:
            raise ValueError(
                f"--shard {words}: shards are counted from 0, and there are {MOST_SHARDS} at most"
            )
        return shard

    def holds(self, job_id: str) -> bool:
        """Whether a job is of this share; every replica, of every version, says the same.

        >>> [Shard(index, 3).holds("job-1") for index in range(3)]
        [False, False, True]
        """
        return self.owner_of(job_id) == self

    def owner_of(self, job_id: str) -> Shard:
        """The share that a job is of, among as many as there are of this kind."""
        return Shard(crc32(job_id.encode()) % self.count, self.count)

    def __str__(self) -> str:
        """As on the command line: `0/3`."""
        return f"{self.index}/{self.count}"


def place_of(shard: Shard | None) -> int:
    """The place of an exporter in the database: 0 where it has all of it, else that of its share.

    >>> place_of(None), place_of(Shard(0, 3))
    (0, 1)
    """
    return 0 if shard is None else shard.index + 1


class Ownership(Protocol):
    """The right to write, until `release`."""

    def check(self, connection: Connection) -> None:
        """Raise `StoreError` where it was lost; holds it until the transaction ends."""

    def hold(self) -> None:
        """Take again what keeps others away, where that was lost; `TakenError` where somebody was quicker."""

    def release(self) -> None:
        """Let somebody else have it."""


class _Row:
    """The row of one place, with a token of ours."""

    def __init__(self, place: int) -> None:
        self.place = place
        self._token = secrets.token_hex(16)

    def write(self, connection: Connection, of_others: ColumnElement[bool]) -> None:
        """Take the place; whoever had it, and the rows `of_others`, are out of it."""
        connection.execute(delete(owners).where((owners.c.place == self.place) | of_others))
        connection.execute(insert(owners).values(place=self.place, token=self._token))

    def check(self, connection: Connection, *, is_locked: bool = False) -> None:
        """Raise `TakenError` where somebody else has taken the place; `is_locked`: nobody can meanwhile."""
        query = select(owners.c.token).where(owners.c.place == self.place)
        if is_locked:
            query = query.with_for_update(read=True)
        if connection.execute(query).scalar_one_or_none() != self._token:
            raise TakenError("another exporter has taken over this database")


class FileOwnership:
    """`<database>.lock`, held while the exporter lives, and the file beside it, which stays where it is."""

    def __init__(self, url: URL) -> None:
        """Take it.

        Raises:
            StoreError: another exporter holds it, or it cannot be written.
        """
        self._database = Path(os.path.realpath(str(url.database)))
        self._row = _Row(place_of(None))
        self._path = Path(f"{self._database}.lock")
        self._engine: Engine | None = None
        self._file: _File | None = None
        self._one_at_a_time = threading.Lock()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror}") from error
        self._lock, self._locked = self._taken()

    def _taken(self) -> tuple[IO[str], _File]:
        try:
            lock: IO[str] = self._path.open("w", encoding="utf-8")
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise StoreError(f"another exporter is using the database {self._database}") from error
        return lock, _file_of(os.fstat(lock.fileno()))

    def opened(self, engine: Engine) -> None:
        """The database is open: from now on its file is this one."""
        with engine.begin() as connection:
            self._row.write(connection, of_others=owners.c.place != self._row.place)
        self._engine, self._file = engine, _file_at(self._database)

    def hold(self) -> None:
        """Lock the lock file that is there now, where the one that was locked was removed or replaced."""
        assert self._engine is not None  # noqa: S101 - it was opened
        self._find_file()
        with self._engine.connect() as connection:
            self.check(connection)

    def check(self, connection: Connection) -> None:
        """Raise `StoreError` where the file is gone: what is written into it now nobody will read again.

        `TakenError` where somebody else has used it.
        """
        self._find_file()
        self._row.check(connection)
        with self._one_at_a_time:
            if _file_at(self._path) != self._locked:
                lock, self._locked = self._taken()
                self._lock.close()
                self._lock = lock

    def _find_file(self) -> None:
        if _file_at(self._database) != self._file:
            raise StoreError(f"{self._database} was removed or replaced while it was in use")

    def release(self) -> None:
        """Let another exporter have the database."""
        self._lock.close()


_File = tuple[int, int]
"""Device and inode."""


def _file_at(path: Path) -> _File | None:
    try:
        return _file_of(path.stat())
    except OSError:
        return None


def _file_of(status: os.stat_result) -> _File:
    return status.st_dev, status.st_ino


class NoOwnership:
    """Of a database in memory, which nobody else sees."""

    def opened(self, engine: Engine) -> None:
        """There is no file."""

    def check(self, connection: Connection) -> None:
        """Nothing can be lost."""

    def hold(self) -> None:
        """Nothing can be lost."""

    def release(self) -> None:
        """Nothing is held."""


class SessionOwnership:
    """The whole of a PostgreSQL database, or a shard of it."""

    def __init__(self, engine: Engine, shard: Shard | None) -> None:
        """Take it.

        Raises:
            StoreError: a running exporter has it.
        """
        self._engine = engine
        self._shard = shard
        self._row = _Row(place_of(shard))
        self._lock = threading.Lock()
        self._session: Connection | None = self._take_locks()
        self._has_locks = True
        with engine.begin() as connection:
            self._row.write(
                connection, of_others=owners.c.place != 0 if shard is None else owners.c.place == 0
            )

    def check(self, connection: Connection) -> None:
        """Raise `TakenError` where somebody else has the place; nobody takes it until the block ends."""
        self._row.check(connection, is_locked=True)

    def hold(self) -> None:
        """Take the locks again where their session was lost, as soon as the server lets go of the old one."""
        with self._engine.connect() as connection:
            self._row.check(connection)
        with self._lock:
            if self._session is None:
                return
            self._has_locks = self._has_locks and _is_alive(self._session)
            if not self._has_locks:
                taken = self._take_locks()
                self._session.close()
                self._session, self._has_locks = taken, True

    def release(self) -> None:
        """Let somebody else have it."""
        with self._lock:
            if self._session is not None:
                with suppress(SQLAlchemyError):  # the server notices a closed session only some time later
                    self._session.execute(select(func.pg_advisory_unlock_all()))
                self._session.invalidate()
                self._session.close()
                self._session = None

    def _take_locks(self) -> Connection:
        session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            self._lock_all(session)
        except BaseException:
            session.invalidate()
            session.close()
            raise
        return session

    def _lock_all(self, session: Connection) -> None:
        if self._shard is None:
            if not session.execute(select(func.pg_try_advisory_lock(OWNER_LOCK, 0))).scalar_one():
                raise StoreError("another exporter is using this database")
            return
        if not session.execute(select(func.pg_try_advisory_lock_shared(OWNER_LOCK, 0))).scalar_one():
            raise StoreError("another exporter has this database for itself, without --shard")
        if not session.execute(select(func.pg_try_advisory_lock(OWNER_LOCK, self._row.place))).scalar_one():
            raise StoreError(f"another exporter is using this database with --shard {self._shard}")
        session.execute(select(func.pg_advisory_lock_shared(COUNT_LOCK, self._shard.count)))
        counts = session.execute(_COUNTS, {"of": COUNT_LOCK, "own": self._shard.count}).scalars().all()
        if counts:
            raise StoreError(
                f"another exporter divides this database into {counts[0]} shards, not {self._shard.count}"
            )


_COUNTS = text(
    "SELECT DISTINCT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND classid::bigint = :of AND objid::bigint <> :own"
)


def _is_alive(session: Connection) -> bool:
    try:
        session.execute(text("SELECT 1"))
    except SQLAlchemyError:
        return False
    return True
