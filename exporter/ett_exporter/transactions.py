"""Transactions of the database of one exporter: opened once, written by one thread at a time, read by many.

What a driver raises becomes a `StoreError`, a commit of which nobody can say whether it was made durable
an `InDoubtError`. A connection that was lost is made anew by the next call.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection, Engine, RootTransaction
from sqlalchemy.engine import URL
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from ett_exporter.database import WRITES, open_engine, reason, sqlalchemy_url
from ett_exporter.errors import InDoubtError, StoreError, TakenError, UnfitError
from ett_exporter.owners import FileOwnership, NoOwnership, Ownership, SessionOwnership, Shard
from ett_exporter.told import Told

SQLITE_BUSY, SQLITE_FULL = 5, 13
LOST_STATES = ("08", "57")
"""Classes of SQLSTATE of a connection that ends."""
READ_ONLY_STATE = "25006"
"""What a session answers that may only read: it stays so, though its server may be written to again."""


class Transactions:
    """The database, taken for this process until `close`.

    Raises:
        StoreError: it cannot be opened, belongs to a running exporter, or is of a later version.
    """

    def __init__(self, database: str, shard: Shard | None) -> None:
        self._write_lock = threading.Lock()
        self.taken = ""
        """What showed that another exporter has the database, if it did; from then on nothing is written."""
        self.told = Told()
        """What the log was told of rows that are damaged."""
        self.engine, self._ownership = _opened(sqlalchemy_url(database), shard)
        self.is_postgresql = self.engine.dialect.name == "postgresql"

    def close(self) -> None:
        """Let somebody else have the database."""
        self._ownership.release()
        self.engine.dispose()

    def hold(self) -> None:
        """Keep others away, also where what did so was lost meanwhile.

        Raises:
            TakenError: somebody else has the database.
            StoreError: it cannot be asked.
        """
        try:
            with self._noticing():
                self._ownership.hold()
        except SQLAlchemyError as error:
            raise StoreError(f"cannot hold the database: {reason(error)}") from error

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read by; it sees what is committed."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreError(f"cannot read the database: {reason(error)}") from error

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction, durable at the end of the block; taken back where that raises."""
        try:
            with self._write_lock, self.engine.connect() as connection:
                connection.execution_options(**{WRITES: True})
                with _rolled_back(connection.begin()) as transaction:
                    with self._noticing():
                        self._ownership.check(connection)
                    yield connection
                _commit(transaction)
        except (DataError, IntegrityError) as error:
            raise UnfitError(f"the database does not take it: {reason(error)}") from error
        except SQLAlchemyError as error:
            if _state_of(error) == READ_ONLY_STATE:
                self.engine.dispose()
            raise StoreError(f"cannot write to the database: {reason(error)}") from error

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Remember that somebody else has the database; whoever was there before may be gone again."""
        if self.taken:
            raise TakenError(self.taken)
        try:
            yield
        except TakenError as error:
            self.taken = str(error)
            raise


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
    state = _state_of(error)
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return code in (SQLITE_BUSY, SQLITE_FULL) or (state != "" and not state.startswith(LOST_STATES))


def _state_of(error: SQLAlchemyError) -> str:
    """The SQLSTATE that PostgreSQL gave; empty where there is none."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""


def _opened(url: URL, shard: Shard | None) -> tuple[Engine, Ownership]:
    backend = url.get_backend_name()
    if shard is not None and backend != "postgresql":
        raise StoreError("shards need a PostgreSQL database that all replicas share")
    if backend != "postgresql":
        lock = FileOwnership(url) if backend == "sqlite" and url.database else NoOwnership()
        try:
            engine = open_engine(url)
        except BaseException:
            lock.release()
            raise
        try:
            lock.opened(engine)
        except SQLAlchemyError as error:
            engine.dispose()
            lock.release()
            raise StoreError(f"cannot take the database: {reason(error)}") from error
        return engine, lock
    engine = open_engine(url)
    try:
        return engine, SessionOwnership(engine, shard)
    except SQLAlchemyError as error:
        engine.dispose()
        raise StoreError(f"cannot take the database: {reason(error)}") from error
    except StoreError:
        engine.dispose()
        raise
