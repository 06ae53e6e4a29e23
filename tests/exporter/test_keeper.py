"""What an exporter does beside answering: threads that go on whatever happens."""

from __future__ import annotations

import logging
import signal
import sqlite3
import threading
from contextlib import closing

from ett_exporter.errors import StoreError
from ett_exporter.keeper import Keeper, Repeated
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import Store

NOW = 1_764_000_200.0


def run_until_done(outcomes):
    """Calls that end in these ways, one after the other; an exception is raised, anything else returned."""
    left, done = iter(outcomes), threading.Event()

    def work():
        outcome = next(left, None)
        if outcome is None:
            done.set()
            return False
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    repeated = Repeated("worker", work, 0.001)
    repeated.start()
    assert done.wait(60)
    repeated.stop()
    assert not repeated.goes_on()


def test_a_store_that_is_away_is_told_once_and_its_return_as_well(caplog):
    """However often work fails because of the store, the log says so once, and once that it works."""
    with caplog.at_level(logging.WARNING):
        run_until_done([StoreError("gone"), StoreError("gone"), StoreError("still gone"), True, False])
    assert [record.getMessage() for record in caplog.records] == ["worker waits: gone", "worker works again"]


def test_work_that_raises_is_tried_again(caplog):
    """An error of our own is logged with its place and ends no thread."""
    run_until_done([ValueError("ours"), True])
    assert "worker failed" in caplog.text
    assert "ValueError: ours" in caplog.text


def test_jobs_are_folded_and_saved_beside_answering(tmp_path, story, eventually):
    """A service is not ready until its jobs are folded; at its end, each has a snapshot."""
    path = str(tmp_path / "ett.sqlite")
    with closing(Store(path)) as store:
        service = Service(store, Settings(), clock=lambda: NOW)
        for body in story("a").bodies().values():
            service.ingest(body)
    with closing(Store(path)) as store:
        service = Service(store, Settings(), clock=lambda: NOW)
        assert not service.upkeep.is_ready
        keeper = Keeper(service)
        keeper.start()
        eventually(lambda: service.upkeep.is_ready)
        keeper.stop()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT job_id FROM snapshots").fetchall() == [("a",)]


def test_a_stopped_exporter_leaves_snapshots_and_goes_on_from_them(exporters, story, tmp_path, eventually):
    """SIGTERM saves what is folded; the next start is ready, and answers the same."""
    database = str(tmp_path / "ett.sqlite")
    running = exporters("--database", database)
    running.tell(story("a"))
    before = running.job("a")
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(60) == 0
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM snapshots").fetchone() == (1,)
    again = exporters("--database", database)
    eventually(lambda: again.http.get("/readyz").status_code == 200)
    after = again.job("a")
    assert {**after, "as_of": 0} == {**before, "as_of": 0}
