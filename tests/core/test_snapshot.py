"""Folds as bytes: what is loaded answers as if nothing had happened, and no bytes do harm."""

from __future__ import annotations

import os
import random
from itertools import pairwise

import pytest
from event_soup import EPOCH, soups
from hypothesis import given, settings
from hypothesis import strategies as st
from plausible import plausible

from ett_core import details
from ett_core.accounting import JobFold, Settings, blocks, columns, lane_fold, loop
from ett_core.accounting.snapshot import MAGIC, dump, load, wrapped
from ett_core.events import AttemptStart, Cache, Clock, FirstBatch, Heartbeat, Progress, StepSeconds

EXAMPLES = int(os.environ.get("ETT_TEST_EXAMPLES", "60"))
LATER = (0, 30, 1000, 30_000)
SHORT = Settings(late_window_s=5.0)


@pytest.fixture(autouse=True)
def marks_lie_close(monkeypatch):
    """Short histories have several marks and blocks: snapshots hold attempts and events after them."""
    monkeypatch.setattr(lane_fold, "MARK_EVERY", 3)
    monkeypatch.setattr(lane_fold, "TRIM_AT", 6)
    for module in (columns, loop):
        monkeypatch.setattr(module, "BLOCK", 2)
    monkeypatch.setattr(blocks, "MERGED", 2)
    monkeypatch.setattr(blocks, "YOUNG", 1)


def answers(fold, end):
    """What the fold says as of some moments, whole and in windows."""
    found = []
    for now in (end + later for later in LATER):
        windows = [fold.window(end - 400, end - 33.3, now), fold.window(end - 33.3, now, now)]
        found.append((fold.account(now), fold.timeline(now), windows))
    return found


def check(parts, end, limits=SHORT):
    """A fold that is dumped and loaded between the parts answers as one that is given all at once."""
    told = []
    broken = JobFold(parts[0][0].job_id, settings=limits, history=told.copy)
    whole = JobFold(parts[0][0].job_id, settings=limits)
    for part in parts:
        told += part
        broken.add(part)
        whole.add(part)
        broken = load(dump(broken), told.copy, limits)
    assert answers(broken, end) == answers(whole, end)


def cut_into(events, cuts):
    places = sorted({0, len(events), *(cut % (len(events) + 1) for cut in cuts)})
    return [events[a:b] for a, b in pairwise(places)]


@given(soups, st.lists(st.integers(0, 100), max_size=3))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_soup_with_restarts_in_it(events, cuts):
    """Whatever arrives, a restart in between changes no answer."""
    check(cut_into(events, cuts), EPOCH + 900)


@pytest.mark.parametrize("shuffled", [False, True])
def test_plausible_histories_with_restarts_in_them(shuffled):
    """The same for histories that real jobs write, in order and not."""
    for seed in range(80):
        source = random.Random(seed)
        events, now = plausible(source)
        if shuffled:
            events.sort(key=lambda event, source=source: event.time + source.uniform(0, 20))
        check(cut_into(events, [source.randrange(1000) for _ in range(3)]), now)


def test_late_events_need_no_history_within_the_late_window():
    """An event that is late by less than the window finds its place after a restart without the history."""
    events = [e for e in plausible(random.Random(5))[0] if e.kind != "clock"]
    events.sort(key=lambda event: event.time)
    late = events.pop(-2)
    fold = JobFold("job", history=list)
    fold.add(events)

    def read_again():
        pytest.fail("the history was read")

    again = load(dump(fold), read_again)
    again.add([late])
    whole = JobFold("job")
    whole.add([*events, late])
    assert again.account(EPOCH + 5000) == whole.account(EPOCH + 5000)


def test_a_fold_goes_on_after_it_was_dumped():
    """Dumping changes nothing: the same fold takes in what comes and answers as before."""
    events, now = plausible(random.Random(11))
    fold, plain = JobFold("job"), JobFold("job")
    for event in events:
        fold.add([event])
        dump(fold)
    plain.add(events)
    assert answers(fold, now) == answers(plain, now)


@pytest.mark.parametrize("offset_s", [-3.9e9, 3.9e9])
def test_a_clock_that_is_a_lifetime_off_moves_nothing_out_of_time(offset_s):
    """Whatever is said of a clock, what its writer said can be accounted for and kept."""
    said = {"job_id": "job", "attempt": 0, "rank": 0}
    events = [
        AttemptStart(**said, writer="w", seq=0, time=1.5, process_started_at=0.5),
        Cache(**said, writer="w", seq=1, time=2e9, cache="fx_graph", hits=1),
        Heartbeat(**said, writer="w", seq=2, time=3.9e9),
        Clock(**said, writer="exporter", seq=0, time=EPOCH, of_writer="w", offset_s=offset_s),
    ]
    fold, told = JobFold("job", history=lambda: events), details.JobDetails()
    fold.add(events[::-1])
    told.add(events[::-1])
    account = fold.account(EPOCH)
    assert sum(account.components.values()) == pytest.approx(account.wall_s)
    assert load(dump(fold), lambda: events).account(EPOCH) == account
    again = details.load(details.dump(told))
    assert again.processes.caches["fx_graph"].hits == 1
    assert again.nodes.heard_at(0) == told.nodes.heard_at(0)


def test_a_step_of_many_lifetimes_can_be_kept():
    """A first report may say that its step took as long as a number can tell."""
    said = {"job_id": "job", "attempt": 0, "rank": 0, "writer": "w"}
    endless = StepSeconds(count=1, sum=9.9e10, max=9.9e10)
    events = [
        FirstBatch(**said, seq=0, time=EPOCH),
        Progress(**said, seq=1, time=EPOCH + 100, step=1, steps=1, step_seconds=endless),
    ]
    fold = JobFold("job", history=lambda: events)
    fold.add(events)
    account = fold.account(EPOCH + 100)
    assert account.components == {"stalled": 100.0}
    assert load(dump(fold), lambda: events).account(EPOCH + 100) == account


@pytest.fixture(scope="module")
def snapshot():
    fold = JobFold("job", history=list)
    fold.add(plausible(random.Random(3))[0])
    return dump(fold)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_bytes_are_refused(snapshot, data):
    """Bytes that were cut, changed or lengthened are a ValueError."""
    place = data.draw(st.integers(0, len(snapshot) - 1))
    value = data.draw(st.integers(0, 255).filter(lambda v: v != snapshot[place]))
    changed = snapshot[:place] + bytes([value]) + snapshot[place + 1 :]
    for bad in (changed, snapshot[:place], snapshot + bytes([value])):
        with pytest.raises(ValueError, match=r"snapshot"):
            load(bad, list)


@given(st.recursive(st.none() | st.integers(-9, 9) | st.text(max_size=3), st.lists, max_leaves=8))
@settings(deadline=None)
def test_strange_values_are_refused(value):
    """A state that is none, under a right checksum, is a ValueError as well."""
    with pytest.raises(ValueError, match=r"."):
        load(wrapped(MAGIC, value), list)


def test_other_settings_are_refused(snapshot):
    """A fold made with other limits of the accounting is not carried on with these."""
    with pytest.raises(ValueError, match="settings"):
        load(snapshot, list, Settings(stall_after_s=7.0))
