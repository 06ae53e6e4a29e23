"""What comes for a job whose events are deleted: what they told stays, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from opened import DAY_S, NOW, Opened, started_again

from ett_core.accounting import JobFold
from ett_core.events import (
    AnyEvent,
    AttemptEnd,
    AttemptStart,
    Clock,
    Failure,
    FirstBatch,
    Heartbeat,
    JobEnd,
    Progress,
    encode,
)
from ett_exporter import arrivals, past
from ett_exporter.closed import ClosedJob
from ett_exporter.store import Store

LATER = NOW + 91 * DAY_S


@contextmanager
def pruned(database: str, *stories: Any) -> Iterator[Opened]:
    """An exporter in which jobs are over and their events deleted."""
    store = Store(database)
    try:
        opened = Opened(store)
        for each in stories:
            opened.send(each)
        opened.now = LATER
        opened.clean()
        for each in stories:
            assert opened.segments(each.job_id) == 0
        yield opened
    finally:
        store.close()


def sent(opened: Opened, *events: AnyEvent) -> Any:
    return opened.service.ingest_events(b"\n".join(map(encode, events)))


def many_reports(blank_story: Any) -> Any:
    """A job of so many reports that its first ones are not at hand."""
    story = blank_story("long", begin=NOW - 2000)
    story.tell(0.0, AttemptStart, world_size=1, accelerators=1)
    story.tell(1.0, FirstBatch, step=0)
    for report in range(1, 101):
        story.tell(1.0 + 10 * report, Progress, step=report, steps=1, samples=8.0)
    story.tell(1010.0, AttemptEnd, status="succeeded")
    story.tell(1011.0, JobEnd, rank=-1, status="succeeded")
    return story


def test_what_was_said_after_the_end_of_the_job_changes_no_old_attempt(database, blank_story):
    """A rank that spoke on after the launcher had ended the job costs the old attempt nothing later."""
    old = many_reports(blank_story)
    for second in range(60):
        old.tell(1012.0 + 5 * second, Heartbeat)
    with pruned(database, old) as opened:
        start = {"job_id": "long", "writer": "new", "seq": 0, "attempt": 1, "rank": 0, "time": LATER - 60}
        again = AttemptStart(**start, world_size=1)
        assert sent(opened, again).rejected_total == 0
        fold = JobFold("long")
        fold.add([*old.events, again])
        assert opened.service.page("long", opened.now).view.account == fold.account(opened.now)


LATE: dict[str, Callable[[dict[str, Any]], AnyEvent]] = {
    "a report": lambda said: Progress(**said, time=NOW - 1500, step=25, steps=5, samples=0.0),
    "a failure": lambda said: Failure(**said, time=NOW - 1500, message="late"),
}


@pytest.mark.parametrize("late", LATE.values(), ids=LATE.keys())
def test_late_words_on_old_attempts_are_refused(database, blank_story, late):
    """What would belong among deleted events is answered so, and every figure stays."""
    with pruned(database, many_reports(blank_story)) as opened:
        before = opened.answer("long")
        said = {"job_id": "long", "writer": "late", "seq": 0, "attempt": 0, "rank": 0, "node": "n0"}
        answer = sent(opened, late(said))
        assert (answer.accepted, answer.rejected_total) == (0, 1)
        assert answer.rejected[0].reason == (
            "kept, but not counted: it is of a time of which the events were deleted, and no longer changes "
            "what was told"
        )
        for _ in range(2):
            now = opened.answer("long")
            for name in ("wall_s", "components", "attempt_list", "failures"):
                assert now[name] == before[name]
            opened.now += DAY_S
            opened.clean()
        assert opened.kind("long") is ClosedJob


def test_numbers_that_come_late_after_a_deletion_are_kept_once(database, story, monkeypatch):
    """However many a writer has lost: what was deleted cannot be asked for them."""
    monkeypatch.setattr(arrivals, "RANGES_NOTED", 3)
    with pruned(database, story("nightly")) as opened:
        said = {"job_id": "nightly", "writer": "new", "attempt": 9, "rank": 0}
        beats = [Heartbeat(**said, seq=seq, time=LATER - 60 + seq) for seq in range(20)]
        for _ in range(2):
            answers = [sent(opened, beat) for beat in [*beats[::2], *beats[1::2]]]
            assert {answer.rejected_total for answer in answers} == {0}
            accepted = [answer.accepted for answer in answers]
        assert accepted == [0] * 20
        kept = [event.seq for batch in opened.store.events("nightly") for event in batch]
        assert sorted(kept) == list(range(20))


def test_a_clock_that_is_told_late_changes_nothing_old(database, story):
    """Neither the account nor the details are folded anew from what is not there any more."""
    with pruned(database, story("nightly")) as opened:
        before = opened.answer("nightly")
        said = {"job_id": "nightly", "writer": "exporter", "seq": 0, "attempt": 1, "rank": -1, "time": LATER}
        sent(opened, Clock(**said, of_writer="a1r0-nightly", offset_s=30.0))
        now = opened.answer("nightly")
        for name in ("wall_s", "components", "samples", "labels", "checkpoint_count"):
            assert now[name] == before[name]


def test_another_event_under_a_known_number_changes_nothing_old(database, story):
    """The first one counts: there is no history to look at both again."""
    with pruned(database, story("nightly")) as opened:
        before = opened.answer("nightly")
        first = started_again(story, opened)[0]
        sent(opened, first)
        sent(opened, msgspec.structs.replace(first, time=first.time + 1.0))
        now = opened.answer("nightly")
        assert now["attempts"] == before["attempts"] + 1
        assert now["attempt_list"][:-2] == before["attempt_list"][:-1]


def test_other_code_goes_on_from_what_older_code_has_told(database, story, monkeypatch):
    """An upgrade between the deletion and the next start does not begin the account anew."""
    with pruned(database, story("nightly")):
        pass
    monkeypatch.setattr(past, "code_format", lambda: "newer code")
    store = Store(database)
    try:
        opened = Opened(store, LATER)
        again = started_again(story, opened)
        sent(opened, *again)
        fold = JobFold("nightly")
        fold.add([*story("nightly").events, *again])
        assert opened.service.page("nightly", opened.now).view.account == fold.account(opened.now)
    finally:
        store.close()


def test_a_job_that_was_started_again_survives_restarts_and_a_second_retention(database, story):
    """What came after the deletion can still be put in order; once that is deleted as well, it stays."""
    with pruned(database, story("nightly")) as opened:
        again = started_again(story, opened)
        *most, late, last = sorted(again, key=lambda event: event.time)
        sent(opened, *most)
        opened.service.upkeep.save_snapshots(0)
    store = Store(database)
    try:
        opened = Opened(store, LATER)
        assert sent(opened, last, late).rejected_total == 0
        fold = JobFold("nightly")
        fold.add([*story("nightly").events, *again])
        assert opened.service.page("nightly", opened.now).view.account == fold.account(opened.now)
        opened.now += 91 * DAY_S
        before = opened.answer("nightly")
        opened.clean()
        opened.clean()
        assert opened.segments("nightly") == 0
        assert opened.answer("nightly") == before
        once_more = started_again(story, opened)
        sent(opened, *once_more)
        fold.add(once_more)
        assert opened.service.page("nightly", opened.now).view.account == fold.account(opened.now)
    finally:
        store.close()
