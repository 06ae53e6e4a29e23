from contextlib import suppress

import pytest

from ett_core.interval_choice import Before, Bounds
from ett_core.leaving import SAVE, WAIT, way_to_leave
from ett_trainer_hooks.pipeline.checkpoint.policy import CheckpointPolicy

FAILS = Before(rate_per_s=1 / 40_000, within=1, source="told")
BOUNDS = Bounds(longest_s=3600, first_s=100)


@pytest.fixture
def job(bench, hands):
    """A policy, and a bench that has what it told."""
    made = bench()

    def policy(bounds=BOUNDS, **more):
        return CheckpointPolicy(made.recorder, bounds=bounds, before=FAILS, clock=lambda: hands.now_s, **more)

    policy.told = lambda: [(event.what, event.why) for event in made.of("decision")]
    return policy


def save(policy, hands, step, *, blocking_s, upload_s):
    with policy.saving(step):
        hands.move(blocking_s)
    hands.move(upload_s)
    policy.durable(step)


def test_the_first_interval_is_the_one_that_was_set(job, hands):
    policy = job()
    policy.begin()
    assert not policy.is_due()
    hands.move(99.9)
    assert not policy.is_due()
    hands.move(0.1)
    assert policy.is_due()
    assert job.told() == [("a checkpoint every 100 s of training", "no save has been measured yet")]


def test_after_a_save_the_interval_is_the_best_for_what_it_took(job, hands):
    policy = job()
    policy.begin()
    hands.move(100)
    save(policy, hands, 10, blocking_s=5, upload_s=30)
    assert policy.interval_s == pytest.approx((2 * 5 * 40_000) ** 0.5, rel=0.01)
    what, why = job.told()[-1]
    assert what == f"a checkpoint every {policy.interval_s:,.0f} s of training"
    assert "a save blocks 5 s" in why
    assert "told" in why


def test_what_it_is_told_of_does_not_change_while_the_interval_stays(job, hands):
    policy = job()
    policy.begin()
    for step in range(1, 6):
        hands.move(600)
        save(policy, hands, step, blocking_s=5, upload_s=30)
    assert len(job.told()) == 2


def turns(policy, hands, *seconds):
    """The policy is asked after so many seconds each time."""
    for each in seconds:
        hands.move(each)
        policy.is_due()


def test_what_training_loses_beside_a_save_is_part_of_what_the_save_costs(job, hands):
    policy = job()
    policy.begin()
    turns(policy, hands, *[10] * 10)
    with policy.saving(1):
        hands.move(5)
    turns(policy, hands, 14, 13)
    policy.durable(1)
    turns(policy, hands, 18, 10)
    save(policy, hands, 2, blocking_s=5, upload_s=0)
    assert policy.interval_s == pytest.approx((2 * (5 + 15) * 40_000) ** 0.5, rel=0.01)
    assert "a save blocks 5 s, slows training by 15 s and is durable" in job.told()[-1][1]
    after = job()
    after.load_state_dict(policy.state_dict())
    after.begin()
    assert "slows training by 15 s" in job.told()[-1][1]


def test_a_save_that_slows_nothing_costs_what_it_blocks(job, hands):
    policy = job()
    policy.begin()
    turns(policy, hands, *[10] * 10)
    save(policy, hands, 1, blocking_s=5, upload_s=0)
    turns(policy, hands, 9, 10)
    save(policy, hands, 2, blocking_s=5, upload_s=0)
    assert policy.interval_s == pytest.approx((2 * 5 * 40_000) ** 0.5, rel=0.01)


def test_without_turns_free_of_saves_nobody_knows_what_a_save_slows(job, hands):
    policy = job()
    policy.begin()
    for step in range(1, 10):
        with policy.saving(step):
            hands.move(5)
        turns(policy, hands, 30, 30)
        policy.durable(step)
    assert policy.interval_s == pytest.approx((2 * 5 * 40_000) ** 0.5, rel=0.01)


def test_time_in_saves_is_no_training(job, hands):
    policy = job()
    policy.begin()
    hands.move(100)
    with policy.saving(1):
        hands.move(50)
        assert policy.own.train_s == 100
    hands.move(10)
    assert policy.own.train_s == 110


def test_never_less_often_than_the_longest_interval(job, hands):
    policy = job(Bounds(longest_s=200, first_s=100))
    policy.begin()
    hands.move(100)
    save(policy, hands, 1, blocking_s=5, upload_s=0)
    assert policy.interval_s == 200
    hands.move(200)
    assert policy.is_due()


def test_a_save_that_raises_is_not_measured_and_the_next_one_has_its_time(job, hands):
    policy = job()
    policy.begin()
    hands.move(100)
    with suppress(OSError), policy.saving(1):
        hands.move(50)
        raise OSError("full")
    assert not policy.is_due()
    assert policy.interval_s == 100
    assert policy.standing().unsaved_s == 100


def test_failures_of_others_count_from_the_next_save_on(job, hands):
    policy = job()
    policy.begin()
    hands.move(100)
    save(policy, hands, 1, blocking_s=5, upload_s=0)
    longer_s = policy.interval_s
    policy.learn(Before(rate_per_s=1 / 400, within=1, source="of 3 jobs of a like size"))
    save(policy, hands, 2, blocking_s=5, upload_s=0)
    assert policy.interval_s < longer_s / 3
    assert "of 3 jobs of a like size" in job.told()[-1][1]


def test_the_next_attempt_knows_one_failure_more_and_what_saves_took(job, hands):
    first = job()
    first.begin()
    hands.move(1000)
    save(first, hands, 1, blocking_s=5, upload_s=30)
    second = job()
    second.load_state_dict(first.state_dict())
    assert second.own.failures == 1
    assert second.own.train_s == pytest.approx(1030 + first.interval_s / 2)
    assert second.interval_s < first.interval_s
    second.begin()
    assert "a save blocks 5 s and is durable after 30 s" in job.told()[-1][1]


def test_an_attempt_that_had_said_it_would_leave_did_not_fail(job, hands):
    first = job()
    first.begin()
    hands.move(1000)
    second = job()
    second.load_state_dict(first.state_dict(leaving=True))
    assert (second.own.failures, second.own.train_s) == (0, 1000)


def test_who_has_to_leave_knows_what_is_unsaved_and_what_a_save_takes(job, hands):
    policy = job()
    policy.begin()
    hands.move(100)
    assert policy.standing().unsaved_s == 100
    assert policy.standing().save_s is None
    save(policy, hands, 1, blocking_s=5, upload_s=15)
    hands.move(485)
    standing = policy.standing()
    assert (standing.unsaved_s, standing.save_s, standing.in_flight_s) == (500, 20, None)
    assert way_to_leave(standing, 30).way == SAVE


def test_a_save_in_flight_is_waited_for_where_another_one_would_not_end_in_time(job, hands):
    policy = job()
    policy.begin()
    hands.move(100)
    save(policy, hands, 1, blocking_s=5, upload_s=15)
    hands.move(585)
    with policy.saving(2):
        hands.move(5)
    hands.move(3)
    standing = policy.standing()
    assert (standing.unsaved_s, standing.in_flight_s, standing.since_capture_s) == (603, 12, 3)
    assert way_to_leave(standing, 30).way == WAIT
    policy.durable(2)
    assert policy.standing().unsaved_s == 3


def test_a_save_that_failed_keeps_nothing(job, hands):
    policy = job()
    policy.begin()
    hands.move(100)
    with policy.saving(1):
        hands.move(5)
    policy.failed(1)
    assert policy.standing().unsaved_s == 100
    assert policy.standing().in_flight_s is None


def test_a_save_that_is_durable_before_the_trainer_goes_on_takes_no_longer(job, hands):
    policy = job()
    policy.begin()
    hands.move(100)
    with policy.saving(1):
        hands.move(5)
        policy.durable(1)
    hands.move(20)
    standing = policy.standing()
    assert (standing.unsaved_s, standing.save_s, standing.in_flight_s) == (20, 5, None)


def test_what_was_never_begun_here_is_not_measured(job):
    policy = job()
    policy.durable(7)
    assert policy.standing().save_s is None


def test_ranks_that_do_not_lead_ask_for_no_save_and_tell_nothing(job, hands):
    policy = job(leads=False)
    policy.begin()
    hands.move(1e6)
    assert not policy.is_due()
    with policy.saving(1):
        hands.move(5)
    assert not job.told()
