"""Asynchronous saves: steps beside them are reported apart, so that what they cost can be told."""

from __future__ import annotations

import threading

import pytest

from ett_core.details import JobDetails
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal


def test_reports_are_cut_where_an_asynchronous_save_begins_and_ends(bench, hands):
    """Steps 4 to 6 run beside the save of step 3; the next ones are none of its."""
    b = bench(report_every_s=1000.0)
    for number in b.recorder.batches(range(1, 10)):
        hands.move(2.0 if number in (4, 5, 6) else 1.0)
        if number == 3:
            with b.recorder.checkpoint(3, mode="async"):
                hands.move(0.5)
        if number == 6:
            done = threading.Thread(target=b.recorder.durable, args=(3, "async"))
            done.start()
            done.join()
    reports = [(event.step, event.steps, event.step_seconds.sum) for event in b.of("progress")]
    assert reports == [(1, 1, 1.0), (3, 2, 2.0), (6, 3, 6.0), (9, 3, 3.0)]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_save_that_fails_cuts_them_too_and_a_synchronous_one_needs_no_cut(bench, hands, mode):
    b = bench(report_every_s=1000.0)
    for number in b.recorder.batches(range(1, 10)):
        hands.move(1.0)
        if number == 6:
            b.recorder.checkpoint_failed(3, "no space", mode=mode)
    steps = [event.step for event in b.of("progress")]
    assert steps == ([1, 6, 9] if mode == "async" else [1, 9])


def test_the_cost_of_a_real_save_beside_real_steps_is_found(tmp_path, events_in):
    """Steps of 2 ms that take 6 ms while a thread saves: three times as long, by the journal alone."""
    identity = Identity(job_id="job", writer="w", node="n0")
    journal = Journal(tmp_path / "w-1.jsonl", identity, clock=Clock())
    recorder = Recorder(identity=identity, journal=journal, report_every_s=0.05)
    saving, pause = threading.Event(), threading.Event()

    def save():
        pause.wait(0.3)
        saving.clear()
        recorder.durable(150, mode="async")

    for number in recorder.batches(range(1, 301)):
        pause.wait(0.006 if saving.is_set() else 0.002)
        if number == 150:
            with recorder.checkpoint(number, mode="async"):
                saving.set()
                thread = threading.Thread(target=save)
                thread.start()
    thread.join()
    recorder.close()
    details = JobDetails()
    details.add(events_in(tmp_path))
    (found,) = details.async_saves.saves
    assert found.outcome == "durable"
    assert found.share > 0.3
    assert found.noise_s < found.excess_s < found.ended - found.began
