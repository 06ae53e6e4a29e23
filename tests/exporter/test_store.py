"""The store over real SQLite files."""

from __future__ import annotations

import random
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event, select

from ett_core.events import Heartbeat
from ett_exporter import arrivals, database
from ett_exporter.arrivals import RANGES_NOTED
from ett_exporter.errors import StoreError, TakenError
from ett_exporter.ingest import Segment
from ett_exporter.schema import segments, writers
from ett_exporter.segment_rows import ZSTD
from ett_exporter.store import JournalOffset, Store, raw_line


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "ett.sqlite")


def segment(*seqs, writer="w", attempt=0):
    events = [
        Heartbeat(job_id="j", writer=writer, seq=seq, attempt=attempt, rank=0, time=1e9 + seq) for seq in seqs
    ]
    return Segment("j", writer, [raw_line(event) for event in events])


def held(store, attempt=None):
    return [event.seq for batch in store.events("j", attempt) for event in batch]


def test_what_was_appended_is_there_after_reopening(path):
    """Events come back in the order of their arrival, from a store that was opened again."""
    with closing(Store(path)) as store:
        store.append(segment(0, 1, 2), 10.0)
        store.append(segment(3), 11.0)
    with closing(Store(path)) as store:
        assert held(store) == [0, 1, 2, 3]
        assert [(job.job_id, job.last_received_at) for job in store.jobs()] == [("j", 11.0)]


def test_each_sequence_number_is_kept_once(path):
    """Repeats and overlaps add only the new lines, also after reopening, also within a segment."""
    with closing(Store(path)) as store:
        store.append(segment(0, 1, 5), 10.0)
    with closing(Store(path)) as store:
        fresh = store.append(segment(1, 2, 2, 5, 6), 11.0).events
        assert [event.seq for event in fresh] == [2, 6]
        assert store.append(segment(0, 1, 2, 5, 6), 12.0).events == []
        assert sorted(held(store)) == [0, 1, 2, 5, 6]


def test_another_event_under_a_held_number_is_kept_as_well(path):
    """Which of two events under one key counts, the accounting decides; repeats of either add nothing."""
    first, second = (
        Segment("j", "w", [raw_line(Heartbeat(job_id="j", writer="w", seq=3, attempt=0, rank=0, time=time))])
        for time in (1e9, 2e9)
    )
    with closing(Store(path)) as store:
        store.append(segment(0, 1), 9.0)
        for each in (first, second):
            assert [event.time for event in store.append(each, 10.0).events] == [each.lines[0].event.time]
            assert store.append(each, 11.0).events == []
        assert sorted(event.time for batch in store.events("j") for event in batch)[-2:] == [1e9 + 1, 2e9]


def test_two_events_under_one_number_of_one_segment_are_both_kept(path):
    """As if they had come in two: how lines are parted into segments changes no number."""
    events = [Heartbeat(job_id="j", writer="w", seq=3, attempt=0, rank=0, time=at) for at in (2e9, 1e9, 2e9)]
    both = Segment("j", "w", list(map(raw_line, events)))
    with closing(Store(path)) as store:
        assert [event.time for event in store.append(both, 10.0).events] == [2e9, 1e9]
        assert store.append(both, 11.0).events == []
        assert sorted(event.time for batch in store.events("j") for event in batch) == [1e9, 2e9]


def test_segments_of_many_threads_are_each_kept_once(path):
    """Threads that append at the same time share transactions and lose nothing."""
    with closing(Store(path)) as store, ThreadPoolExecutor(16) as pool:
        own = [segment(*range(n, n + 5), writer=f"w{n % 7}") for n in range(0, 100, 5)]
        kept = list(pool.map(lambda s: len(store.append(s, 10.0).events), own + own))
        assert sum(kept) == sum(len({(s.writer, line.event.seq) for line in s.lines}) for s in own)
        assert len(held(store)) == sum(kept)


def test_what_is_noted_of_a_writer_that_loses_numbers_is_bounded(path):
    """Its row does not grow with its gaps, and what comes late for any of them is kept, once."""
    lost = range(1, 8 * RANGES_NOTED, 2)
    with closing(Store(path)) as store:
        for first in range(0, 8 * RANGES_NOTED, 64):
            store.append(segment(*range(first, first + 64, 2)), 10.0)
        with store.transactions.reading() as connection:
            noted = connection.execute(select(writers.c.ranges)).scalar_one()
        assert noted.count(",") == RANGES_NOTED - 1
    random.seed(1)
    with closing(Store(path)) as store:
        late = random.sample(lost, len(lost))
        for place in range(0, len(late), 100):
            some = late[place : place + 100]
            assert sorted(event.seq for event in store.append(segment(*some), 11.0).events) == sorted(some)
            assert store.append(segment(*some), 12.0).events == []
        assert store.append(segment(*range(8 * RANGES_NOTED)), 13.0).events == []
        assert sorted(held(store)) == list(range(8 * RANGES_NOTED))


def test_of_single_numbers_that_are_lost_any_may_come_late(path, monkeypatch):
    """Each segment of one line, so that a closed gap lies in no stored segment."""
    monkeypatch.setattr(arrivals, "RANGES_NOTED", 3)
    with closing(Store(path)) as store:
        for number in [*range(0, 40, 2), *range(39, 0, -2), *range(40)]:
            store.append(segment(number), 10.0)
        assert sorted(held(store)) == list(range(40))


def test_writers_do_not_share_numbers(path):
    """The same number of another writer is another event."""
    with closing(Store(path)) as store:
        store.append(segment(0), 10.0)
        assert len(store.append(segment(0, writer="x"), 10.0).events) == 1


def test_one_attempt_can_be_read(path):
    """Reading an attempt gives its events only."""
    with closing(Store(path)) as store:
        store.append(segment(0, 1), 10.0)
        store.append(segment(2, attempt=1), 10.0)
        assert held(store, attempt=1) == [2]


def test_reading_goes_on_beyond_one_page(path):
    """More segments than are read at once all come back."""
    with closing(Store(path)) as store:
        for seq in range(450):
            store.append(segment(seq), 10.0)
        assert held(store) == list(range(450))


def test_durability_is_set(path):
    """The file is in WAL mode and every commit is synced."""
    with closing(Store(path)) as store, store.transactions.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_a_failed_write_keeps_nothing_and_says_so(path):
    """When a part of the write fails, no part of the segment is held and it can be sent again."""
    with closing(Store(path)) as store:
        with store.transactions.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE segments RENAME TO elsewhere")
        with pytest.raises(StoreError, match="segments"):
            store.append(segment(0), 10.0)
        with store.transactions.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO segments")
        assert len(store.append(segment(0), 10.0).events) == 1


def test_a_stored_line_that_is_no_event_any_more_does_not_hide_the_others(path, caplog):
    """A line that does not decode is logged and left out, the rest of its job is read."""
    odd = segment(0, 1)
    odd.lines[0] = odd.lines[0].__class__(1, b"{}", odd.lines[0].event)
    with closing(Store(path)) as store:
        store.append(odd, 10.0)
        assert held(store) == [1]
    assert "left out of job j" in caplog.text


@pytest.mark.parametrize("damaged", [b"damaged", b"", ZSTD + b"damaged"])
def test_a_segment_that_is_damaged_hides_no_other_and_can_be_sent_again(path, caplog, damaged):
    """Bits of a file may turn; what its senders still have comes back."""
    with closing(Store(path)) as store:
        store.append(segment(0, 1), 10.0)
        store.append(segment(2), 11.0)
        with store.transactions.writing() as connection:
            connection.execute(segments.update().where(segments.c.first_seq == 0).values(lines_zlib=damaged))
        assert held(store) == [2]
        assert [event.seq for event in store.append(segment(0, 1, 2), 12.0).events] == [0, 1]
        assert sorted(held(store)) == [0, 1, 2]
    assert "segments of job j are damaged" in caplog.text


def test_journal_offsets_are_remembered(path):
    """The latest offset of each path comes back, None for an unknown one."""
    with closing(Store(path)) as store:
        store.set_journal_offsets({"a": JournalOffset(1, 10, 2)})
        store.set_journal_offsets({"a": JournalOffset(1, 20, 4)})
        assert store.journal_offset("a") == JournalOffset(1, 20, 4)
        assert store.journal_offset("b") is None


@pytest.mark.parametrize("replacement", [None, b"", b"another file"], ids=["removed", "emptied", "replaced"])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(path, replacement):
    """A database that somebody removes or replaces under the exporter takes nothing until it is back."""
    with closing(Store(path)) as store:
        store.append(segment(0), 10.0)
        aside = Path(f"{path}.aside")
        Path(path).rename(aside)
        if replacement is not None:
            Path(path).write_bytes(replacement)
        with pytest.raises(StoreError, match="was removed or replaced while it was in use"):
            store.append(segment(1), 11.0)
        aside.replace(path)
        store.append(segment(1), 11.0)
    with closing(Store(path)) as store:
        assert held(store) == [0, 1]


def test_of_a_database_that_is_locked_many_segments_fail_at_once(path, monkeypatch):
    """All wait for it together, and none alone after that, whether their writers are known or not."""
    monkeypatch.setattr(database, "BUSY_MS", 200)
    with closing(Store(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        begun_s = []
        event.listen(store.transactions.engine, "checkout", lambda *_: begun_s.append(time.monotonic()))
        with pytest.raises(StoreError, match="locked"):
            store.append_all([segment(0, writer=f"w{n}") for n in range(50)], 10.0)
        assert len(begun_s) == 1
        assert time.monotonic() - begun_s[0] >= 0.2
        other.execute("ROLLBACK")
        assert len(store.append_all([segment(0, writer=f"w{n}") for n in range(50)], 10.0)) == 50


def test_two_exporters_cannot_share_a_file(path):
    """A second store over a file in use is refused; after closing it may be opened."""
    with closing(Store(path)), pytest.raises(StoreError, match="another exporter"):
        Store(path)
    Store(path).close()


def test_two_exporters_cannot_share_a_file_by_two_names(path, tmp_path):
    """A link to a file in use is that file."""
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.sqlite"
    with closing(Store(path)):
        link.symlink_to(Path(path).absolute())
        with pytest.raises(StoreError, match="another exporter"):
            Store(str(link))
    with closing(Store(str(link))), pytest.raises(StoreError, match="another exporter"):
        Store(path)


def test_a_lock_file_that_was_removed_is_made_again(path):
    """Others are kept away again."""
    with closing(Store(path)) as store:
        for work in (store.transactions.hold, lambda: store.append(segment(0), 10.0)):
            Path(f"{path}.lock").unlink()
            work()
            with pytest.raises(StoreError, match="another exporter"):
                Store(path)


def test_who_let_another_in_without_its_lock_file_writes_nothing_any_more(path):
    """Not when that one has ended either: what it took in is not in this one's memory."""
    with closing(Store(path)) as store:
        store.append(segment(0), 10.0)
        Path(f"{path}.lock").unlink()
        with closing(Store(path)) as other:
            other.append(segment(1), 10.0)
            with pytest.raises(TakenError, match="another exporter has taken over"):
                store.append(segment(2), 10.0)
        for work in (store.transactions.hold, lambda: store.append(segment(2), 10.0)):
            with pytest.raises(TakenError, match="another exporter has taken over"):
                work()
        assert store.transactions.taken
    with closing(Store(path)) as store:
        assert held(store) == [0, 1]


def test_a_folder_that_was_moved_away_is_not_made_again(tmp_path):
    """Where the database lay, nothing new appears; it is said, and work goes on once the folder is back."""
    folder = tmp_path / "data"
    with closing(Store(str(folder / "ett.sqlite"))) as store:
        folder.rename(tmp_path / "aside")
        with pytest.raises(StoreError, match="was removed or replaced while it was in use"):
            store.append(segment(0), 10.0)
        assert not folder.exists()
        (tmp_path / "aside").rename(folder)
        assert len(store.append(segment(0), 11.0).events) == 1


def test_a_later_schema_is_refused(path):
    """A database of a later version is left alone."""
    Store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE schema_version SET version = 99")
        connection.commit()
    with pytest.raises(StoreError, match="version 99"):
        Store(path)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    """Another kind of file is refused in one sentence and not changed."""
    other = tmp_path / "notes.txt"
    other.write_bytes(b"these are my notes" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Store(str(other))
    assert other.read_bytes() == b"these are my notes" * 100


def test_a_name_that_is_no_text_is_refused_in_words(tmp_path):
    """SQLAlchemy knows databases by text only; any byte may stand on a command line."""
    with pytest.raises(StoreError, match=r"ett-\\xff: its name is no text"):
        Store(str(tmp_path / "ett-\udcff"))


def test_a_path_that_cannot_be_written_is_refused(tmp_path):
    """A database under a file is refused with its path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        Store(str(tmp_path / "file" / "ett.sqlite"))
