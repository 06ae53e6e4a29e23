"""What-if: the partition stays whole, training stays, and levers that overlap save no second twice."""

from __future__ import annotations

import pytest
from event_soup import soups
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from simulated_rows import END, known

from ett_cli.simulate.settings import scenario
from ett_core.accounting import JobFold
from ett_core.components import RECOVER_QUEUE, TRAINING
from ett_core.fleet.caches import WARM, Verdict, cache_runs, judged
from ett_core.fleet.job_time import pieces
from ett_core.fleet.losses import losses
from ett_core.fleet.what_if import (
    LEVERS,
    FleetTime,
    Levers,
    Window,
    best_interval_s,
    job_time,
    mean_between_failures_s,
    saving_of,
    warm_levels,
    warm_shares,
)


class Told:
    """A simulated job as what-if questions need it."""

    def __init__(self, job):
        self.fold, self.account = job.fold, job.account
        self.classes = [each.failure_class for each in job.diagnoses]
        self.family = job.rows.runs[0].family
        self.runs = cache_runs(
            job.account, job.rows.runs, job.details.processes.run_caches, job.details.starts.labels
        )
        log = job.details.checkpoints
        slowed_s = job.details.async_saves.slowed_s
        self.saving = saving_of(job.account, log.count, log.usual().upload_s, slowed_s)


@pytest.fixture(scope="module")
def told():
    return [Told(job) for job in known(scenario("failures", jobs=6, report_s=300.0, seed=3))]


def times(told, window_s=None):
    """The jobs in a trailing window, or as a whole."""
    runs = [run for job in told for run in job.runs]
    levels = warm_levels(runs, judged(runs))
    found = []
    for job in told:
        begin = job.account.start if window_s is None else END - window_s
        parts = job.account.components if window_s is None else job.fold.window(begin, END, END)
        shares = warm_shares(job.account, job.family, levels)
        found.append(job_time(job.account, job.classes, Window(parts, begin, 1.0), job.saving, shares))
    return found


def sums(found):
    totals = {}
    for piece in found:
        totals[piece.component] = totals.get(piece.component, 0.0) + piece.seconds
    return totals


@given(soups, st.floats(-100.0, 3000.0))
@settings(max_examples=25, deadline=None)
def test_pieces_of_any_window_are_the_partition_of_it(events, back_s):
    """Whatever is charged to whom, the seconds of each component are those of the window."""
    fold = JobFold(events[0].job_id)
    fold.add(events)
    now = max(event.time for event in events) + 1000.0
    account = fold.account(now)
    if account is None:
        return
    begin = now - back_s
    window = fold.window(begin, now, now)
    assert sums(pieces(account, window, begin)) == pytest.approx(window, abs=1e-4)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_what_lies_behind_the_end_of_a_window_is_none_of_it(told, share):
    """As where a clock puts the end of an attempt after the moment that is asked about."""
    for job in told:
        begin, end = job.account.start, job.account.start + share * job.account.wall_s
        window = job.fold.window(begin, end, END)
        assert sums(pieces(job.account, window, begin)) == pytest.approx(window, abs=1e-3)


@pytest.mark.parametrize("window_s", [None, 3600.0, 43_200.0])
def test_without_levers_it_is_the_partition_as_it_is(told, window_s):
    found = times(told, window_s)
    now = FleetTime(found).now
    everything = {}
    for job in found:
        for name, seconds in sums(job.pieces).items():
            everything[name] = everything.get(name, 0.0) + seconds
    assert now.components == pytest.approx({n: s for n, s in everything.items() if s}, abs=1e-3)
    assert now.saved == 0.0


@pytest.mark.parametrize("window_s", [None, 43_200.0])
@given(st.data())
@settings(max_examples=30, deadline=None)
def test_whatever_is_supposed_training_stays_and_the_parts_add_up(told, window_s, data):
    """Any choice of levers: the same training, no negative part, and what is saved is what is missing."""
    fleet = FleetTime(times(told, window_s))
    keys = [*LEVERS, *(f"failure:{name}" for name in fleet.classes)]
    chosen = data.draw(st.sets(st.sampled_from(keys)))
    outcome = fleet.with_levers(Levers.of(chosen))
    assert outcome.components.get(TRAINING) == pytest.approx(fleet.now.components.get(TRAINING))
    assert all(amount > 0 for amount in outcome.components.values())
    assert outcome.total == pytest.approx(sum(outcome.components.values()))
    assert fleet.now.total - outcome.total == pytest.approx(outcome.saved, abs=1e-6)
    assert outcome.effective_ratio == pytest.approx(outcome.components.get(TRAINING, 0.0) / outcome.total)


def test_without_any_failure_exactly_their_losses_are_gone(told):
    """All classes gone saves what the failures cost, second by second, and each class its own."""
    fleet = FleetTime(times(told))
    assert len(fleet.classes) > 5
    cost = {}
    for job in told:
        for name, loss in zip(job.classes, losses(job.account), strict=True):
            cost[name] = cost.get(name, 0.0) + loss.total_s
    for name in fleet.classes:
        alone = fleet.with_levers(Levers(gone=frozenset([name])))
        assert alone.saved == pytest.approx(cost[name], abs=1e-3)
    together = fleet.with_levers(Levers(gone=frozenset(fleet.classes)))
    assert together.saved == pytest.approx(sum(cost.values()), abs=1e-3)
    assert not any(name.startswith("recover.") for name in together.components)


def test_levers_that_overlap_save_no_second_twice(told):
    """Recovery halved and caches warm meet in the compilation of recoveries: each shortens it once."""
    fleet = FleetTime(times(told))
    both = fleet.with_levers(Levers.of(["recovery", "caches"]))
    recovery, caches = (fleet.with_levers(Levers.of([key])) for key in ("recovery", "caches"))
    assert caches.saved > 0
    assert max(recovery.saved, caches.saved) < both.saved < recovery.saved + caches.saved
    assert both.components["recover.compile"] == pytest.approx(caches.components["recover.compile"] / 2)
    nothing_fails = frozenset(fleet.classes)
    gone = fleet.with_levers(Levers(nothing_fails))
    assert fleet.with_levers(Levers(nothing_fails, frozenset(["recovery"]))) == gone


def test_held_time_leaves_queueing_out(told):
    fleet = FleetTime(times(told), frozenset([RECOVER_QUEUE]))
    assert RECOVER_QUEUE not in fleet.now.components
    assert fleet.now.total < FleetTime(times(told)).now.total


def test_intervals_follow_the_failures_that_are_left(told):
    """With fewer failures supposed, saves lie further apart, and block less."""
    found = times(told)
    fleet = FleetTime(found)
    few = frozenset(fleet.classes[:5])
    assert mean_between_failures_s(found, few) > mean_between_failures_s(found)
    plain = fleet.with_levers(Levers.of(["intervals"]))
    fewer = fleet.with_levers(Levers(few, frozenset(["intervals"])))
    assert fewer.components["checkpoint_blocking"] < plain.components["checkpoint_blocking"]


def test_failures_before_the_loop_move_no_interval(told):
    """The same job, had its failures come before the loop, saves as if it had none."""
    found = times(told)
    before = [replace(job, lost=[replace(lost, in_loop=False) for lost in job.lost]) for job in found]
    assert any(lost.in_loop for job in found for lost in job.lost)
    assert mean_between_failures_s(found) > 0
    assert mean_between_failures_s(before) is None


def test_a_job_that_never_saved_or_a_fleet_that_never_failed_keeps_its_intervals(told):
    saving = told[0].saving
    assert best_interval_s(saving, 1, 1e5) > 0
    assert best_interval_s(type(saving)(0, 0.0, 0.0, 1e5), 1, 1e5) is None
    each_s = saving.blocking_s / saving.count
    slowed = replace(saving, slowed_s=3 * each_s)
    assert best_interval_s(slowed, 1, 1e5) == pytest.approx(
        2 * best_interval_s(replace(saving, slowed_s=0.0), 1, 1e5)
    )
    fleet = FleetTime(times(told))
    nothing = Levers(frozenset(fleet.classes), frozenset(["intervals"]))
    assert fleet.with_levers(nothing) == fleet.with_levers(Levers(frozenset(fleet.classes)))


def test_warm_levels_are_those_of_the_family_else_of_all(told):
    runs = [run for job in told for run in job.runs]
    verdicts = {run.id: Verdict(WARM, expected_warm=False, because="", alike="") for run in runs}
    levels = warm_levels(runs, verdicts)
    job = max(told, key=lambda each: len(each.account.attempts))
    shares = warm_shares(job.account, "never seen", {"": 1.0})
    assert all(0 < share < 1 for share in shares.values())
    assert warm_shares(job.account, job.family, {}) == {}
    assert set(levels) == {"", *(run.family for run in runs)}


def test_a_lever_that_does_not_exist_is_refused_by_name():
    with pytest.raises(ValueError, match="no lever 'faster'"):
        Levers.of(["faster"])
