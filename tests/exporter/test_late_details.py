"""Details of a job whose ranks' events come hours after each other: in order once no more comes late."""

from __future__ import annotations

from contextlib import closing

import pytest
from backlogs import IN_TIME, RANKS
from msgspec.structs import replace
from opened import NOW, Opened

from ett_core.events import JobEnd, StepSeconds, encode
from ett_exporter import folds
from ett_exporter.folds import CALM_S
from ett_exporter.store import Store

FIELDS = ("stragglers", "step_spread", "async_saves")
BACKLOG = [event for events in RANKS for event in events]


@pytest.fixture
def opened(database):
    with closing(Store(database)) as store:
        yield Opened(store)


def send(opened, events, at_once=2000):
    for begin in range(0, len(events), at_once):
        opened.service.ingest_events(b"\n".join(map(encode, events[begin : begin + at_once])))


def found(opened):
    answer = opened.answer("j")
    return {field: answer[field] for field in FIELDS}


@pytest.fixture(scope="module")
def in_time(tmp_path_factory):
    """What is found where all events come in time."""
    with closing(Store(str(tmp_path_factory.mktemp("in_time") / "ett"))) as store:
        opened = Opened(store)
        send(opened, IN_TIME, at_once=50)
        assert not opened.service.jobs.by_id["j"].is_late
        return found(opened)


def test_a_backlog_is_put_in_order_when_no_more_of_it_comes(opened, in_time):
    send(opened, BACKLOG[:-3000])
    opened.now += CALM_S - 1
    send(opened, BACKLOG[-3000:])
    opened.now += CALM_S - 1
    assert found(opened) != in_time
    opened.now += 1
    assert found(opened) == in_time
    assert not opened.service.jobs.by_id["j"].is_late


def test_a_job_that_goes_on_after_its_backlog_stays_in_order(opened, in_time):
    """Its other ranks, of which much is at hand, are compared with what comes then."""
    send(opened, BACKLOG[:-3000])
    opened.now += CALM_S
    found(opened)
    send(opened, BACKLOG[-3000:])
    opened.now += CALM_S
    assert found(opened) == in_time


def test_after_a_start_a_backlog_is_put_in_order(opened, in_time):
    """From a snapshot that knows that something came late, or from the events alone."""
    send(opened, BACKLOG)
    opened.service.upkeep.save_snapshots(0)
    again = Opened(opened.store, NOW + CALM_S)
    again.service.upkeep.build()
    assert again.service.jobs.by_id["j"].is_late
    assert found(again) == in_time


@pytest.mark.parametrize("grace_s", [0.0, 300.0])
def test_rows_of_a_job_that_is_over_are_written_in_order(database, in_time, grace_s):
    """They wait for it, however short the grace is."""
    end = JobEnd(
        job_id="j", writer="end", seq=0, attempt=1, rank=0, time=IN_TIME[-1].time + 1, status="succeeded"
    )
    with closing(Store(database)) as store:
        opened = Opened(store, ended_grace_s=grace_s)
        send(opened, [*BACKLOG, end])
        opened.now += 1
        opened.clean()
        assert store.closed_job("j") is None
        opened.now += max(CALM_S, grace_s) + 1
        opened.clean()
        page = store.closed_job("j")
        assert page is not None
        assert list(page.stragglers) == in_time["stragglers"]
        assert page.step_spread == in_time["step_spread"]


def test_of_two_events_under_one_key_one_counts_in_order_too(opened, in_time):
    """Those of another process under the same name, which is slow, came first, but lie an hour later."""
    other = [event for event in RANKS[1] if event.attempt == 0][:300]
    slow = StepSeconds(10, 90.0, 9.0)
    send(opened, [replace(event, time=event.time + 3600, step_seconds=slow) for event in other])
    send(opened, BACKLOG[:-3000])
    opened.answer("j")
    send(opened, BACKLOG[-3000:])
    opened.now += CALM_S
    assert found(opened) == in_time


def test_a_job_too_large_for_it_is_left_as_it_came_and_closes(opened, in_time, monkeypatch):
    monkeypatch.setattr(folds, "ORDERED_EVENTS", 100)
    send(opened, BACKLOG)
    opened.now += CALM_S
    assert found(opened) != in_time
    assert not opened.service.jobs.by_id["j"].is_late
