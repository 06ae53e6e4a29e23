"""Which rank is named as slow, and which is not: real step times, and worked stories."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from told import timed

from ett_core import stragglers
from ett_core.details import JobDetails
from ett_core.events import Evidence, Progress, StepSeconds
from ett_core.paces import Pace
from ett_core.slowness import StragglerRules, slow_ranks
from ett_core.stopped_ranks import begun_words, over_words
from ett_core.stragglers import RankPaces

DATA = Path(__file__).with_name("data")
T0 = 1_764_000_000.0


def report(rank, time, step_s, *, wait_s=0.0, longest_s=None, **more):
    """Ten steps of `step_s` each, with `wait_s` of waiting before each."""
    steps = 10
    seconds = StepSeconds(steps, steps * step_s, step_s if longest_s is None else longest_s)
    return Progress(
        **{"job_id": "j", "writer": f"w{rank}", "seq": int(time * 10), "attempt": 0, "rank": rank, **more},
        time=T0 + time, step=0, steps=steps, data_wait_s=steps * wait_s, step_seconds=seconds,
    )  # fmt: skip


def named(events, **rules):
    paces = RankPaces(StragglerRules(**rules))
    for event in events:
        paces.add(*timed(event))
    return paces.stragglers()


def real(job, offset=0.0):
    """The reports of a job of the trace: one a worker every ten seconds."""
    lines = (DATA / f"alibaba_v2020_minibatch_job_{job}.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines if not line.startswith(("#", "time"))]
    return [
        report(worker, int(time) + offset, float(text) / 1000)
        for time, *texts in rows
        for worker, text in enumerate(texts)
        if text
    ]


@pytest.mark.parametrize("offset", range(0, 60, 7))
def test_the_slow_worker_of_a_real_job_is_named_and_nobody_else(offset):
    """Worker 6 is slow from second 1811 to 1945, wherever the windows happen to be cut."""
    (slow,) = named(real(1, offset))
    assert (slow.rank, slow.cause, slow.ongoing) == (6, "step", False)
    assert slow.since - T0 - offset == pytest.approx(1811, abs=60)
    assert slow.until - T0 - offset == pytest.approx(1945, abs=60)
    assert 1.4 < slow.ratio < 1.8


def test_it_is_named_while_it_is_slow():
    """A minute and a half after it began, and nobody was named before that."""
    events = real(1)
    at = {time: named(e for e in events if e.time <= T0 + time) for time in (1800, 1900)}
    assert at[1800] == []
    (slow,) = at[1900]
    assert (slow.rank, slow.ongoing) == (6, True)


def test_of_a_real_job_in_which_four_of_ten_slow_down_a_little_nobody_is_named():
    """Workers 6 to 9 take a fifth longer than the median from second 2170 on, and all lie far apart."""
    assert named(real(3)) == []


def minutes(count, ranks, step_s):
    return [report(rank, 60 * n + rank % 7, step_s(rank, n)) for n in range(count) for rank in range(ranks)]


@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_several_slow_ranks_are_all_named_while_most_are_not_slow(count):
    """Where half of them are slow nobody can say which half is usual."""
    events = minutes(10, 10, lambda rank, n: (2.0 if rank < count else 1.0) + 0.01 * ((rank + n) % 3))
    assert [slow.rank for slow in named(events)] == (list(range(count)) if count < 5 else [])


@given(
    st.lists(st.floats(0.95, 1.05), min_size=8 * 6, max_size=8 * 6),
    st.integers(0, 7),
    st.floats(1.6, 50.0),
    st.floats(1e-4, 1e3),
)
def test_whoever_is_far_slower_is_named_and_nobody_else_whatever_a_step_takes(noise, slow, ratio, step_s):
    """Eight ranks, six minutes, five percent of noise."""
    usual = minutes(6, 8, lambda rank, n: step_s * noise[8 * n + rank])
    assert named(usual) == []
    one = minutes(6, 8, lambda rank, n: step_s * noise[8 * n + rank] * (ratio if rank == slow else 1.0))
    (found,) = named(one)
    assert (found.rank, found.cause) == (slow, "step")
    assert found.ratio == pytest.approx(ratio, rel=0.15)


def test_noise_that_comes_and_goes_names_nobody():
    """Steps that swing by a fifth, together or each in its own time, are no straggler."""
    rng = random.Random(7)
    together = minutes(120, 8, lambda _, n: 1 + 0.2 * math.sin(n / 5) + rng.gauss(0, 0.03))
    apart = minutes(120, 8, lambda rank, n: 1 + 0.2 * math.sin(n / 5 + rank) + rng.gauss(0, 0.03))
    assert named(together) == named(apart) == []


@pytest.mark.parametrize(
    "pause", [{"longest_s": 90.0, "step_s": 10.0}, {"wait_s": 6.0, "step_s": 1.0}, {"step_s": 5.0}]
)
def test_a_single_pause_names_nobody(pause):
    """One long step, one long wait, one slow minute."""
    events = minutes(20, 4, lambda *_: 1.0)
    events[40] = report(0, 600, **pause)
    assert named(events) == []


def test_a_rank_that_waits_for_its_data_is_named_though_all_steps_take_the_same_time():
    """In synchronous training the others wait for it inside their steps; its own wait shows."""
    events = [
        report(rank, 60 * n, 0.4 if rank == 2 else 1.0, wait_s=0.6 if rank == 2 else 0.0)
        for n in range(10)
        for rank in range(8)
    ]
    (slow,) = named(events)
    assert (slow.rank, slow.cause, slow.ongoing) == (2, "data_wait", True)
    assert slow.ratio == pytest.approx(1 / 0.4)


def test_a_rank_that_computes_slowly_in_step_with_the_others_cannot_be_named():
    """All take the same time, which the spread says."""
    paces = RankPaces()
    for event in minutes(10, 8, lambda *_: 2.0):
        paces.add(*timed(event))
    assert (paces.stragglers(), paces.step_spread) == ([], 0.0)


def test_a_spread_tells_that_ranks_step_on_their_own():
    paces = RankPaces()
    for event in minutes(10, 8, lambda rank, _: 1.0 + 0.1 * rank):
        paces.add(*timed(event))
    assert paces.step_spread > 0.1


@pytest.mark.parametrize(("ratio", "found"), [(1.0, []), (1.4, []), (1.6, [1])])
def test_of_two_ranks_only_one_that_is_far_slower_is_named(ratio, found):
    """Nobody knows which of two is usual, so more is asked for."""
    events = minutes(10, 2, lambda rank, _: ratio if rank else 1.0)
    assert [slow.rank for slow in named(events)] == found


def test_a_single_rank_is_slower_than_nobody():
    paces = RankPaces()
    for event in minutes(10, 1, lambda *_: 2.0):
        paces.add(*timed(event))
    assert (paces.stragglers(), paces.step_spread) == ([], None)


def test_the_leader_reports_often_and_the_others_once_a_minute():
    """Ranks are compared all the same, and each may be the slow one."""
    for slow in (0, 3):
        events = [report(0, 5 * n, 2.0 if slow == 0 else 1.0) for n in range(120)]
        events += [
            report(rank, 61 * n + rank, 2.0 if slow == rank else 1.0)
            for n in range(10)
            for rank in range(1, 6)
        ]
        assert [each.rank for each in named(events)] == [slow]


def test_a_restart_begins_anew():
    """Slow in the last minute of one attempt and the first of the next is not slow for long."""
    events = minutes(10, 4, lambda *_: 1.0)
    events += [report(rank, 600, 3.0 if rank == 1 else 1.0) for rank in range(4)]
    events += [report(rank, 630, 3.0 if rank == 1 else 1.0, attempt=1) for rank in range(4)]
    assert named(events) == []
    events += [report(rank, 690, 3.0 if rank == 1 else 1.0, attempt=1) for rank in range(4)]
    assert [(slow.attempt, slow.rank) for slow in named(events)] == [(1, 1)]


def test_a_writer_that_tells_no_step_times_says_nothing():
    paces = RankPaces()
    paces.add(*timed(Progress(job_id="j", writer="w", seq=0, attempt=0, rank=0, time=T0, step=1, steps=1)))
    assert paces.stragglers() == []


@given(st.randoms())
@settings(deadline=None)
def test_the_order_of_arrival_changes_no_verdict(rng):
    events = real(1)[17_00:2100]
    usual = named(events)
    rng.shuffle(events)
    assert named(events) == usual


def test_memory_is_bounded_and_verdicts_outlive_the_amounts(monkeypatch):
    """The slow worker stays named when its reports are gone."""
    monkeypatch.setattr(stragglers, "CELLS_KEPT", 300)
    monkeypatch.setattr(stragglers, "VERDICTS_KEPT", 200)
    paces = RankPaces()
    for event in real(1):
        paces.add(*timed(event))
        assert sum(map(len, map(paces._halves.paces, paces._halves))) == paces._cells <= 300
        assert paces._slow_count <= 200
    assert [slow.rank for slow in paces.stragglers()] == [6]


def test_a_job_of_more_ranks_than_the_bound_keeps_a_few_windows_all_the_same(monkeypatch):
    """Enough to compare ranks whose reports come a little apart."""
    monkeypatch.setattr(stragglers, "CELLS_KEPT", 10)
    paces = RankPaces()
    for event in minutes(30, 20, lambda rank, n: 2.0 if rank == 13 and n > 10 else 1.0):
        paces.add(*timed(event))
        assert len(paces._halves) <= stragglers.HALVES_KEPT + 1
    assert [(slow.rank, slow.ongoing) for slow in paces.stragglers()] == [(13, True)]


def test_garbage_raises_nothing():
    """Zero and enormous durations."""
    huge = Pace(steps=1, step_s=1e9, max_s=1e9, wait_s=1e9)
    none = Pace(steps=3, step_s=0.0, max_s=5.0, wait_s=0.0)
    assert slow_ranks({0: none, 1: none, 2: none, 3: none}, StragglerRules()) == {}
    assert math.isfinite(slow_ranks({0: none, 1: huge}, StragglerRules())[1].ratio)


def test_a_straggler_is_told_with_its_node_in_that_attempt():
    """After a restart the rank may be elsewhere."""
    details = JobDetails()
    for n in range(5):
        details.add(report(rank, 60 * n, 2.0 if rank == 3 else 1.0, node=f"n{rank}") for rank in range(4))
    assert [(each["rank"], each["node"]) for each in details.stragglers()] == [(3, "n3")]
    details.add([report(3, 400, 1.0, attempt=1, node="n9")])
    assert [(each["rank"], each["node"]) for each in details.stragglers()] == [(3, "")]


@pytest.mark.parametrize("rule", [{"ratio": 1.0}, {"ratio_of_few": 0.5}, {"window_s": 0}, {"windows": -1}])
def test_a_wrong_rule_is_refused_by_name(rule):
    with pytest.raises(ValueError, match=next(iter(rule))):
        StragglerRules(**rule)


def test_a_rank_that_a_launcher_saw_stopped_is_a_straggler_with_its_node():
    """It is told of by the launcher of its node, and names itself in its own reports."""
    said = {"job_id": "j", "writer": "l", "attempt": 0, "rank": -1, "node": "n1"}
    details = JobDetails()
    details.add([report(1, 0.0, 1.0, node="n1")])
    begun = begun_words(1, 7, 2.0, 4.0)
    details.add([Evidence(**said, seq=1, time=T0 + 4, observed_at=T0, source="stopped", text=begun)])
    (slow,) = details.stragglers()
    assert slow == {
        "attempt": 0, "rank": 1, "node": "n1", "since": T0, "until": T0 + 4.0, "windows": 0, "ratio": 2.0,
        "cause": "stopped", "ongoing": True,
    }  # fmt: skip
    over = over_words(1, 7, 10.0, 40.0, is_gone=False)
    details.add([Evidence(**said, seq=2, time=T0 + 40, source="stopped", text=over)])
    (slow,) = details.stragglers()
    assert (slow["until"], slow["ratio"], slow["ongoing"]) == (T0 + 40.0, pytest.approx(4 / 3), False)
