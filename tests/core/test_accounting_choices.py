"""Where the rules leave a choice, the one that was made: each case in a few events."""

from __future__ import annotations

import pytest

from ett_core import events as ev
from ett_core.accounting import JobFold

EPOCH = 1_764_000_000.0


class Story:
    """Events of one job, written down in a few words."""

    def __init__(self):
        self.events = []

    def say(self, kind, at, *, attempt=0, rank=0, **fields):
        writer = f"{attempt}:{rank}"
        seq = sum(event.writer == writer for event in self.events)
        self.events.append(
            kind(job_id="j", writer=writer, seq=seq, attempt=attempt, rank=rank, time=EPOCH + at, **fields)
        )

    def begin(self, at, loop_at, **where):
        self.say(ev.AttemptStart, at, **where)
        self.say(ev.FirstBatch, loop_at, **where)

    def report(self, at, step, steps, **more):
        self.say(ev.Progress, at, step=step, steps=steps, **more)

    def account(self, now):
        fold = JobFold("j")
        fold.add(self.events)
        return fold.account(EPOCH + now)


def test_a_long_phase_owns_its_time_although_reports_came_inside_it():
    story = Story()
    story.begin(0, 0)
    story.report(10, 5, 5)
    story.say(ev.PhaseBegin, 10, phase="evaluation")
    story.report(15, 5, 0)
    story.report(20, 5, 0, data_wait_s=3.0)
    before_its_end = story.account(22).components
    story.say(ev.PhaseEnd, 24, phase="evaluation")
    story.report(30, 10, 5)
    assert before_its_end == pytest.approx({"training": 14.0, "data_wait": 3.0, "evaluation": 5.0})
    assert story.account(30).components == pytest.approx({"training": 16.0, "evaluation": 14.0})


def test_a_job_that_is_taken_up_again_after_its_end_goes_on():
    story = Story()
    story.begin(0, 0)
    story.report(10, 5, 5)
    story.say(ev.JobEnd, 12, status="succeeded")
    story.begin(30, 35, attempt=1)
    story.report(45, 10, 5, attempt=1)
    account = story.account(50)
    assert (account.state, account.finished) == ("training", False)
    assert account.components == pytest.approx(
        {"training": 25.0, "shutdown": 2.0, "other": 18.0, "start.process_start": 5.0}
    )


def test_a_success_that_training_outlived_is_one_of_a_rank():
    story = Story()
    story.begin(0, 0)
    story.begin(0, 0, rank=1)
    story.report(10, 5, 5)
    story.say(ev.AttemptEnd, 12, rank=1, status="succeeded")
    story.report(20, 10, 5)
    assert story.account(21).state == "succeeded"
    story.report(30, 15, 5)
    assert story.account(31).state == "training"
    assert story.account(31).components == pytest.approx({"training": 31.0})


def test_what_an_orphan_reports_after_the_next_start_counts_for_nothing():
    story = Story()
    story.begin(0, 0)
    story.report(10, 5, 5)
    story.report(26, 20, 15, data_wait_s=16.0)
    story.begin(20, 25, attempt=1)
    story.report(35, 10, 5, attempt=1)
    assert story.account(35).components == pytest.approx({"training": 30.0, "recover.process_start": 5.0})


def test_several_failures_share_what_they_lost():
    story = Story()
    story.begin(0, 0)
    story.report(30, 10, 10)
    story.say(ev.Failure, 30)
    story.say(ev.AttemptStart, 40, attempt=1, resumed_step=8)
    story.say(ev.FirstBatch, 40, attempt=1)
    story.report(49, 11, 3, attempt=1)
    story.say(ev.Failure, 49, attempt=1)
    story.say(ev.AttemptStart, 60, attempt=2, resumed_step=4)
    account = story.account(60)
    assert [failure.unsaved_s for failure in account.failures] == pytest.approx([6.0, 21.0])
    assert account.components["unsaved_training"] == pytest.approx(27.0)


def test_exposure_is_what_a_failure_now_would_take():
    story = Story()
    story.begin(0, 0)
    story.report(10, 5, 5)
    assert story.account(12).unsaved_exposure_s is None
    story.say(ev.CheckpointDurable, 12, step=5)
    story.report(20, 10, 5)
    assert story.account(23).unsaved_exposure_s == pytest.approx(13.0)


def test_imports_that_are_told_are_those_that_are_not():
    """A phase `imports` is of the component that holds the imports of trainers that do not tell of them."""
    story = Story()
    story.say(ev.AttemptStart, 0)
    story.say(ev.PhaseBegin, 4, phase="imports")
    story.say(ev.PhaseEnd, 14, phase="imports")
    story.say(ev.FirstBatch, 15, step=0)
    assert story.account(15).components == pytest.approx({"start.process_start": 14.0, "start.other": 1.0})


def test_phases_that_never_end_do_not_slow_the_fold_down():
    """A trainer that forgets every end, on ever new tracks, is still accounted for at once."""
    story = Story()
    story.say(ev.AttemptStart, 0)
    base = {"job_id": "j", "writer": "0:0", "attempt": 0, "rank": 0}
    many = [
        ev.PhaseBegin(seq=n + 1, time=EPOCH + 1 + n / 1e4, phase="mine", track=f"t{n % 3000}", **base)
        for n in range(30_000)
    ]
    story.events += many
    account = story.account(10)
    assert account.components == pytest.approx({"start.process_start": 1.0, "start.other": 9.0})


def test_a_rerun_that_forgot_to_count_begins_with_whoever_of_it_speaks_first():
    """Its launcher and rank 1 speak before its rank 0, and belong to the new attempt all the same."""
    story = Story()
    story.say(ev.AttemptStart, 0, rank=-1)
    story.begin(0, 5)
    story.begin(0, 5, rank=1)
    story.report(20, 5, 5)
    story.say(ev.CheckpointDurable, 20, step=5)
    again = {"job_id": "j", "attempt": 0}
    for rank, at in ((-1, 78), (1, 79), (0, 80)):
        story.events.append(
            ev.AttemptStart(seq=0, writer=f"again:{rank}", rank=rank, time=EPOCH + at, **again)
        )
    story.events.append(ev.FirstBatch(seq=1, writer="again:0", rank=0, time=EPOCH + 85, step=5, **again))
    story.events.append(ev.FirstBatch(seq=1, writer="again:1", rank=1, time=EPOCH + 85, step=5, **again))
    account = story.account(85)
    assert account.ttr_s == pytest.approx([65.0])
    assert account.components == pytest.approx(
        {
            "start.process_start": 5.0,
            "training": 15.0,
            "recover.restart": 58.0,
            "recover.process_start": 7.0,
        }
    )
