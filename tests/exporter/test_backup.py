"""Copies of databases, and exporters that are started from them."""

from __future__ import annotations

import errno
import shlex
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import postgresql
import pytest
from opened import DAY_S, NOW, Opened, started_again
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from ett_cli.main import main
from ett_core.accounting import JobFold
from ett_core.events import encode
from ett_exporter import backup
from ett_exporter.backup import back_up
from ett_exporter.database import sqlalchemy_url
from ett_exporter.errors import StoreError
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import Store

ETT = str(Path(sys.executable).with_name("ett"))
GROW_OLD = """
    DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$
"""


def test_a_copy_of_a_running_exporter_holds_what_was_acknowledged(exporters, story, tmp_path):
    """Made under load, a copy has every segment that was acknowledged before it began, and opens."""
    database = str(tmp_path / "ett.sqlite")
    running = exporters("--database", database)
    running.tell(story("before"))
    stop = threading.Event()

    def load():
        number = 0
        while not stop.is_set():
            running.tell(story(f"during-{number}"))
            number += 1

    loading = threading.Thread(target=load)
    loading.start()
    try:
        command = [ETT, "exporter", "backup", "--database", database, str(tmp_path / "copy.sqlite")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        stop.set()
        loading.join()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{tmp_path / 'copy.sqlite'}: ")
    restored = exporters("--database", str(tmp_path / "copy.sqlite"))
    job = restored.job("before")
    assert (job["wall_s"], job["samples"]) == (142.0, 2 * 9 * 80)
    assert all(restored.send(body).json()["accepted"] == 0 for body in story("before").bodies().values())


def test_a_copy_that_cannot_be_made_is_refused(tmp_path):
    """A database that is not there, a copy that is there, a place that is not, another file."""
    database = str(tmp_path / "ett.sqlite")
    with pytest.raises(StoreError, match="no database at"):
        back_up(database, tmp_path / "copy")
    Store(database).close()
    assert back_up(database, tmp_path / "copy") > 0
    with pytest.raises(StoreError, match="is there already"):
        back_up(database, tmp_path / "copy")
    with pytest.raises(StoreError, match="cannot copy"):
        back_up(database, tmp_path / "none" / "copy")
    (tmp_path / "notes").write_bytes(b"these are my notes" * 100)
    with pytest.raises(StoreError, match="not a database"):
        back_up(str(tmp_path / "notes"), tmp_path / "other")
    assert sorted(p.name for p in tmp_path.iterdir() if "copy" in p.name or "other" in p.name) == ["copy"]


PLACES = {
    "below a file": lambda folder: folder / "ett.sqlite" / "copy",
    "below nothing": lambda folder: folder / "none" / "copy",
    "a name that is too long": lambda folder: folder / ("x" * 300),
    "a link to nowhere": lambda folder: folder / "link",
    "a directory": lambda folder: folder / "there",
    "itself": lambda folder: folder / "ett.sqlite",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_a_place_that_takes_no_copy_is_named_and_nothing_is_left_there(place, tmp_path, capsys):
    """Status 1 and one line; the database and whatever is there stay as they are."""
    database = tmp_path / "ett.sqlite"
    Store(str(database)).close()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "there").mkdir()

    def there():
        names = (str(path) for path in tmp_path.rglob("*"))
        return sorted(name for name in names if not name.endswith(("-shm", "-wal"))), database.read_bytes()

    before = there()
    assert main(["exporter", "backup", "--database", str(database), str(place(tmp_path))]) == 1
    said = capsys.readouterr().err
    assert said.startswith("ett exporter backup: ")
    assert said.count("\n") == 1
    assert there() == before


def test_of_two_copies_to_one_place_one_is_whole_and_the_other_refused(tmp_path, monkeypatch):
    """What is made meanwhile by another is never replaced, nor taken for one's own half of a copy."""
    database = str(tmp_path / "ett.sqlite")
    Store(database).close()
    copy, copied = backup._copy, []

    def together(source, part):
        copied.append(part)
        if len(copied) == 1:
            assert back_up(database, tmp_path / "copy") > 0
        copy(source, part)

    monkeypatch.setattr(backup, "_copy", together)
    with pytest.raises(StoreError, match="is there already"):
        back_up(database, tmp_path / "copy")
    assert len(set(copied)) == 2
    Store(str(tmp_path / "copy")).close()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_disk_that_gives_a_file_one_name_only_takes_a_copy_as_well(tmp_path, monkeypatch):
    database = str(tmp_path / "ett.sqlite")
    Store(database).close()

    def link(*_arguments, **_options):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(backup.os, "link", link)
    assert back_up(database, tmp_path / "copy") > 0
    with pytest.raises(StoreError, match="is there already"):
        back_up(database, tmp_path / "copy")
    Store(str(tmp_path / "copy")).close()


def test_a_full_disk_is_told_and_keeps_no_half_of_a_copy(tmp_path):
    """A limit of the size of files stands for the disk."""
    database = str(tmp_path / "ett.sqlite")
    Store(database).close()
    limited = "ulimit -f 40; exec " + shlex.join(
        [ETT, "exporter", "backup", "--database", database, str(tmp_path / "copy")]
    )
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"ett exporter backup: cannot copy {database} to ")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*copy*"))
    assert not list(tmp_path.glob(".ett-backup*"))


def test_postgresql_is_copied_by_its_own_program(tmp_path):
    """The message names the command, without a password."""
    with pytest.raises(StoreError, match=r"pg_dump -Fc -f \S+copy") as caught:
        back_up("postgresql://ett:secret@db/ett", tmp_path / "copy")
    assert "secret" not in str(caught.value)


@pytest.mark.service("postgresql")
def test_a_restored_dump_goes_on(cluster, new_database, story):
    """pg_dump of a database in use, restored into another one, holds its jobs and takes in what is new."""
    url, other = new_database(), new_database()
    with closing(Store(url)) as store:
        service = Service(store, Settings(), clock=lambda: NOW)
        bodies = list(story("a").bodies().values())
        for body in bodies[:3]:
            service.ingest(body)
        service.upkeep.save_snapshots(0)
        cluster.dump(make_url(url).database, "copy")
    cluster.restore(make_url(other).database, "copy")
    with closing(Store(other)) as store:
        service = Service(store, Settings(), clock=lambda: NOW)
        for body in bodies:
            service.ingest(body)
        assert service.page("a", NOW).view.details.samples == 2 * 9 * 80
        assert service.page("a", NOW).view.account.wall_s == 142.0


@pytest.fixture
def elsewhere():
    """A server that has had fewer transactions than `cluster`."""
    running = postgresql.Cluster()
    try:
        yield running
    finally:
        running.remove()


@pytest.mark.service("postgresql")
def test_a_dump_restored_on_another_server_keeps_its_snapshots(cluster, elsewhere, new_database, story):
    """What only a snapshot holds of a job whose events are deleted goes on, and nothing is folded twice."""
    url, other = new_database(), elsewhere.database("other")
    engine = create_engine(sqlalchemy_url(url)).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(GROW_OLD))
    engine.dispose()
    with closing(Store(url)) as store:
        opened = Opened(store)
        opened.send(story("nightly"))
        opened.now += 91 * DAY_S
        opened.clean()
        assert opened.segments("nightly") == 0
        first, *rest = story("going", opened.now - 200).bodies().values()
        opened.service.ingest(first)
        opened.service.upkeep.save_snapshots(0)
        for body in rest:
            opened.service.ingest(body)
        nightly, going = opened.answer("nightly"), opened.answer("going")
        cluster.dump(make_url(url).database, "elsewhere")
    elsewhere.restore("other", str(cluster.directory / "elsewhere"))
    with closing(Store(other)) as store:
        opened = Opened(store, opened.now)
        assert (opened.answer("nightly"), opened.answer("going")) == (nightly, going)
        assert opened.service.jobs.in_memory("going").unsaved_events == b"".join(rest).count(b"\n")
        again = started_again(story, opened)
        opened.service.ingest_events(b"\n".join(map(encode, again)))
        fold = JobFold("nightly")
        fold.add([*story("nightly").events, *again])
        assert opened.service.page("nightly", opened.now).view.account == fold.account(opened.now)
