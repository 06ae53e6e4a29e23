"""The store over a real PostgreSQL server."""

from __future__ import annotations

import threading
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import msgspec
import pytest
from sqlalchemy import create_engine, func, select, text

from ett_core.events import Heartbeat
from ett_exporter import database, schema
from ett_exporter.answers import page_answer
from ett_exporter.database import sqlalchemy_url
from ett_exporter.errors import InDoubtError, StoreError, UnfitError
from ett_exporter.ingest import Segment
from ett_exporter.owners import Shard
from ett_exporter.places import LAST_ID, Place, Snapshot
from ett_exporter.schema import OWNER_LOCK, segments
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import JournalOffset, Store, raw_line

pytestmark = pytest.mark.service("postgresql")
NOW = 1_764_000_200.0
FAR = 10**12
"""A transaction that no server of a test reaches."""
END_OTHER_SESSIONS = """
    SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND datname = current_database()
"""


def segment(*seqs, writer="w", attempt=0, job_id="j"):
    where = {"job_id": job_id, "writer": writer, "attempt": attempt, "rank": 0}
    events = [Heartbeat(seq=seq, time=1e9 + seq, **where) for seq in seqs]
    return Segment(job_id, writer, [raw_line(event) for event in events])


def held(store, job_id="j"):
    return sorted(event.seq for batch in store.events(job_id) for event in batch)


def test_a_job_survives_reopening_and_repeats(database_url, story):
    """A service over PostgreSQL answers the same after it is opened again, and takes no repeat."""
    with closing(Store(database_url)) as store:
        service = Service(store, Settings(), clock=lambda: NOW)
        for body in story("a").bodies().values():
            assert service.ingest(body, clock_offset_s=50.1).accepted == body.count(b"\n")
        before = msgspec.json.encode(page_answer(service.page("a", NOW)))
    with closing(Store(database_url)) as store:
        service = Service(store, Settings(), clock=lambda: NOW)
        assert msgspec.json.encode(page_answer(service.page("a", NOW))) == before
        for body in story("a").bodies().values():
            assert service.ingest(body, clock_offset_s=50.1).accepted == 0


def test_overlaps_conflicts_and_offsets(database_url):
    """Each number counts once, another event under it is kept as well, offsets are remembered."""
    with closing(Store(database_url)) as store:
        store.append(segment(0, 1, 5), 10.0)
        assert [e.seq for e in store.append(segment(1, 2, 2, 5, 6), 11.0).events] == [2, 6]
        other = Heartbeat(job_id="j", writer="w", seq=1, attempt=0, rank=0, time=2e9)
        assert len(store.append(Segment("j", "w", [raw_line(other)]), 12.0).events) == 1
        assert store.append(Segment("j", "w", [raw_line(other)]), 12.0).place is None
        store.set_journal_offsets({"a": JournalOffset(2**40, 2**40, 2)})
        assert store.journal_offset("a") == JournalOffset(2**40, 2**40, 2)
        assert held(store) == [0, 1, 1, 2, 5, 6]


def test_segments_of_many_threads_are_each_kept_once(database_url):
    """Threads share transactions, and places grow in the order of the commits."""
    with closing(Store(database_url)) as store, ThreadPoolExecutor(16) as pool:
        own = [segment(*range(n, n + 5), writer=f"w{n % 7}") for n in range(0, 100, 5)]
        kept = list(pool.map(lambda s: store.append(s, 10.0), own + own))
        assert sum(len(each.events) for each in kept) == sum(len(s.lines) for s in own) == len(held(store))
        places = [stored.place for stored in store.segments_after("j", min(k.place for k in kept if k.place))]
        assert places == sorted(places)


def test_what_the_database_does_not_take_is_told_from_a_database_that_takes_nothing(
    database_url, monkeypatch
):
    """What came with the one may well be taken."""
    monkeypatch.setitem(database._SESSION, "lock_timeout", "200ms")
    with closing(Store(database_url)) as store:
        long = schema.owners.insert().values(place=9, token="x" * 100)
        with pytest.raises(UnfitError, match="too long"), store.transactions.writing() as connection:
            connection.execute(long)
        with store.transactions.engine.begin() as other:
            other.execute(text("LOCK TABLE owners IN ACCESS EXCLUSIVE MODE"))
            with pytest.raises(StoreError, match="timeout") as locked, store.transactions.writing():
                pass
        assert not isinstance(locked.value, UnfitError)


def test_who_starts_while_another_migrates_waits_for_it(database_url, monkeypatch):
    """For longer than any write waits for a lock: three replicas that are upgraded start together."""
    monkeypatch.setitem(database._SESSION, "lock_timeout", "100ms")
    Store(database_url).close()
    engine = create_engine(sqlalchemy_url(database_url))
    with ThreadPoolExecutor(1) as pool, engine.begin() as migrating:
        migrating.execute(select(func.pg_advisory_xact_lock(OWNER_LOCK)))
        opening = pool.submit(Store, database_url)
        with pytest.raises(futures.TimeoutError):
            opening.result(timeout=1.0)
        migrating.rollback()
        opening.result(timeout=60).close()
    engine.dispose()


def test_a_second_exporter_is_refused_until_the_first_has_ended(database_url):
    """One exporter at a time, whatever the way in which the first one goes."""
    with closing(Store(database_url)), pytest.raises(StoreError, match="another exporter"):
        Store(database_url)
    Store(database_url).close()


def test_who_was_replaced_writes_nothing_any_more(database_url):
    """Where a server lost the lock of one exporter and gave it to another, the first one is told so."""
    with closing(Store(database_url)) as first:
        with first.transactions.engine.begin() as connection:
            connection.execute(text(END_OTHER_SESSIONS))
        with closing(Store(database_url)) as second:
            second.append(segment(0), 10.0)
            with pytest.raises(StoreError, match="taken over"):
                first.append(segment(1), 10.0)
            assert held(second) == [0]


def test_a_lock_that_the_server_lost_is_taken_again(database_url):
    """As soon as nobody else has it, however often that was tried before; others are kept away again."""
    with closing(Store(database_url)) as store:
        engine = store.transactions.engine
        with engine.begin() as connection:
            connection.execute(text(END_OTHER_SESSIONS))
        with engine.connect() as lingering:
            assert lingering.execute(select(func.pg_try_advisory_lock(OWNER_LOCK, 0))).scalar_one()
            for _ in range(3):
                with pytest.raises(StoreError, match="another exporter is using"):
                    store.transactions.hold()
                assert len(store.append(segment(0), 10.0).events) <= 1
            assert lingering.execute(select(func.pg_advisory_unlock(OWNER_LOCK, 0))).scalar_one()
        store.transactions.hold()
        with pytest.raises(StoreError, match="another exporter is using"):
            Store(database_url)
        assert held(store) == [0]


def test_who_was_replaced_is_told_so_without_a_write(database_url):
    """Where nothing is sent to it, the look at its lock tells it."""
    with closing(Store(database_url)) as first:
        with first.transactions.engine.begin() as connection:
            connection.execute(text(END_OTHER_SESSIONS))
        with closing(Store(database_url)), pytest.raises(StoreError, match="another exporter"):
            first.transactions.hold()
        with pytest.raises(StoreError, match="taken over"):
            first.transactions.hold()


def test_a_server_that_was_restarted_is_found_again(cluster, database_url):
    """While it is down, writing and reading are refused; then both work, and nothing is lost or doubled."""
    with closing(Store(database_url)) as store:
        service = Service(store, Settings(), clock=lambda: NOW)
        lines = [line.raw for line in segment(0, 1).lines]
        assert service.ingest(b"\n".join(lines)).accepted == 2
        cluster.stop()
        try:
            with pytest.raises(StoreError):
                service.ingest(b"\n".join(line.raw for line in segment(1, 2).lines))
            with pytest.raises(StoreError):
                store.jobs()
        finally:
            cluster.start()
        assert service.ingest(b"\n".join(line.raw for line in segment(1, 2).lines)).accepted == 1
        assert held(store) == [0, 1, 2]


def test_a_commit_whose_answer_is_lost_counts_once(database_url, story):
    """Sent again after a connection was lost in the middle of its commit, a segment is there once."""
    with closing(Store(database_url)) as store:
        service = Service(store, Settings(), clock=lambda: NOW)
        bodies = list(story("a").bodies().values())
        for number, body in enumerate(bodies):
            if number == 1:
                lose_next_answer(store)
                with pytest.raises(StoreError, match="cannot tell"):
                    service.ingest(body)
            service.ingest(body)
        page = msgspec.json.encode(page_answer(service.page("a", NOW)))
    with closing(Store(database_url)) as store:
        again = Service(store, Settings(), clock=lambda: NOW)
        assert msgspec.json.encode(page_answer(again.page("a", NOW))) == page
        assert len([e for batch in store.events("a") for e in batch]) == len(story("a").events)


def lose_next_answer(store):
    """The next commit is done by the server, and its connection cut before the answer is read."""
    dialect = store.transactions.engine.dialect
    commit = dialect.do_commit

    def cut(dbapi_connection):
        dialect.do_commit = commit
        commit(dbapi_connection)
        raise dialect.dbapi.OperationalError("server closed the connection unexpectedly")

    dialect.do_commit = cut


def test_a_server_that_does_not_answer_is_named_without_its_password(tmp_path):
    """A URL that leads nowhere is refused in one sentence that hides the password."""
    with pytest.raises(StoreError, match="cannot open the database") as caught:
        Store(f"postgresql://ett:secret@/none?host={tmp_path}")
    assert "secret" not in str(caught.value)


def test_a_late_commit_is_not_missed(database_url):
    """Who follows the arrivals sees a segment that was begun first and committed last, in its place."""
    with closing(Store(database_url, Shard(0, 1))) as store:
        start = store.horizon()
        engine = create_engine(sqlalchemy_url(database_url))
        with engine.connect() as slow:
            slow.execute(text("SELECT pg_current_xact_id()"))
            kept = store.append(segment(0), 10.0)
            assert store.arrivals(start) == []
            slow.commit()
        engine.dispose()
        assert store.arrivals(start) == [(kept.place, "j")]
        assert store.arrivals(kept.place) == []


@pytest.mark.parametrize("lacking", [set(), {0}, {2}, {1, 4}, {0, 1, 2, 3, 4}])
def test_places_of_another_server_become_places_of_this_one(database_url, lacking):
    """A snapshot holds the same segments as before, whatever order the other server gave them."""
    with closing(Store(database_url)) as store:
        places = [store.append(segment(number), 10.0).place for number in range(5)]
        held_ids = {place.segment_id for number, place in enumerate(places) if number not in lacking}
        with store.transactions.writing() as connection:
            for row_id in (place.segment_id for place in places):
                changed = segments.update().where(segments.c.id == row_id)
                connection.execute(changed.values(transaction_id=FAR + (row_id not in held_ids) - row_id % 2))
        beyond = [row_id for row_id in held_ids if row_id % 2 == 0]
        store.save_snapshots([Snapshot("j", Place(FAR - 1, LAST_ID), beyond, b"")], "code")
    with closing(Store(database_url)) as store:
        known = store.snapshot("j", "code")
        after = {stored.place.segment_id for stored in store.segments_after("j", known.place)}
        assert after - set(known.beyond) == {place.segment_id for place in places} - held_ids
        assert store.append(segment(5), 10.0).place > known.place
        assert held(store) == [0, 1, 2, 3, 4, 5]


def test_many_exporter_threads_read_while_others_write(database_url):
    """Readers see whole segments only."""
    with closing(Store(database_url)) as store:
        stop = threading.Event()
        sizes = set()

        def read():
            while not stop.is_set():
                sizes.update(len(batch) for batch in store.events("j"))

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            for n in range(0, 200, 10):
                store.append(segment(*range(n, n + 10)), 10.0)
            stop.set()
            for reader in readers:
                reader.result()
        assert sizes <= {10}
        assert len(held(store)) == 200


def test_senders_are_told_to_try_again_while_the_server_is_away(exporters, cluster, database_url, story):
    """Over HTTP: 503 with Retry-After for segments and readers, and the same process goes on afterwards."""
    running = exporters("--database", database_url)
    bodies = list(story("a").bodies().values())
    running.send(bodies[0]).raise_for_status()
    cluster.stop()
    try:
        refused = running.send(bodies[1])
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) > 0
        assert "database" in refused.json()["error"]
        assert running.http.get("/healthz").status_code == 200
        assert running.job("a")["state"]
    finally:
        cluster.start()
    for body in bodies:
        running.send(body).raise_for_status()
    assert (running.job("a")["wall_s"], running.job("a")["samples"]) == (142.0, 2 * 9 * 80)


def test_a_commit_that_was_refused_is_not_in_doubt(database_url):
    """Where the server says that it did not commit, nothing needs to be folded anew."""
    check = text(
        "ALTER TABLE jobs ADD CONSTRAINT never UNIQUE (last_received_at) DEFERRABLE INITIALLY DEFERRED"
    )
    with closing(Store(database_url)) as store:
        with store.transactions.writing() as connection:
            connection.execute(check)
        store.append(segment(0), 10.0)
        with pytest.raises(StoreError, match="never") as caught:
            store.append(segment(0, job_id="k"), 10.0)
        assert not isinstance(caught.value, InDoubtError)
        assert held(store, "k") == []
        assert len(store.append(segment(0, job_id="k"), 11.0).events) == 1


def test_a_database_that_was_read_only_is_written_to_again(database_url, story):
    """Sessions that began meanwhile stay read-only; they are not used on."""
    bodies = list(story("nightly").bodies().values())
    admin = create_engine(sqlalchemy_url(database_url), isolation_level="AUTOCOMMIT")
    with closing(Store(database_url)) as store, admin.connect() as connection:
        service = Service(store, Settings(), clock=lambda: NOW)
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
        store.transactions.engine.dispose()
        for _ in range(2):
            with pytest.raises(StoreError, match="read-only"):
                service.ingest(bodies[0])
        connection.execute(text(f"ALTER DATABASE {name} RESET default_transaction_read_only"))
        assert service.ingest(bodies[0]).accepted == bodies[0].count(b"\n")
    admin.dispose()
