"""Segments of jobs that are over, put together: the same lines in the same order, in few rows."""

from __future__ import annotations

import itertools
import os
import random
import sys
from collections import Counter
from contextlib import ExitStack, closing

import msgspec
import pytest
from opened import DAY_S, NOW, Opened
from sqlalchemy import text

from ett_core.accounting import JobFold
from ett_core.events import encode
from ett_exporter import merging
from ett_exporter.closed import ClosedJob
from ett_exporter.errors import StoreError
from ett_exporter.live import LiveJob
from ett_exporter.owners import Shard
from ett_exporter.segment_rows import merged, unpacked
from ett_exporter.store import Store

LATER = NOW + 20 * DAY_S


def rows_of(store):
    """Writer, ranges and lines of each row."""
    query = text("SELECT writer, held, lines_zlib FROM segments ORDER BY id")
    with store.transactions.reading() as connection:
        found = connection.execute(query).all()
    return [(writer, held, unpacked(bytes(blob)).split(b"\n")) for writer, held, blob in found]


def lines_of(store):
    return [line for _, _, lines in rows_of(store) for line in lines]


def pieces_of(story):
    """Some lines of each writer in turn."""
    split = [body.splitlines(keepends=True) for body in story.bodies().values()]
    turns = itertools.zip_longest(
        *([b"".join(own[at : at + 3]) for at in range(0, len(own), 3)] for own in split)
    )
    return [piece for turn in turns for piece in turn if piece]


def at_most(times):
    """Goes on so often."""
    rounds = itertools.count()
    return lambda: next(rounds) < times


def told_to(store, *pieces):
    """A service that was sent these when they happened, and is asked long after."""
    opened = Opened(store, NOW)
    for piece in pieces:
        opened.service.ingest(piece)
    opened.now = LATER
    return opened


def test_the_segments_of_a_job_that_is_over_become_one_row(database, story):
    """All lines in the order in which they came, with the numbers of every writer."""
    told = story("a")
    with closing(Store(database)) as store:
        opened = told_to(store, *pieces_of(told))
        before, lines = opened.answer("a"), lines_of(store)
        assert len(rows_of(store)) > 10
        opened.clean()
        assert opened.kind("a") is ClosedJob
        ((writer, held, kept),) = rows_of(store)
        assert (writer, kept) == ("", lines)
        numbers = {
            writer: [[0, count - 1]] for writer, count in Counter(e.writer for e in told.events).items()
        }
        assert msgspec.json.decode(held) == numbers
        assert opened.answer("a") == before
        assert store.mergeable() == []
        opened.clean()
        assert lines_of(store) == lines


def test_what_is_sent_again_counts_once_and_what_is_new_counts(database, story):
    """Repeats are known by their numbers and content; another line under a held number is kept as well."""
    told = story("a")
    with closing(Store(database)) as store:
        opened = told_to(store, *pieces_of(told))
        opened.clean()
        assert [opened.service.ingest(piece).accepted for piece in pieces_of(told)] == [0] * len(
            pieces_of(told)
        )
        assert len(rows_of(store)) == 1
        other = msgspec.structs.replace(told.events[5], time=told.events[5].time + 1)
        assert opened.service.ingest(encode(other)).accepted == 1
        assert opened.service.ingest(encode(other)).accepted == 0
        fold = JobFold("a")
        fold.add([*told.events, other])
        assert opened.service.page("a", LATER).view.account == fold.account(LATER)
        opened.now += DAY_S
        opened.clean()
        assert [bool(held) for _, held, _ in rows_of(store)] == [True, True]
        assert [opened.service.ingest(piece).accepted for piece in (encode(other), *pieces_of(told))] == [
            0
        ] * (1 + len(pieces_of(told)))


def test_a_job_that_goes_on_is_left_alone(database, story):
    """Nothing is put together of a job that is not over, nor of one of which something came since."""
    with closing(Store(database)) as store:
        opened = Opened(store, NOW)
        going, over = story("going", ended=False), story("over")
        for piece in [*pieces_of(going), *pieces_of(over)]:
            opened.service.ingest(piece)
        opened.now += 3600.0
        opened.service.upkeep.close_jobs(opened.now)
        assert store.mergeable() == ["over"]
        before = rows_of(store)
        late = msgspec.structs.replace(over.events[-1], writer="late", seq=0)
        opened.service.ingest(encode(late))
        assert not store.merge("over")
        assert not store.merge("going")
        assert rows_of(store)[:-1] == before


def test_a_merge_that_fails_changes_nothing(database, story, monkeypatch):
    """Where the process dies, or the disk is full, in the middle, all rows are as before; then it goes on."""
    with closing(Store(database)) as store:
        opened = told_to(store, *pieces_of(story("a")))
        opened.service.upkeep.close_jobs(opened.now)
        before = rows_of(store)
        with monkeypatch.context() as broken:
            broken.setattr(merging, "merged", lambda _: None)
            with pytest.raises(Exception, match=r"(?i)null"):
                store.merge("a")
        assert rows_of(store) == before
        opened.clean()
        assert len(rows_of(store)) == 1


def test_a_segment_that_is_damaged_stays_alone_and_is_told_once(database, story, caplog):
    """All others are put together; what it held is kept when it is sent again, and nothing counts twice."""
    told = story("a")
    with closing(Store(database)) as store:
        opened = told_to(store, *pieces_of(told))
        before = opened.answer("a")
        opened.service.upkeep.close_jobs(opened.now)
        with store.transactions.writing() as connection:
            damage = text(
                "UPDATE segments SET lines_zlib = :blob WHERE id = (SELECT max(id) - 3 FROM segments)"
            )
            connection.execute(damage, {"blob": b"damaged"})
        for opened.now in (LATER, LATER + 60.0, LATER + 120.0):
            opened.clean()
        assert store.mergeable() == []
        assert opened.kind("a") is ClosedJob
        assert [record.getMessage().split(" of ")[1] for record in caplog.records] == [
            "job a is damaged; it stays as it is"
        ]
        with store.transactions.reading() as connection:
            kept = connection.execute(text("SELECT writer, held IS NULL FROM segments ORDER BY id")).all()
        assert [(bool(writer), bool(is_single)) for writer, is_single in kept] == [
            (False, False),
            (True, False),
            (False, False),
        ]
        again = sum(opened.service.ingest(piece).accepted for piece in pieces_of(told))
        assert 0 < again <= 3
        assert opened.answer("a") == before | {"as_of": opened.now}
        for opened.now in (LATER + DAY_S, LATER + DAY_S + 60.0):
            opened.clean()
        assert opened.kind("a") is ClosedJob
        assert opened.answer("a") == before | {"as_of": opened.now}
        assert sum(opened.service.ingest(piece).accepted for piece in pieces_of(told)) == 0


def test_jobs_that_were_let_go_of_before_are_put_together_as_well(database, story):
    """As after an update of the exporter: they are over, closed and not in memory."""
    with closing(Store(database)) as store:
        opened = told_to(store, *pieces_of(story("a")))
        opened.service.upkeep.close_jobs(LATER)
        before = opened.answer("a")
    with closing(Store(database)) as store:
        again = Opened(store, LATER)
        assert again.kind("a") is ClosedJob
        again.clean()
        assert len(rows_of(store)) == 1
        assert again.kind("a") is ClosedJob
        assert len(again.service.roster) == 0
        assert again.answer("a") == before


@pytest.mark.parametrize("seed", range(200 if os.environ.get("ETT_FULL") == "1" else 6))
def test_merging_at_any_moment_changes_no_answer(tmp_path, story, monkeypatch, seed):
    """Between any two segments: closed, put together in part or whole, restarted, sent again."""
    chance = random.Random(seed)
    monkeypatch.setattr(merging, "MERGED_BYTES", chance.choice([1, 3000, 10**6]))
    monkeypatch.setattr(merging, "PAGE_ROWS", chance.choice([1, 2, 64]))
    pieces = pieces_of(story("a"))
    if seed % 2:
        chance.shuffle(pieces)
    path = str(tmp_path / "ett")
    opened = Opened(Store(path), retain_days=0.0)
    sent = []
    for piece in pieces:
        opened.service.ingest(piece)
        sent.append(piece)
        if chance.random() < 0.3:
            opened.now += 30 * DAY_S
            opened.clean(at_most(chance.choice([1, 3, 1000])))
        if chance.random() < 0.3:
            assert opened.service.ingest(chance.choice(sent)).accepted == 0
        if chance.random() < 0.2:
            opened.service.upkeep.save_snapshots(0)
        if chance.random() < 0.2:
            opened.store.close()
            opened = Opened(Store(path), opened.now, retain_days=0.0)
        if chance.random() < 0.1:
            with opened.store.transactions.writing() as connection:
                connection.execute(text("UPDATE snapshots SET format = 'of other code'"))
    opened.now += 30 * DAY_S
    with closing(opened.store):
        opened.clean()
        assert sorted(lines_of(opened.store)) == sorted(b"".join(pieces).splitlines())
        assert lines_of(opened.store) == b"".join(pieces).splitlines()
        answer = opened.answer("a")
        assert opened.kind("a") in (ClosedJob, LiveJob)
    with closing(Store(str(tmp_path / "plain"))) as store:
        plain = Opened(store, opened.now, retain_days=0.0)
        for piece in pieces:
            plain.service.ingest(piece)
        assert answer == plain.answer("a")


def test_without_zstandard_segments_are_packed_otherwise(monkeypatch):
    """What was packed with it is then refused with the name of what is missing."""
    lines = b"\n".join(b'{"seq":%d}' % number for number in range(100))
    packed = merged(lines)
    assert unpacked(packed) == lines
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert unpacked(merged(lines)) == lines
    with pytest.raises(StoreError, match="package zstandard"):
        unpacked(packed)


@pytest.mark.service("postgresql")
def test_replicas_put_together_what_each_has_accounted_for(database_url, story):
    """Segments that came by another replica count once, before and after, and after starting again."""
    pieces = pieces_of(story("a"))
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(Store(database_url, Shard(n, 2)))) for n in range(2)]
        own, other = sorted(
            (Opened(store) for store in stores), key=lambda opened: not opened.store.owns("a")
        )
        for number, piece in enumerate(pieces):
            (own if number % 2 else other).service.ingest(piece)
        while own.service.jobs.follow():
            pass
        own.now = other.now = LATER
        before = own.answer("a")
        other.clean()
        assert len(rows_of(own.store)) == len(pieces)
        own.clean()
        assert len(rows_of(own.store)) == 1
        while own.service.jobs.follow():
            pass
        assert own.answer("a") == before
        assert [other.service.ingest(piece).accepted for piece in pieces] == [0] * len(pieces)
    with closing(Store(database_url)) as store:
        with store.transactions.writing() as connection:
            connection.execute(text("DELETE FROM snapshots"))
        assert Opened(store, LATER).answer("a") == before
