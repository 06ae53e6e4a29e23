"""Databases that the first version of the schema wrote, as dumps in tests/exporter/data.

Both were written by the exporter of that version from the job `old` of conftest.py, its clocks 50.1 s ahead.
"""

from __future__ import annotations

import itertools
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, select, text

from ett_core.accounting import JobFold
from ett_exporter import database as databases
from ett_exporter.database import sqlalchemy_url
from ett_exporter.errors import StoreError
from ett_exporter.owners import Shard
from ett_exporter.places import Place
from ett_exporter.schema import OWNER_LOCK, segments
from ett_exporter.segment_rows import unpacked
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import JournalOffset, Store

DATA = Path(__file__).parent / "data"
NOW = 1_764_000_200.0
OPEN = """
import os, signal, sys
from itertools import count
from sqlalchemy import event
from sqlalchemy.engine import Engine
from ett_exporter.store import Store

moments = count()

def pass_moment(*_):
    if next(moments) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
    event.listen(Engine, name, pass_moment)
Store(sys.argv[1]).close()
print(next(moments))
"""
"""Opens a database, and dies at a moment before, between or after its statements."""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.service("postgresql"))])
def empty(request, tmp_path):
    """Makes empty databases of an engine."""
    if request.param == "postgresql":
        return request.getfixturevalue("new_database")
    numbers = itertools.count()
    return lambda: str(tmp_path / f"{next(numbers)}.sqlite")


@pytest.fixture
def of_version_1(empty):
    """Makes databases of version 1."""

    def fill():
        database = empty()
        if "://" not in database:
            with closing(sqlite3.connect(database)) as connection:
                connection.executescript((DATA / "version1.sqlite.sql").read_text())
            return database
        engine = create_engine(sqlalchemy_url(database))
        with engine.begin() as connection:
            for statement in (DATA / "version1.postgresql.sql").read_text().split(";\n"):
                connection.exec_driver_sql(statement)
        engine.dispose()
        return database

    return fill


@pytest.fixture
def old(of_version_1):
    """A database of version 1."""
    return of_version_1()


@pytest.fixture
def new(empty):
    """A new database of the same engine."""
    return empty()


def assert_holds_the_old_job(database):
    with closing(Store(database)) as store:
        service = Service(store, Settings(), clock=lambda: NOW)
        view = service.page("old", NOW).view
        assert (view.account.wall_s, view.details.samples) == (142.0, 2 * 9 * 80)
        assert view.account.start == pytest.approx(NOW - 200 - 50.1)
        events = [event for batch in store.events("old") for event in batch]
        fold = JobFold("old")
        fold.add(events)
        assert view.account == fold.account(NOW)
        assert store.journal_offset("/journals/a.jsonl") == JournalOffset(7, 100, 2)
        with store.transactions.reading() as connection:
            bodies = [unpacked(blob) for blob in connection.execute(select(segments.c.lines_zlib)).scalars()]
        assert [service.ingest(body, clock_offset_s=50.1).accepted for body in bodies] == [0] * len(bodies)


def test_what_an_old_database_holds_is_there(old):
    """A database of version 1 opens, and its job, offsets and repeats are as they were."""
    assert_holds_the_old_job(old)


def test_an_old_database_goes_on(old, story):
    """A migrated database takes in what is new, and knows where it lies."""
    with closing(Store(old)) as store:
        service = Service(store, Settings(), clock=lambda: NOW)
        last = max(stored.place for stored in store.segments_after("old", Place(-1, -1)))
        for body in story("new").bodies().values():
            assert service.ingest(body).accepted == body.count(b"\n")
        assert service.page("new", NOW).view.account.state == "succeeded"
        assert all(stored.place > last for stored in store.segments_after("new", Place(-1, -1)))
    Store(old).close()


def shape(url):
    """Columns and indexes of every table."""
    engine = create_engine(sqlalchemy_url(url))
    found = inspect(engine)
    tables = {
        table: (
            sorted((c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(table)),
            sorted((i["name"], tuple(i["column_names"])) for i in found.get_indexes(table)),
            found.get_pk_constraint(table)["constrained_columns"],
        )
        for table in sorted(found.get_table_names())
    }
    engine.dispose()
    return tables


def test_a_migrated_database_has_the_shape_of_a_new_one(old, new):
    """Tables, columns and indexes are the same, whether migrated or made anew."""
    Store(old).close()
    Store(new).close()
    assert shape(old) == shape(new)


def opened_until(database, moment):
    """What came of an exporter that was killed at a moment of its start."""
    command = [sys.executable, "-c", OPEN, database, str(moment)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def opened_in_the_end(database, eventually):
    """Open and close a database; a server may take a moment to see that whoever had it is gone."""

    def opens():
        with suppress(StoreError), closing(Store(database)):
            return True

    eventually(opens)


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.sweep), 20])
@pytest.mark.parametrize("is_old", [True, False], ids=["migrated", "new"])
def test_a_start_that_is_killed_leaves_a_database_that_opens(empty, of_version_1, eventually, every, is_old):
    """Killed at any of its statements, a first start or a migration is done by the next; nothing is lost."""
    make = of_version_1 if is_old else empty
    whole = make()
    moments = int(opened_until(whole, -1).stdout)
    for moment in range(every // 2, moments, every):
        database = make()
        assert opened_until(database, moment).returncode == -signal.SIGKILL, moment
        opened_in_the_end(database, eventually)
        assert shape(database) == shape(whole), moment
        if is_old:
            assert_holds_the_old_job(database)


@pytest.mark.service("postgresql")
def test_replicas_wait_for_the_one_that_migrates(database_url, monkeypatch, caplog, eventually):
    """For longer than they wait for any other lock; then all start."""
    monkeypatch.setitem(databases._SESSION, "lock_timeout", "50ms")
    engine = create_engine(sqlalchemy_url(database_url))
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with ThreadPoolExecutor(3) as replicas, ExitStack() as stack:
        with engine.begin() as migrating:
            migrating.execute(text(f"SELECT pg_advisory_xact_lock({OWNER_LOCK})"))
            stores = [replicas.submit(Store, database_url, Shard(n, 3)) for n in range(3)]
            eventually(lambda: migrating.execute(waiting).scalar_one() == len(stores))
            migrating.execute(text("SELECT pg_sleep(0.3)"))
            assert migrating.execute(waiting).scalar_one() == len(stores)
        for store in stores:
            opened = stack.enter_context(closing(store.result()))
            with opened.transactions.reading() as connection:
                assert connection.execute(text("SHOW lock_timeout")).scalar_one() == "50ms"
    engine.dispose()
    assert [record.message.split(" that")[0] for record in caplog.records] == [
        "waits for another exporter"
    ] * len(stores)
