"""What depends on the order of events is the same in whatever order they came."""

from __future__ import annotations

import random

import pytest
from backlogs import HOURS, IN_TIME, RANKS, T0, progress, save
from hypothesis import given, settings
from hypothesis import strategies as st
from told import timed

from ett_core.details import JobDetails, dump, load
from ett_core.events import Clock, Progress
from ett_core.in_order import Collected
from ett_core.interference import TOO_LONG, AsyncSaves


def told(events, at_once=50):
    details = JobDetails()
    for begin in range(0, len(events), at_once):
        details.add(events[begin : begin + at_once])
    return details


def answers(details):
    return details.stragglers(), details.rank_paces.step_spread, details.async_saves.saves


def ordered(details, events):
    collected = Collected()
    collected.add(events)
    details.put_in_order(collected)
    return details


def test_hours_of_one_rank_before_those_of_the_next_are_noticed_and_put_in_order():
    usual = told(IN_TIME)
    assert usual.late == 0
    slow, _, saves = answers(usual)
    assert {each["rank"] for each in slow} == {2}
    assert len(slow) == 2 * HOURS * 3600 // 5000 + 1
    assert [each.excess_s is not None for each in saves] == [True] * len(saves) == [True] * 34
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        late = [event for rank in order for event in RANKS[rank]]
        details = told(late)
        assert details.late
        assert answers(details) != answers(usual)
        ordered(details, late)
        assert (details.late, answers(details)) == (0, answers(usual))


@settings(max_examples=10, deadline=None)
@given(st.integers(), st.floats(0, 120))
def test_what_comes_minutes_apart_needs_no_putting_in_order(seed, lag_s):
    """Whatever is not counted as late is folded as if it had come in time."""
    rng = random.Random(seed)
    events = sorted(IN_TIME, key=lambda event: event.time + rng.random() * lag_s)
    details = told(events, at_once=7)
    assert details.late == 0
    assert answers(details) == answers(told(IN_TIME))


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(40)), st.integers(1, 300))
def test_in_whatever_order_pieces_come_the_answers_are_the_same(order, at_once):
    size = len(IN_TIME) // len(order) + 1
    pieces = [IN_TIME[place * size : (place + 1) * size] for place in order]
    events = [event for piece in pieces for event in piece]
    details = told(events, at_once)
    if details.late:
        ordered(details, events)
    assert answers(details) == answers(told(IN_TIME))


def test_a_history_whose_clocks_were_off_is_folded_in_the_order_of_its_corrected_time():
    """An hour of offset of one rank, of which the exporter learns at the end."""
    off = [
        progress(2, event.time - T0 + 3600, event.step_seconds.sum / 10, attempt=event.attempt)
        for event in RANKS[2]
    ]
    clock = Clock(job_id="j", writer="x", seq=0, attempt=0, rank=-1, time=T0, of_writer="w2", offset_s=3600.0)
    events = [*RANKS[0], *RANKS[1], *off, *RANKS[3], clock]
    found, usual = (JobDetails.of_events(each) for each in (events, IN_TIME))
    assert found.late == 0
    assert found.async_saves.saves == usual.async_saves.saves
    assert [(each["rank"], each["since"]) for each in found.stragglers()] == [
        (each["rank"], each["since"]) for each in usual.stragglers()
    ]


def test_what_is_late_is_remembered_with_the_details():
    details = told([event for events in RANKS for event in events])
    assert load(dump(details)).late == details.late > 0


def test_a_writer_that_tells_nothing_to_compare_is_passed_over():
    collected = Collected()
    collected.add([Progress(job_id="j", writer="w", seq=0, attempt=0, rank=0, time=T0, step=1, steps=1)])
    collected.add([progress(-1, 5.0, 0.5), *save(-1, 7.0)])
    paces, saves = collected.fold(lambda _writer: 0.0)
    assert (paces.stragglers(), saves.saves) == ([], [])


def test_a_save_in_flight_for_longer_than_reports_are_kept_has_no_figure():
    """An upload of an hour: what its first steps took is gone when it ends."""
    fold = AsyncSaves()
    told = [*save(0, 1000, until=4600), *save(0, 5000)]
    told += [
        progress(0, at, 0.7 if 1000 < at < 4600 or 5000 < at < 5080 else 0.5) for at in range(0, 9000, 10)
    ]
    for event in sorted(told, key=lambda event: event.time):
        if isinstance(event, Progress):
            fold.add_reports(*timed(event))
        else:
            fold.add(event)
    long, short = fold.saves
    assert (long.unknown, long.excess_s) == (TOO_LONG, None)
    assert short.excess_s == pytest.approx(0.2 * 10 * 8, rel=0.2)
