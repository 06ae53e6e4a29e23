"""What an exporter does beside answering."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing

from ett_exporter.keeper import Keeper
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import Store

NOW = 1_764_000_200.0


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
