"""What is final of a job's time, and counters that never fall over it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plausible import EPOCH, plausible

from ett_core import events as ev
from ett_core.accounting import JobFold
from ett_core.growing import Growing, highest


class Job:
    """Tells events of one rank, one second after EPOCH a unit of time."""

    def __init__(self):
        self.fold = JobFold("j")
        self.seq = 0

    def say(self, kind, at, attempt=0, **fields):
        about = {"writer": f"w{attempt}", "seq": self.seq, "attempt": attempt, "rank": 0}
        self.fold.add([kind(job_id="j", time=EPOCH + at, **about, **fields)])
        self.seq += 1

    def final(self, at):
        return dict(self.fold.account(EPOCH + at).final)


@pytest.fixture
def trained():
    """A job that starts in 10 s and trains 100 s, step 1 to 10, the first five steps durable."""
    job = Job()
    job.say(ev.AttemptStart, 0)
    job.say(ev.FirstBatch, 10)
    job.say(ev.Progress, 60, step=5, steps=5, data_wait_s=5.0)
    job.say(ev.CheckpointDurable, 61, step=5)
    job.say(ev.Progress, 110, step=10, steps=5, data_wait_s=1.0)
    return job


def test_nothing_is_final_before_it_is_closed():
    """The start is final once the loop runs and reports, the first steps once they are durable."""
    job = Job()
    job.say(ev.AttemptStart, 0)
    assert job.final(30) == {}
    job.say(ev.FirstBatch, 10)
    assert job.final(30) == {}
    job.say(ev.Progress, 60, step=5, steps=5, data_wait_s=5.0)
    assert job.final(70) == {"start.process_start": 10.0, "data_wait": 5.0}
    job.say(ev.CheckpointDurable, 61, step=5)
    assert job.final(70) == {"start.process_start": 10.0, "data_wait": 5.0, "training": 45.0}


def test_training_after_the_durable_step_is_not_final(trained):
    """Steps 6 to 10 can still be lost; the wait among them is closed."""
    assert trained.final(115) == {"start.process_start": 10.0, "data_wait": 6.0, "training": 45.0}


def test_a_success_makes_all_training_final(trained):
    """No fallback can take it any more."""
    trained.say(ev.AttemptEnd, 112, status="succeeded")
    assert trained.final(500)["training"] == pytest.approx(94.0)


def test_a_failure_leaves_what_was_durable_and_its_recovery_is_open(trained):
    """What was lost is final at once; the time since the failure is not until the next loop reports."""
    trained.say(ev.Failure, 112)
    final = trained.final(300)
    assert final["training"] == 45.0
    assert final["unsaved_training"] == pytest.approx(51.0)
    assert "recover.restart" not in final


def test_a_deeper_fallback_takes_back_what_was_final(trained):
    """The next attempt begins at step 2: three durable steps are gone, and counted as taken back."""
    trained.say(ev.CheckpointDurable, 30, step=2)
    growing, before = Growing(), {}
    for at in (115, 300):
        if at == 300:
            trained.say(ev.Failure, 112)
            trained.say(ev.AttemptStart, 120, attempt=1, resumed_step=2)
        now = {name: round(seconds * 1e9) for name, seconds in trained.final(at).items()}
        growing.change(before, now)
        before = now
    assert growing.counted["training"] == 45_000_000_000
    assert growing.taken_back["training"] == 27_000_000_000


def test_final_never_exceeds_what_is_known_and_is_all_of_it_at_the_end():
    """Of any plausible history, as it comes in, final is a part of the account; of a finished one all."""
    for seed in range(120):
        events, now = plausible(random.Random(seed))
        events.sort(key=lambda event: event.time)
        fold = JobFold("job")
        for event in events:
            fold.add([event])
            account = fold.account(event.time)
            if account is not None:
                check(account)
        check(fold.account(now))


def check(account):
    known = {name: seconds + 1e-6 for name, seconds in account.components.items()}
    assert all(0 < seconds <= known.get(name, 0.0) for name, seconds in account.final.items())
    if account.finished:
        assert account.final == account.components


amounts = st.dictionaries(st.sampled_from("abc"), st.integers(0, 9))


@given(st.lists(amounts, min_size=1))
def test_counted_less_taken_back_is_the_amount(states):
    """Whatever the amounts do, both counters only grow, and their difference is the amount."""
    growing, before = Growing(), {}
    seen = {}
    for now in states:
        growing.change(before, now)
        before = now
        for key in "abc":
            counted, back = growing.counted.get(key, 0), growing.taken_back.get(key, 0)
            assert counted - back == now.get(key, 0)
            assert (counted, back) >= seen.get(key, (0, 0))
            seen[key] = (counted, back)


@given(amounts, amounts)
def test_the_highest_of_two_never_falls(before, now):
    """Each key has the larger of its two amounts."""
    found = highest(before, now)
    assert all(found[key] == max(before.get(key, 0), now.get(key, 0)) for key in before.keys() | now.keys())
