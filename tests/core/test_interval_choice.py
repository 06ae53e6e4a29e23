import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interval_world import lived, moments

from ett_core.interval_choice import (
    Before,
    Bounds,
    JobSeen,
    Measured,
    Seen,
    before_from_fleet,
    choose,
    failure_rate,
    supposed,
)
from ett_core.intervals import Costs, optimal_interval_s, wasted

DAY_S = 86_400.0
HOUR_S = 3_600.0
WIDE = Bounds(longest_s=10 * DAY_S, shortest_s=0.001)


def rate(per_s: float, failures: float = 0.0, train_s: float = 0.0):
    return failure_rate(Seen(failures=failures, train_s=train_s), Before(rate_per_s=per_s))


SURE = failure_rate(Seen(failures=3e6, train_s=1e6 * DAY_S), Before(rate_per_s=3 / DAY_S))
"""Three failures a day, beyond doubt."""


def test_with_few_failures_the_rate_is_about_what_was_known():
    fleet = Before(rate_per_s=1 / 36_000, within=10)
    assert failure_rate(Seen(), fleet).between_s == pytest.approx(36_000, rel=0.5)
    assert failure_rate(Seen(failures=2, train_s=72_000), fleet).between_s == pytest.approx(36_000, rel=0.2)


def test_a_job_that_fails_far_more_often_than_supposed_is_believed_soon():
    """One node is supposed to fail once in 154 days; three failures on the first day say otherwise."""
    learnt = failure_rate(Seen(failures=3, train_s=DAY_S), supposed(1))
    assert DAY_S / 3 < learnt.between_s < DAY_S


@pytest.mark.parametrize(("failures", "train_s"), [(3.0, 600.0), (2.0, 400.0), (4.0, 3600.0)])
def test_a_job_that_fails_beyond_all_that_was_supposed_is_believed_too(failures, train_s):
    """Ten thousand times as often: its own rate, within a factor of 3."""
    rate = failure_rate(Seen(failures=failures, train_s=train_s), supposed(1))
    assert 1 / 3 < rate.per_s * train_s / failures < 3


def test_a_long_time_without_failures_says_that_they_are_rare():
    assert rate(1 / HOUR_S, train_s=999 * HOUR_S).between_s > 500 * HOUR_S


@given(
    per_s=st.floats(1e-8, 1e-2),
    failures=st.integers(0, 500),
    train_s=st.floats(1, 1e8),
    within=st.floats(1, 1000),
)
def test_the_rate_rises_with_each_failure_and_falls_with_time(per_s, failures, train_s, within):
    before = Before(rate_per_s=per_s, within=within)

    def per(failures, train_s):
        return failure_rate(Seen(failures=failures, train_s=train_s), before).per_s

    assert 0 < per(failures, train_s) < per(failures + 1, train_s)
    assert per(failures, 2 * train_s) < per(failures, train_s)


@given(per_s=st.floats(1e-6, 1e-2), off_by=st.floats(0.01, 100))
def test_many_failures_outweigh_what_was_known(per_s, off_by):
    seen = Seen(failures=1000, train_s=1000 / per_s)
    learnt = failure_rate(seen, Before(rate_per_s=per_s * off_by))
    assert learnt.per_s == pytest.approx(per_s, rel=0.12)


def test_the_fleet_speaks_for_jobs_of_a_like_size_only():
    otherwise = supposed(2)
    fleet = [
        JobSeen(failures=99, train_s=99 * HOUR_S, accelerators=16),
        JobSeen(failures=0, train_s=1e9, accelerators=1),
    ]
    before = before_from_fleet(fleet, 16, otherwise)
    assert before.rate_per_s == pytest.approx(1 / HOUR_S, rel=0.2)
    assert before.source == "of 1 job of a like size"
    assert before_from_fleet(fleet, 1024, otherwise) is otherwise
    assert before_from_fleet([], 16, otherwise) is otherwise


def test_within_wide_bounds_the_choice_is_the_optimum():
    choice = choose(Measured(blocking_s=15, upload_s=60), SURE, WIDE)
    assert choice.interval_s == pytest.approx(929.5, abs=0.05)
    assert choice.why == (
        "a save blocks 15 s and is durable after 60 s, a failure is to be expected every 8.0 h "
        "(3e+06 own in 24,000,000.0 h; about one in 8.0 h supposed): 930 s would waste least"
    )
    assert choice.values["optimum_s"] == choice.values["best_s"] == choice.interval_s


def test_what_a_save_slows_costs_as_much_as_what_it_blocks():
    choice = choose(Measured(blocking_s=5, slowed_s=10, upload_s=60), SURE, WIDE)
    assert choice.interval_s == pytest.approx(929.5, abs=0.05)
    assert "a save blocks 5 s, slows training by 10 s and is durable after 60 s" in choice.why
    assert (choice.values["blocking_s"], choice.values["slowed_s"]) == (5, 10)


@pytest.mark.parametrize(
    ("measured", "bounds", "interval_s", "words"),
    [
        (Measured(blocking_s=15), Bounds(longest_s=600), 600, "no less often than every 600 s"),
        (Measured(blocking_s=0.001), Bounds(shortest_s=60), 60, "no more often than every 60 s"),
        (Measured(blocking_s=1, upload_s=900), Bounds(), 900, "one save at a time"),
        (Measured(blocking_s=1, upload_s=900), Bounds(longest_s=700), 700, "wait for one another"),
        (Measured(blocking_s=1e6), WIDE, 864_000, "no less often than every 864,000 s"),
        (None, Bounds(first_s=120), 120, "no save has been measured yet"),
        (None, Bounds(first_s=1e6), 3600, "no save has been measured yet"),
    ],
)
def test_bounds_hold_and_the_reason_names_the_one_that_was_met(measured, bounds, interval_s, words):
    choice = choose(measured, SURE, bounds)
    assert choice.interval_s == interval_s
    assert words in choice.why


def test_saves_cost_at_most_half_the_time():
    choice = choose(Measured(blocking_s=500), rate(1.0), WIDE)
    assert choice.interval_s == 500
    assert "half the time" in choice.why


def test_an_interval_in_use_stays_while_it_wastes_hardly_more():
    measured, seen = Measured(blocking_s=15), SURE
    near = choose(measured, seen, WIDE, in_use_s=850.0)
    assert (near.interval_s, near.changed) == (850.0, False)
    assert "near enough" in near.why
    far = choose(measured, seen, WIDE, in_use_s=700.0)
    assert (round(far.interval_s), far.changed) == (930, True)


def test_an_interval_in_use_beyond_a_bound_is_left_at_once():
    choice = choose(Measured(blocking_s=15), SURE, Bounds(longest_s=900), in_use_s=929.5)
    assert (choice.interval_s, choice.changed) == (900, True)
    again = choose(Measured(blocking_s=15), SURE, Bounds(longest_s=900), in_use_s=900)
    assert not again.changed


@given(
    blocking_s=st.floats(1e-3, 1e4),
    upload_s=st.floats(0, 1e4),
    per_s=st.floats(1e-8, 1e-1),
    longest_s=st.floats(1, 1e5),
    in_use_s=st.none() | st.floats(0.1, 1e6),
)
def test_never_less_often_than_the_longest_interval(blocking_s, upload_s, per_s, longest_s, in_use_s):
    bounds = Bounds(longest_s=longest_s, shortest_s=1.0)
    measured = Measured(blocking_s=blocking_s, upload_s=upload_s)
    first = choose(measured, rate(per_s), bounds, in_use_s)
    assert 1.0 <= first.interval_s <= longest_s
    assert not choose(measured, rate(per_s), bounds, first.interval_s).changed


@pytest.mark.parametrize(
    "figures",
    [{"longest_s": 0}, {"shortest_s": 7200}, {"longest_s": math.inf}, {"first_s": 0}, {"waste_more": 1}],
)
def test_bounds_that_make_no_sense_are_refused(figures):
    with pytest.raises(ValueError, match=r"interval|waste_more"):
        Bounds(**figures)


def test_a_rate_of_zero_is_no_knowledge():
    with pytest.raises(ValueError, match="above zero"):
        Before(rate_per_s=0)
    with pytest.raises(ValueError, match="failures must be"):
        Seen(failures=-1)


BLOCKING_S, UPLOAD_S, BETWEEN_S = 15.0, 60.0, DAY_S / 3


def chosen(per_s):
    """What the policy does in a life: it knows a rate beforehand, and learns."""
    in_use_s = [None]

    def interval(failures, now_s):
        known = rate(per_s, failures, now_s)
        measured = Measured(blocking_s=BLOCKING_S, upload_s=UPLOAD_S)
        in_use_s[0] = choose(measured, known, WIDE, in_use_s[0]).interval_s
        return in_use_s[0]

    return interval


@pytest.mark.parametrize("wrong_by", [1 / 100, 1, 100])
def test_a_job_that_learns_its_rate_wastes_hardly_more_than_at_the_best_fixed_interval(wrong_by):
    """Within 3 % of the best of all fixed intervals on the same 400 failures, chosen afterwards."""
    fails = moments(7, 400, BETWEEN_S)

    def wasted_s(interval):
        return lived(fails, blocking_s=BLOCKING_S, upload_s=UPLOAD_S, interval=interval).wasted_s

    best = min(wasted_s(lambda *_, each=each: each) for each in [650 * 1.06**n for n in range(13)])
    assert wasted_s(chosen(wrong_by / BETWEEN_S)) <= 1.03 * best


@pytest.mark.parametrize(
    ("blocking_s", "upload_s", "between_s"), [(15, 60, DAY_S / 3), (2, 120, 6 * HOUR_S), (120, 0, DAY_S)]
)
def test_what_a_failure_loses_and_saves_block_is_what_the_formula_says(blocking_s, upload_s, between_s):
    """Over 3,000 failures the mean unsaved time and the wasted time are within 5 % of the formula."""
    costs = Costs(blocking_s=blocking_s, failures=1, train_s=between_s, upload_s=upload_s)
    best_s = optimal_interval_s(costs)
    life = lived(
        moments(11, 3000, between_s), blocking_s=blocking_s, upload_s=upload_s, interval=lambda *_: best_s
    )
    assert life.unsaved_s / life.failures == pytest.approx(best_s / 2 + upload_s, rel=0.05)
    assert life.wasted_s / life.failures == pytest.approx(wasted(costs).total_s, rel=0.05)
