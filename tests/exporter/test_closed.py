"""Jobs that are over: their rows, their snapshots, and what retention leaves of them."""

from __future__ import annotations

import base64
import json
import logging
import os
import random
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from opened import DAY_S, NOW, Opened
from sqlalchemy import text

from ett_core import details as job_details
from ett_core.accounting import JobFold, snapshot
from ett_core.details import JobDetails
from ett_core.events import (
    AttemptEnd,
    AttemptStart,
    CheckpointDurable,
    CheckpointFailed,
    Evidence,
    FirstBatch,
    Heartbeat,
    JobEnd,
    encode,
)
from ett_exporter import reads
from ett_exporter.answers import page_answer
from ett_exporter.clock_readings import STEADY_S, Reading
from ett_exporter.closed import ClosedJob, between, page_of, rows_of
from ett_exporter.failure_reads import FailureReads
from ett_exporter.history import FleetHistory
from ett_exporter.live import LiveJob
from ett_exporter.queries import FailuresQuery, JobsQuery
from ett_exporter.reads import Reads
from ett_exporter.settings import Limits
from ett_exporter.snapshots import pack, unpack
from ett_exporter.store import Store
from ett_exporter.views import Counts

BEGIN = NOW - 200.0


def test_rows_give_back_the_page(database, story):
    """The page of a job is what its rows were made of, to the last digit; windows are of when one asks."""
    with closing(Store(database)) as store:
        opened = Opened(store)
        opened.send(story("a"))
        page = opened.service.page("a", NOW)
        rows = rows_of(page)
        details = [
            [row["detail"] for row in part] for part in (rows.attempts, rows.failures, rows.checkpoints)
        ]
        again = page_of(rows.job["detail"], *details, rows.timeline)
        asked_now = replace(again, view=replace(again.view, windows=page.view.windows))
        assert page_answer(asked_now) == page_answer(page)
        assert again.view.account == page.view.account
        assert len(rows.attempts) == 2
        assert len(rows.failures) == 1
        assert len(rows.checkpoints) == 4


@pytest.mark.parametrize("times", [(None, None), (NOW - 170, NOW - 100), (NOW, None), (None, NOW - 190)])
def test_a_part_of_a_timeline_is_that_of_the_fold(tmp_path, story, times):
    """Between any two moments the rows hold what the fold gives."""
    with closing(Store(str(tmp_path / "ett"))) as store:
        opened = Opened(store)
        opened.send(story("a"))
        whole = opened.service.page("a", NOW).timeline
        assert between(whole, *times) == list(opened.service.page("a", NOW, *times).timeline)


def test_parts_of_a_closed_job_are_those_of_the_fold(tmp_path, story):
    """Cut between any moments, the seconds of a job are the same before and after it is closed."""
    edges = [NOW - 250.0, NOW - 170.0, NOW - 100.0, NOW - 95.5, NOW + 10.0]
    with closing(Store(str(tmp_path / "ett"))) as store:
        opened = Opened(store)
        opened.send(story("a"))
        before = opened.service.spans("a", NOW, edges)
        opened.now = NOW + 10 * DAY_S
        opened.clean()
        assert opened.kind("a") is ClosedJob
        assert opened.service.spans("a", opened.now, edges) == before
        assert [bool(part) for part in before] == [True] * 4
        assert opened.service.spans("nobody", NOW, edges) == ()


def test_few_closed_jobs_stay_in_memory_and_all_are_answered(tmp_path, story):
    """Asked for again and again, each answers as it did; no more views are kept than there is room for."""
    with closing(Store(str(tmp_path / "ett"))) as store:
        opened = Opened(store, limits=Limits(closed_views=2))
        for name in "abcdef":
            opened.send(story(name))
        opened.now = NOW + 10 * DAY_S
        opened.clean()
        first = opened.service.views(opened.now)
        assert [view.account.job_id for view in first] == list("abcdef")
        for _ in range(3):
            assert opened.service.views(opened.now) == first
            assert len(opened.service.jobs.closed_views) == 2


def test_jobs_that_left_memory_are_read_while_one_waits_and_counted_until_then(tmp_path, story, monkeypatch):
    """Of a time that they lie before they are not missed; who asks again finds more of them."""
    with closing(Store(str(tmp_path / "ett"))) as store:
        opened = Opened(store)
        for name in "abcdef":
            opened.send(story(name))
        opened.now = NOW + 10 * DAY_S
        opened.clean()
        history = FleetHistory()
        one, many = Reads(opened.service), FailureReads(opened.service, history)
        monkeypatch.setattr(reads, "WAIT_S", 0.0)
        found = one.jobs(JobsQuery())
        assert (found.total, found.missing) == (0, 6)
        assert many.failures(FailuresQuery(window="90d")).missing == 6
        recent = many.failures(FailuresQuery(window="24h"))
        assert (recent.total, recent.missing) == (0, 0)
        for name in "abc":
            opened.service.view(name, opened.now)
        found = one.jobs(JobsQuery())
        assert ([row.job_id for row in found.jobs], found.missing) == (["a", "b", "c"], 3)
        monkeypatch.setattr(reads, "WAIT_S", 60.0)
        found = one.jobs(JobsQuery())
        assert (found.total, found.missing) == (6, 0)


def test_a_closed_job_answers_the_same_without_its_events(database, story):
    """After the retention the segments are gone; page, timeline and list of jobs are as before."""
    with closing(Store(database)) as store:
        opened = Opened(store)
        opened.send(story("old"))
        opened.send(story("going", ended=False))
        opened.now = NOW + 89 * DAY_S
        opened.clean()
        before = opened.answer("old")
        assert opened.kind("old") is ClosedJob
        assert opened.segments("old") > 0
        opened.now = NOW + 91 * DAY_S
        opened.clean()
        assert opened.segments("old") == 0
        assert opened.answer("old") == before | {"as_of": opened.now}
        assert opened.answer("old", NOW - 170, NOW - 100)["timeline"]
        views = {view.account.job_id: view for view in opened.service.views(opened.now)}
        assert views["old"].account.wall_s == 142.0
        after = opened.answer("old")
    with closing(Store(database)) as store:
        again = Opened(store, NOW + 91 * DAY_S)
        assert again.kind("old") is ClosedJob
        assert again.answer("old") == after


def test_a_job_without_an_end_is_closed_once_it_was_abandoned(database, story):
    """A job that only fell silent is closed when the accounting says that it is over."""
    with closing(Store(database)) as store:
        opened = Opened(store)
        opened.send(story("silent", ended=False))
        opened.now = NOW + 3600
        opened.clean()
        assert opened.kind("silent") is LiveJob
        opened.now = NOW + 91 * DAY_S
        opened.clean()
        answer = opened.answer("silent")
        assert opened.segments("silent") == 0
        assert (answer["state"], answer["finished"], answer["wall_s"]) == ("failed", True, 140.0)


def test_events_that_come_after_a_job_was_closed_count(database, story):
    """A job whose rows are written goes on when something comes, and its rows are then written anew."""
    told = story("a")
    bodies = told.bodies()
    late = bodies.pop("a1r0-a")
    with closing(Store(database)) as store:
        opened = Opened(store)
        for body in bodies.values():
            opened.service.ingest(body)
        opened.now = NOW + 20 * DAY_S
        opened.clean()
        assert opened.kind("a") is ClosedJob
        samples = opened.answer("a")["samples"]
        opened.service.ingest(late)
        assert opened.kind("a") is LiveJob
        whole = opened.answer("a")
        assert whole["samples"] == 2 * 9 * 80 > samples
        opened.now += DAY_S
        opened.clean()
        assert opened.kind("a") is ClosedJob
        assert opened.answer("a") == whole | {"as_of": opened.now}


def test_a_job_that_is_started_again_after_its_events_are_gone_goes_on(database, story):
    """The old attempts come from the last snapshot, the new one from its events; repeats still count once."""
    with closing(Store(database)) as store:
        opened = Opened(store)
        opened.send(story("nightly"))
        opened.now = NOW + 91 * DAY_S
        opened.clean()
        assert opened.segments("nightly") == 0
        before = opened.answer("nightly")
        assert set(opened.send(story("nightly"))) == {0}
        fold = JobFold("nightly")
        fold.add(story("nightly").events)
        for event in story("nightly", opened.now - 300).events:
            shifted = msgspec.structs.replace(event, attempt=event.attempt + 5, writer="n" + event.writer)
            fold.add([shifted])
            opened.service.ingest(encode(shifted))
        assert opened.answer("nightly")["attempts"] == 2 * before["attempts"]
        assert opened.service.page("nightly", opened.now).view.account == fold.account(opened.now)


def test_attempts_that_share_a_number_keep_a_cause_each(tmp_path, blank_story):
    """Where a restart forgot to count, each failure says how it ended, and what was told of it alone."""
    story = blank_story("a")
    for at, status in ((0.0, "timed_out"), (50.0, "failed")):
        told = {"writer": f"w{at}", "job_id": "a", "attempt": 0, "rank": 0}
        story.events += [
            AttemptStart(**told, seq=0, time=BEGIN + at),
            Evidence(**told, seq=5, time=BEGIN + at + 9, source="log", text=f"evidence of {status}"),
            AttemptEnd(**told, seq=1, time=BEGIN + at + 10, status=status),
        ]
    story.events.append(JobEnd(**told, seq=2, time=BEGIN + 100, status="failed"))
    with closing(Store(str(tmp_path / "ett"))) as store:
        opened = Opened(store)
        opened.send(story)
        live = opened.answer("a")["failure_list"]
        assert len({failure["cause"] for failure in live}) == 2
        lines = [[line["text"] for line in failure["evidence"]] for failure in live]
        assert lines == [["evidence of timed_out"], ["evidence of failed"]]
        opened.now = NOW + 20 * DAY_S
        opened.clean()
        assert opened.kind("a") is ClosedJob
        assert opened.answer("a")["failure_list"] == live


def test_repeats_alone_do_not_write_a_closed_job_again(tmp_path, story):
    """A job that is only sent again is let go of again, its rows untouched."""
    with closing(Store(str(tmp_path / "ett"))) as store:
        opened = Opened(store)
        opened.send(story("a"))
        opened.now = NOW + 20 * DAY_S
        opened.clean()
        with store.transactions.writing() as connection:
            connection.execute(text("UPDATE jobs SET state = 'untouched'"))
        assert set(opened.send(story("a"))) == {0}
        opened.clean()
        assert opened.kind("a") is ClosedJob
        with store.transactions.reading() as connection:
            assert connection.execute(text("SELECT state FROM jobs")).scalar_one() == "untouched"


def test_nothing_is_deleted_without_a_retention(tmp_path, story):
    """--retain 0 keeps the events for ever."""
    with closing(Store(str(tmp_path / "ett"))) as store:
        opened = Opened(store, retain_days=0.0)
        opened.send(story("a"))
        opened.now = NOW + 1000 * DAY_S
        opened.clean()
        assert sum(map(len, store.events("a"))) == len(story("a").events)


def test_pruning_that_was_cut_short_goes_on(tmp_path, story):
    """Where an exporter died in the middle of deleting, the next one deletes the rest."""
    path = str(tmp_path / "ett")
    with closing(Store(path)) as store:
        opened = Opened(store)
        opened.send(story("a"))
        opened.now = NOW + 91 * DAY_S
        opened.service.upkeep.close_jobs(opened.now)
        store.write_clock_reading(Reading(opened.now, opened.now - STEADY_S))
        opened.service.upkeep.prune(opened.now, lambda: False)
        assert store.prune("a", most=2) == 2
        assert opened.segments("a") > 0
    with closing(Store(path)) as store:
        again = Opened(store, NOW + 91 * DAY_S)
        again.clean()
        assert again.segments("a") == 0
        assert again.answer("a")["wall_s"] == 142.0


def count_reads(store, monkeypatch):
    read = []
    segments_after = store.segments_after

    def counted(job_id, place):
        for stored in segments_after(job_id, place):
            read.append(job_id)
            yield stored

    monkeypatch.setattr(store, "segments_after", counted)
    return read


def test_a_restart_reads_only_what_came_after_the_snapshot(database, story, monkeypatch):
    """Jobs are restored from their snapshots and later segments; every answer is as before."""
    with closing(Store(database)) as store:
        opened = Opened(store)
        bodies = list(story("a").bodies().values())
        for body in bodies[:-2]:
            opened.service.ingest(body)
        opened.send(story("b"))
        opened.service.upkeep.save_snapshots(0)
        assert [job.unsaved_events for job in opened.service.jobs.live()] == [0, 0]
        for body in bodies[-2:]:
            opened.service.ingest(body)
        before = [opened.answer(name) for name in ("a", "b")]
    with closing(Store(database)) as store:
        again = Opened(store)
        read = count_reads(store, monkeypatch)
        again.service.upkeep.build()
        assert read == ["a", "a"]
        assert [again.answer(name) for name in ("a", "b")] == before
        assert again.send(story("a")) == [0] * len(bodies)


def test_what_was_counted_once_is_not_taken_back_by_a_restart(database, blank_story):
    """A counter that falls looks like one that began anew: all of it would count once more."""
    told = blank_story("a", NOW - 900)

    def counted(opened):
        return opened.service.page("a", NOW).view.counts.checkpoints_failed

    with closing(Store(database)) as store:
        opened = Opened(store)
        told.tell(0, AttemptStart, world_size=2)
        told.tell(10, FirstBatch, step=0)
        told.tell(240, CheckpointFailed, step=9)
        told.tell(360, Heartbeat)
        opened.send(told)
        assert counted(opened) == 1
        told.tell(350, CheckpointDurable, rank=1, step=9)  # this word came late
        opened.send(told)
        opened.service.upkeep.save_snapshots(0)
    with closing(Store(database)) as store:
        again = Opened(store)
        assert counted(again) == 1
        assert again.service.page("a", NOW).view.details.checkpoint_failures == 0


def test_a_snapshot_of_an_earlier_version_is_read(story):
    """Of a job whose events are deleted it is all that there is."""
    fold, details = JobFold("a"), JobDetails()
    fold.add(story("a").events)
    details.add(story("a").events)
    first = snapshot.dump(fold)
    blob = len(first).to_bytes(4, "big") + first + job_details.dump(details)
    *folds, counts = unpack(blob, lambda: iter(()), is_cut=True)
    assert counts == Counts()
    counted = Counts({"infrastructure": 2}, 1, 30.5, 4)
    again = unpack(pack(*folds, counted), lambda: iter(()), is_cut=True)
    assert again[2] == counted
    assert again[0].account(NOW) == folds[0].account(NOW) == fold.account(NOW)
    assert again[1].state() == folds[1].state() == details.state()


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE snapshots SET format = 'of other code'",
        "UPDATE snapshots SET blob = x'00'",
        "UPDATE snapshots SET blob = substr(blob, 1, 200)",
    ],
)
def test_a_snapshot_that_does_not_fit_is_ignored(tmp_path, story, monkeypatch, harm, caplog):
    """Of other code, or damaged: the job is folded anew, with the same answer."""
    path = str(tmp_path / "ett")
    with closing(Store(path)) as store:
        opened = Opened(store)
        opened.send(story("a"))
        opened.service.upkeep.save_snapshots(0)
        before = opened.answer("a")
        with store.transactions.writing() as connection:
            connection.execute(text(harm))
    with closing(Store(path)) as store, caplog.at_level(logging.WARNING):
        again = Opened(store)
        read = count_reads(store, monkeypatch)
        assert again.answer("a") == before
        assert len(read) == len(story("a").bodies())
    assert ("folded anew" in caplog.text) == ("blob" in harm)


def test_snapshots_are_made_of_those_with_most_events(tmp_path, story):
    """What waits for a snapshot stays below the bound, and no more is written than that needs."""
    with closing(Store(str(tmp_path / "ett"))) as store:
        opened = Opened(store)
        opened.send(story("long"))
        opened.service.ingest(next(iter(story("short").bodies().values())))
        opened.service.upkeep.save_snapshots(1000)
        long, short = opened.service.jobs.live()
        assert long.unsaved_events > short.unsaved_events > 0
        opened.service.upkeep.save_snapshots(short.unsaved_events, lambda: True)
        assert long.unsaved_events == 0


def test_rows_of_earlier_versions_can_be_read():
    """Rows as the first version with such rows wrote them, of the job `old` of conftest.py."""
    rows = json.loads((Path(__file__).parent / "data" / "closed1.json").read_text())
    details = [[row["detail"] for row in rows[name]] for name in ("attempts", "failures", "checkpoints")]
    page = page_of(rows["job"]["detail"], *details, base64.b64decode(rows["timeline"]))
    answer = msgspec.to_builtins(page_answer(page))
    assert (answer["wall_s"], answer["samples"], answer["state"]) == (142.0, 2 * 9 * 80, "succeeded")
    assert [len(answer[name]) for name in ("attempt_list", "failure_list", "checkpoints")] == [2, 1, 4]
    assert sum(s["end"] - s["start"] for s in answer["timeline"]) == pytest.approx(142.0)


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE jobs SET detail = '{}' WHERE job_id = 'bad'",
        "UPDATE timelines SET stretches_zlib = x'00' WHERE job_id = 'bad'",
    ],
)
def test_rows_that_mean_nothing_hide_no_other_job(tmp_path, story, caplog, harm):
    """Damaged rows are logged; the job is not answered, the others are."""
    with closing(Store(str(tmp_path / "ett"))) as store:
        opened = Opened(store)
        for name in ("bad", "good"):
            opened.send(story(name))
        opened.now = NOW + 20 * DAY_S
        opened.clean()
        with store.transactions.writing() as connection:
            connection.execute(text(harm))
        assert [view.account.job_id for view in opened.service.views(opened.now)] == ["good"]
        assert opened.service.page("bad", opened.now) is None
    assert "the rows of job bad cannot be read" in caplog.text


def test_what_goes_wrong_with_one_job_keeps_nobody_from_the_others(tmp_path, story, monkeypatch, caplog):
    """A job that cannot be folded is logged; the others are folded, saved and closed."""
    path = str(tmp_path / "ett")
    with closing(Store(path)) as store:
        for name in ("bad", "good"):
            Opened(store).send(story(name))
    with closing(Store(path)) as store:
        opened = Opened(store, NOW + 20 * DAY_S)
        monkeypatch.setattr(opened.service.jobs.by_id["bad"], "_build", lambda: 1 // 0)
        opened.service.upkeep.build()
        opened.service.upkeep.save_snapshots(0)
        opened.clean()
        assert opened.service.upkeep.is_ready
        assert opened.kind("good") is ClosedJob
    assert "something is wrong with job bad" in caplog.text


@pytest.mark.parametrize("seed", range(200 if os.environ.get("ETT_FULL") == "1" else 12))
def test_restarts_between_any_two_segments_change_no_answer(tmp_path, story, seed):
    """Lines in any order, repeated, with snapshots and restarts: the answer of all at once."""
    chance = random.Random(seed)
    lines = [line for body in story("a").bodies().values() for line in body.splitlines(keepends=True)]
    by_writer = [body.splitlines(keepends=True) for body in story("a").bodies().values()]
    pieces = [
        own[start : start + chance.randint(1, 6)] for own in by_writer for start in range(0, len(own), 4)
    ]
    if seed % 2:
        chance.shuffle(pieces)
    pieces += [own for own in by_writer if chance.random() < 0.5]
    path = str(tmp_path / "ett")
    opened = Opened(Store(path))
    for piece in pieces:
        opened.service.ingest(b"".join(piece))
        if chance.random() < 0.3:
            opened.service.upkeep.save_snapshots(chance.choice([0, 10]))
        if chance.random() < 0.2:
            opened.answer("a")
        if chance.random() < 0.2:
            opened.store.close()
            opened = Opened(Store(path))
    for own in by_writer:
        opened.service.ingest(b"".join(own))
    with closing(opened.store):
        assert sum(len(batch) for batch in opened.store.events("a")) == len(lines)
        answer = opened.answer("a")
    with closing(Store(str(tmp_path / "plain"))) as store:
        plain = Opened(store)
        plain.send(story("a"))
        assert answer == plain.answer("a")


def test_events_that_come_while_the_clock_was_set_back_are_written_as_well(database, story):
    """What is received at an earlier time than the last of a closed job makes its rows be written anew."""
    bodies = story("a").bodies()
    late = bodies.pop("a1r0-a")
    with closing(Store(database)) as store:
        opened = Opened(store)
        for body in bodies.values():
            opened.service.ingest(body)
        opened.now = NOW + 20 * DAY_S
        opened.clean()
        opened.now = NOW - DAY_S
        opened.service.ingest(late)
    with closing(Store(database)) as store:
        again = Opened(store, NOW + 20 * DAY_S)
        assert again.kind("a") is LiveJob
        again.clean()
        assert again.kind("a") is ClosedJob
        assert again.answer("a")["samples"] == 2 * 9 * 80
