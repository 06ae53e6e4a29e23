"""Sums of parts of time that go on while nobody asks: what they hold, what asking costs, what is missing."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator

import pytest
from live_jobs import SomeJobs
from plausible import EPOCH, plausible

from ett_core import events as ev
from ett_exporter.fleet_spans import FleetSpans
from ett_exporter.followed import (
    FOLLOWED_FOR_S,
    GRACE_S,
    HELD_FOR_S,
    LEAD_S,
    MOST_FOLLOWED,
    MOST_HELD,
    USUAL,
    Followed,
    Shape,
    moving,
)

PART_S, PARTS = 300.0, 6
SHAPE = Shape(PART_S, PARTS, 0.0)


def asked(spans, some, shape=SHAPE, at=None):
    """Jobs, nanoseconds and moments by part and kind of job, and how many jobs are missing."""
    edges = shape.edges_at(some.now if at is None else at)
    sums = (
        spans.moving(shape, some.now)
        if at is None
        else spans.going_on(edges, some.now, by_state=shape.by_state)
    )
    with spans.of_all(sums, some.now, math.inf, math.inf) as (running, missing):
        return found(running, edges), missing


def read_anew(some, shape=SHAPE):
    """The same as a question finds it that reads every job."""
    edges, views = shape.edges_at(some.now), some.roster.since(0)[1]
    with FleetSpans(some).sums(views, edges, some.now, "all", by_state=shape.by_state) as (running, _):
        return found(running, edges)


def found(running, edges):
    return {
        name: {
            kind: (total.jobs(name), dict(total.amounts_ns(name)), total.starts, total.failed_at)
            for kind, total in running.sums.of_window(name)
        }
        for name in [*(str(place) for place in range(len(edges) - 1)), "whole"]
    }


@pytest.mark.parametrize("by_state", [True, False])
@pytest.mark.parametrize("seed", range(100 if os.environ.get("ETT_FULL") == "1" else 5))
def test_sums_that_go_on_are_those_of_a_question_that_reads_every_job(seed, by_state):
    """Whatever comes late, whichever part begins, whether somebody asks often or for the first time."""
    source = random.Random(seed)
    told = {f"job-{number}": late(plausible(source)[0], source) for number in range(4)}
    some, shape = SomeJobs(), Shape(60.0, 12, 0.0, by_state)
    spans = FleetSpans(some)
    while any(told.values()):
        first = min(due[0][0] for due in told.values() if due)
        some.now = max(some.now, first) + source.choice((0.5, 5.0, 20.0))
        for name, events in told.items():
            came = [event for moment, event in events if moment <= some.now]
            if came and source.random() < 0.7:
                del events[: len(came)]
                some.tell(name, came)
        some.roster.renew(some.now, math.inf, older_than_s=source.choice((0.0, 3.0)))
        if source.random() < 0.7:
            spans.keep_up()
        if source.random() < 0.3:
            some.renew()
            assert asked(spans, some, shape) == (read_anew(some, shape), 0)
    some.renew()
    assert asked(spans, some, shape) == (read_anew(some, shape), 0)


def late(events, source) -> list[tuple[float, ev.AnyEvent]]:
    """Events in the order in which they come, some of them late, and when."""
    share = source.choice((0.0, 0.1, 0.5))
    moments = [
        (event.time + (source.expovariate(1 / 60.0) if source.random() < share else 0.0), number)
        for number, event in enumerate(events)
    ]
    return [(moment, events[number]) for moment, number in sorted(moments)]


def time_passes(some, jobs, minutes) -> Iterator[None]:
    """Jobs report every ten seconds; the first half of them is over after 1,000."""
    for number in range(jobs):
        some.tell(f"job-{number}", [ev.FirstBatch(**where(number), seq=0, time=EPOCH)])
    for report in range(1, 6 * minutes):
        some.now = EPOCH + 10.0 * report
        told = {"seq": report, "time": some.now}
        for number in range(jobs):
            if number >= jobs // 2 or report < 100:
                some.tell(f"job-{number}", [ev.Progress(**where(number), **told, step=report, steps=1)])
            elif report == 100:
                some.tell(f"job-{number}", [ev.JobEnd(**where(number), **told, status="succeeded")])
        some.renew()
        yield


def where(number):
    return {"job_id": "job", "writer": f"w{number}", "attempt": 0, "rank": 0}


def kept_up(some):
    """Sums that are kept up as long as that takes."""
    return FleetSpans(some, monotonic=lambda: 0.0)


def test_who_asks_reads_no_job_not_even_where_a_part_has_just_begun():
    """What is new of jobs goes in as views are renewed, and the sums of the next part are made ready."""
    some = SomeJobs()
    spans = kept_up(some)
    for step, _ in enumerate(time_passes(some, 4, 60)):
        spans.keep_up()
        some.now += 9.0
        before = some.read
        answer, missing = asked(spans, some)
        assert (some.read - before, missing) == (0, 0)
        if step % 6 == 0:
            assert answer == read_anew(some)


def test_a_job_that_is_over_is_read_once_however_many_parts_begin_after_it():
    """Half of the jobs are over; 40 minutes later each of them was read once since."""
    some = SomeJobs()
    spans = kept_up(some)
    reads = {}
    for _ in time_passes(some, 4, 60):
        asked(spans, some)
        spans.keep_up()
        if some.now == EPOCH + 990:
            reads = {name: one.read for name, one in some.jobs.items()}
    assert [some.jobs[name].read - before for name, before in reads.items()][:2] == [1, 1]


def test_an_answer_before_all_jobs_were_read_says_how_many_are_missing():
    """Who does not want to wait is told; a moment later all of them are there."""
    some = SomeJobs()
    for _ in time_passes(some, 4, 20):
        pass
    spans = kept_up(some)
    sums = spans.going_on(SHAPE.edges_at(some.now), some.now)
    out_of_time = FleetSpans(some, monotonic=iter(range(10**6)).__next__)
    with out_of_time.of_all(sums, some.now, 0.0, 0.0) as (running, missing):
        assert (found(running, running.edges)["whole"], missing) == ({}, 4)
    assert not sums.is_ready
    spans.keep_up()
    assert sums.is_ready
    assert asked(spans, some) == (read_anew(some), 0)


def test_who_waits_gets_all_jobs():
    """Within the time for which one waits for missing jobs, all are read."""
    some = SomeJobs()
    for _ in time_passes(some, 4, 20):
        pass
    spans = kept_up(some)
    sums = spans.going_on(SHAPE.edges_at(some.now), some.now)
    with FleetSpans(some).of_all(sums, some.now, 0.0, 600.0) as (running, missing):
        assert (found(running, running.edges), missing) == (read_anew(some), 0)


def test_one_job_that_cannot_be_read_keeps_no_other_from_the_sums(caplog):
    """What is wrong with it is logged."""
    some = SomeJobs()
    for _ in time_passes(some, 3, 20):
        pass

    def broken(_job_id, _now, _edges):
        raise RuntimeError("this fold is broken")

    some.jobs["job-1"].cut = broken
    spans = kept_up(some)
    answer, missing = asked(spans, some)
    assert missing == 0
    assert sum(jobs for jobs, *_ in answer["whole"].values()) == 2
    assert "something is wrong with job job-1" in caplog.text


def test_the_usual_question_is_followed_from_the_start_and_its_next_part_is_made_ready():
    """Nobody has asked; a minute before the next part begins there are sums for it, afterwards no others."""
    followed, now = Followed(), EPOCH
    (first,) = followed.due(now)
    assert first.running.edges == USUAL.edges_at(now)
    end = first.running.edges[-1]
    assert followed.due(end - LEAD_S - 1) == [first]
    _, second = followed.due(end - LEAD_S)
    assert (second.running.edges[:-1], followed.due(end)) == (first.running.edges[1:], [second])
    assert followed.asked(first.running.edges, end + GRACE_S - 1, by_state=False) is first
    assert followed.due(end + GRACE_S) == [second]
    assert followed.asked(first.running.edges, end + GRACE_S, by_state=False) is not first


def test_questions_that_nobody_asks_any_more_are_followed_for_a_while_and_only_so_many():
    """Those that were asked last; the usual one always."""
    followed = Followed()
    shapes = [Shape(PART_S, parts, 0.0) for parts in range(1, MOST_FOLLOWED + 2)]
    for later, shape in enumerate(shapes):
        assert followed.asked(shape.edges_at(EPOCH + later), EPOCH + later, by_state=False) is not None
    due = {sums.running.edges for sums in followed.due(EPOCH + 10)}
    assert due == {shape.edges_at(EPOCH + 10) for shape in (USUAL, *shapes[1:])}
    late = EPOCH + FOLLOWED_FOR_S + MOST_FOLLOWED
    assert {sums.running.edges for sums in followed.due(late)} == {USUAL.edges_at(late)}


@pytest.mark.parametrize(
    "edges",
    [
        pytest.param((EPOCH - 600.0, EPOCH - 300.0), id="over"),
        pytest.param((EPOCH - 3599.0, EPOCH + 1.0), id="up to now"),
        pytest.param((EPOCH + 7200.0, EPOCH + 14400.0), id="not begun"),
        pytest.param((EPOCH - 30.0, EPOCH, EPOCH + 30.0), id="tiny parts"),
    ],
)
def test_questions_about_moments_that_do_not_go_on_are_held_for_a_while(edges):
    """Who asks the same again finds the same sums, in which there is more by then."""
    followed = Followed()
    usual = followed.due(EPOCH)
    held = followed.asked(edges, EPOCH, by_state=False)
    later = EPOCH + HELD_FOR_S - 1
    assert followed.due(EPOCH) == [*usual, held]
    assert followed.asked(edges, later, by_state=False) is held
    assert followed.due(later + HELD_FOR_S - 1) == [*usual, held]
    assert followed.due(later + HELD_FOR_S) == usual


def test_of_questions_about_odd_moments_those_that_were_asked_last_are_held():
    """Who asks for the time up to now has another question each time."""
    followed = Followed()
    usual = followed.due(EPOCH)
    held = [
        followed.asked((EPOCH - 3600.0 + later, EPOCH + later), EPOCH + later, by_state=False)
        for later in range(1, MOST_HELD + 3)
    ]
    assert followed.due(EPOCH + MOST_HELD + 2) == [*usual, *held[-MOST_HELD:]]


def test_time_before_that_of_the_jobs_in_memory_is_not_kept_up():
    """Jobs that were over before are read for the question."""
    assert Followed().asked((EPOCH - 86_400.0 * 30, EPOCH + 3600.0), EPOCH, by_state=False) is None


@pytest.mark.parametrize("parts", [1, 7, 11, 12, 24, 144, 500])
@pytest.mark.parametrize("window_s", [3600.0, 86_400.0, 604_800.0])
def test_parts_of_a_window_up_to_now_hold_now_and_move_by_a_minute_or_more(window_s, parts):
    """An edge is the same number whenever it is asked for, however odd the size of the parts."""
    shape, source = moving(window_s, parts), random.Random(parts)
    for _ in range(50):
        now = EPOCH + source.uniform(0, 2 * window_s)
        edges = shape.edges_at(now)
        moves_s = shape.at_once * shape.size_s
        assert edges[-1] - moves_s - 1e-3 <= now < edges[-1]
        assert edges[-1] - edges[0] == pytest.approx(window_s)
        assert moves_s >= 60.0 - 1e-9
        after = shape.edges_at(now + moves_s)
        assert after[: -shape.at_once][:1] == edges[shape.at_once :][:1]
        assert set(edges[shape.at_once :]) <= set(after)


@pytest.mark.parametrize("seed", range(50 if os.environ.get("ETT_FULL") == "1" else 3))
@pytest.mark.parametrize("parts", [7, 11, 144])
def test_sums_of_parts_of_odd_or_tiny_sizes_are_those_of_every_job(seed, parts):
    """Sums that go on for an hour in so many parts, and such of moments that stay what they are."""
    source = random.Random(seed)
    told = {f"job-{number}": late(plausible(source)[0], source) for number in range(3)}
    some, shape = SomeJobs(), moving(3600.0, parts)
    spans, odd = FleetSpans(some), tuple(EPOCH + 37.25 * edge for edge in range(10))
    while any(told.values()):
        first = min(due[0][0] for due in told.values() if due)
        some.now = max(some.now, first) + source.choice((5.0, 60.0))
        for name, events in told.items():
            came = [event for moment, event in events if moment <= some.now]
            del events[: len(came)]
            if came:
                some.tell(name, came)
        if source.random() < 0.3:
            some.renew()
            assert asked(spans, some, shape) == (read_anew(some, shape), 0)
            with spans.of_all(spans.going_on(odd, some.now), some.now, math.inf, math.inf) as (running, _):
                held = found(running, odd)
            assert held == between(FleetSpans(some), some, odd)


def between(spans, some, edges):
    """The same as `asked`, of moments, read from every job."""
    with spans.sums(some.roster.since(0)[1], edges, some.now, by_state=False) as (running, _):
        return found(running, edges)


def test_jobs_that_are_not_read_while_one_waits_are_counted_and_come_when_one_asks_again():
    """Those that were never read come first; once none is missing, all is as if one had waited."""
    some = SomeJobs()
    for _ in time_passes(some, 6, 20):
        pass
    views, edges = some.roster.since(0)[1], (EPOCH + 61.0, EPOCH + 500.0, EPOCH + 999.0)
    passed_s = iter(range(10**6))
    spans = FleetSpans(some, monotonic=lambda: float(next(passed_s)))
    lacked = []
    while not lacked or lacked[-1]:
        with spans.sums(views, edges, some.now, "all", by_state=False, for_s=2.5) as (running, missing):
            lacked.append(missing)
            told = found(running, edges)
    assert lacked == [4, 2, 0]
    assert told == between(FleetSpans(some), some, edges)
