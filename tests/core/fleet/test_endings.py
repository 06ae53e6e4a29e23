"""Failed, preempted, cancelled and timed out are told apart by what is certain, not by a signal alone."""

from __future__ import annotations

import pytest

from ett_cli.recorded import Recorded
from ett_core import events as ev

BEGIN = 1_764_000_000.0
KILLED = {"signal": 15, "exit_code": 143}


def job_ended_with(text, source="scheduler"):
    """A job that trained and was ended by SIGTERM, with a line about it."""
    where = {"job_id": "j", "writer": "w", "attempt": 0, "rank": 0, "node": "n"}
    events = [
        ev.AttemptStart(**where, seq=0, time=BEGIN, world_size=1),
        ev.FirstBatch(**where, seq=1, time=BEGIN + 10, step=0),
        ev.Progress(**where, seq=2, time=BEGIN + 60, step=50, steps=50, samples=1, data_wait_s=0),
        ev.Evidence(**where, seq=3, time=BEGIN + 70, source=source, text=text),
        ev.Failure(**where, seq=4, time=BEGIN + 70, **KILLED),
        ev.JobEnd(**(where | {"rank": -1, "writer": "l"}), seq=0, time=BEGIN + 80, status="failed"),
    ]
    job = Recorded("j")
    job.add(events)
    return job.as_json(BEGIN + 100)


@pytest.mark.parametrize(
    ("text", "state", "cause"),
    [
        ("slurmstepd: error: *** JOB 4711 ON n CANCELLED AT 2026-11-29T10:00:00 DUE TO TIME LIMIT ***",
         "timed_out", "reached its time limit"),
        ("slurmstepd: error: *** JOB 4711 ON n CANCELLED AT 2026-11-29T10:00:00 DUE TO PREEMPTION ***",
         "preempted", "preempted"),
        ("nothing of note", "failed", "rank 0 was stopped by SIGTERM (sender unknown)"),
    ],
)  # fmt: skip
def test_who_ended_a_job_decides_its_state_and_cause(text, state, cause):
    """The same signal, and what the scheduler says of it."""
    job = job_ended_with(text)
    (failure,) = job["failure_list"]
    assert (job["state"], failure["ending"], failure["cause"]) == (state, state, cause)
    assert job["infra_failures"] == (state != "failed")


def test_a_launcher_that_knows_who_sent_a_signal_is_asked_for_the_cause_of_the_job():
    """The rank speaks first and does not know it; the launcher tells it beside."""
    job = job_ended_with("rank 0 (pid 7) was sent SIGTERM by torchrun", source="launcher")
    (failure,) = job["failure_list"]
    assert failure["cause"] == "rank 0 was stopped by SIGTERM (sent by torchrun)"
    assert failure["diagnosis"]["role"] == "teardown"
