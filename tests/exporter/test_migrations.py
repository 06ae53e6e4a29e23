"""Databases that the first version of the schema wrote, as dumps in tests/exporter/data.

Both were written by the exporter of that version from the job `old` of conftest.py, its clocks 50.1 s ahead.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, select

from ett_core.accounting import JobFold
from ett_exporter.database import sqlalchemy_url
from ett_exporter.places import Place
from ett_exporter.schema import segments
from ett_exporter.segment_rows import unpacked
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import JournalOffset, Store

DATA = Path(__file__).parent / "data"
NOW = 1_764_000_200.0


@pytest.fixture
def sqlite(tmp_path):
    path = tmp_path / "ett.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((DATA / "version1.sqlite.sql").read_text())
    return str(path)


@pytest.fixture
def postgresql(database_url):
    engine = create_engine(sqlalchemy_url(database_url))
    with engine.begin() as connection:
        for statement in (DATA / "version1.postgresql.sql").read_text().split(";\n"):
            connection.exec_driver_sql(statement)
    engine.dispose()
    return database_url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.service("postgresql"))])
def old(request):
    """A database of version 1."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def new(old, tmp_path, request):
    """A new database of the same engine."""
    return request.getfixturevalue("new_database")() if "://" in old else str(tmp_path / "new.sqlite")


def test_what_an_old_database_holds_is_there(old):
    """A database of version 1 opens, and its job, offsets and repeats are as they were."""
    with closing(Store(old)) as store:
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
