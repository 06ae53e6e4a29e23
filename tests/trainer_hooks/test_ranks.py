"""Deaths of ranks, and what they are judged to be."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path

import pytest

from ett_trainer_hooks.ranks import Alarm, Death, RankProcess, RankWatch, Verdict, judge

IDLE = """
import sys, time
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
print("ready", flush=True)
sys.stdin.read() if sys.argv[1:] == ["stdin"] else time.sleep(60)
"""


def death(attempt=0):
    return Death(RankProcess(Path("j"), 1, attempt, 4711, 5), seen_at=1e9)


@pytest.mark.parametrize(
    ("told", "attempt", "status", "verdict"),
    [
        ({}, 0, None, None),
        ({4711: -9}, 0, None, Verdict(is_failure=True, signal=9)),
        ({4711: 3}, 0, None, Verdict(is_failure=True, exit_code=3)),
        ({4711: 0}, 0, 1, Verdict(is_failure=False, exit_code=0)),
        ({12: -9}, 0, None, None),
        ({}, 1, None, Verdict(is_failure=True)),
        ({}, 0, 0, Verdict(is_failure=False)),
        ({}, 0, 1, Verdict(is_failure=True)),
    ],
)
def test_a_death_is_judged_by_what_is_known(told, attempt, status, verdict):
    """Open until a log, a new attempt or the end of the command decides."""
    assert judge(death(), told=told, attempt=attempt, command_status=status) == verdict


def test_a_killed_rank_is_seen_and_one_that_ended_is_not(start, tmp_path):
    """A journal without an end whose process is gone is a death; it is told once."""
    directory = tmp_path / "journal"
    node = os.uname().nodename
    watch = RankWatch(directory, job_id="job", node=node, now=lambda: 1e9)
    child = start(IDLE, RANK="1", TORCHELASTIC_RESTART_COUNT="2")
    child.stdout.readline()
    assert watch.look() == []
    assert watch.attempt == 2
    alarm = Alarm()
    alarm.watch([process.pid for process in watch.alive])
    child.send_signal(signal.SIGKILL)
    alarm.wait(30.0)
    child.wait()
    (found,) = watch.look()
    assert (found.process.rank, found.process.pid, found.process.attempt) == (1, child.pid, 2)
    assert watch.look() == []
    alarm.close()


def test_journals_of_earlier_runs_of_other_jobs_and_other_nodes_are_left_alone(start, tmp_path):
    """Only ranks that appear now, of this job and on this node, are watched."""
    directory = tmp_path / "journal"
    old = start(IDLE)
    old.stdout.readline()
    node = os.uname().nodename
    watch = RankWatch(directory, job_id="job", node=node, now=lambda: 1e9)
    elsewhere = RankWatch(tmp_path / "journal", job_id="job", node="another", now=lambda: 1e9)
    other = start(IDLE, ETT_JOB_ID="another")
    other.stdout.readline()
    mine = start(IDLE)
    mine.stdout.readline()
    watch.look()
    elsewhere.look()
    assert [process.pid for process in watch.alive] == [mine.pid]
    assert elsewhere.alive == []


def refused(_pid):
    raise OSError(errno.ENOSYS, "Function not implemented")


@pytest.mark.parametrize("open_pid", [None, refused])
def test_an_alarm_without_help_from_the_kernel_waits_out_its_time(open_pid):
    """Where there are no pidfds the launcher looks at its own pace, it does not spin."""
    alarm = Alarm(open_pid=open_pid)
    alarm.watch([os.getpid()])
    began_s = time.monotonic()
    alarm.wait(0.05)
    assert time.monotonic() - began_s >= 0.049
    alarm.close()
