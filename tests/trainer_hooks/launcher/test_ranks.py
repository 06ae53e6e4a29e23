"""Deaths of ranks, and what they are judged to be."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path

import pytest

from ett_core.events import AttemptEnd, AttemptStart, CheckpointDurable, Heartbeat
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.journal.parts import Sizes
from ett_trainer_hooks.launcher.alarm import Alarm, status_by_descriptor
from ett_trainer_hooks.launcher.ranks import Death, RankProcess, RankWatch, find_process, has_ended
from ett_trainer_hooks.launcher.verdicts import Verdict, judge
from ett_trainer_hooks.procfs import exit_status, process_started_at

IDLE = """
import sys, time
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
print("ready", flush=True)
sys.stdin.read() if sys.argv[1:] == ["stdin"] else time.sleep(60)
"""


IN_PARTS = """
import sys
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
for number in range(30):
    with recorder.phase(f"phase {number}"):
        pass
if sys.argv[1] == "ended":
    recorder.close()
print("ready", flush=True)
sys.stdin.read()
"""


PATIENCE_S = 60.0


def death(attempt=0):
    return Death(RankProcess(Path("j"), 1, attempt, 4711, 5), seen_at=1e9)


@pytest.mark.parametrize(
    ("told", "attempt", "status", "verdict"),
    [
        ({}, 0, None, None),
        ({4711: -9}, 0, None, Verdict(is_failure=True, signal=9)),
        ({4711: 3}, 0, None, Verdict(is_failure=True, exit_code=3)),
        ({4711: 0}, 0, 1, Verdict(is_failure=False, exit_code=0)),
        ({4711: 0}, 0, None, None),
        ({4711: 0}, 1, None, Verdict(is_failure=True, exit_code=0)),
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
    assert alarm.wait(30.0) == {child.pid: -signal.SIGKILL}
    child.wait()
    (found,) = watch.look()
    assert (found.process.rank, found.process.pid, found.process.attempt) == (1, child.pid, 2)
    assert watch.look() == []
    alarm.close()


@pytest.mark.parametrize("end", ["ended", "killed"])
def test_a_journal_in_parts_is_one_rank(start, tmp_path, end):
    """The first part tells who it is, the last one whether it has ended."""
    watch = RankWatch(tmp_path / "journal", job_id="job", node=os.uname().nodename, now=lambda: 1e9)
    child = start(IN_PARTS, end, RANK="1", ETT_JOURNAL_PART_BYTES="600")
    child.stdout.readline()
    assert watch.look() == []
    assert [process.pid for process in watch.alive] == [child.pid]
    assert len(list((tmp_path / "journal").glob("*.jsonl"))) > 10
    child.kill()
    child.wait()
    assert [found.process.pid for found in watch.look()] == ([child.pid] if end == "killed" else [])
    assert [process.pid for process in watch.departed] == [child.pid]


@pytest.mark.parametrize("lines", range(14, 34))
def test_an_end_that_fills_its_part_is_seen(tmp_path, lines):
    """Also where the next part is begun by what is kept of one that has to go for it."""
    path = tmp_path / "w-1.jsonl"
    journal = Journal(
        path,
        Identity(job_id="job", writer="w"),
        clock=Clock(),
        sizes=Sizes(part_bytes=400, max_bytes=1600),
    )
    for step in range(lines):
        journal.put(CheckpointDurable, 1e9, step=step)
        assert journal.flush(60.0)
    assert not has_ended(path)
    journal.put(AttemptEnd, 1e9, status="succeeded")
    assert journal.close(60.0)
    assert has_ended(path)


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


@pytest.mark.parametrize(("number", "status"), [(0, 7), (signal.SIGSEGV, -signal.SIGSEGV)])
def test_the_exit_of_a_process_is_read_before_and_after_its_parent_waits_for_it(number, status):
    """Of a zombie `/proc` tells; afterwards a pidfd does, on kernels that keep it."""
    pid = os.fork()
    if pid == 0:
        if number:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        os._exit(status)
    descriptor = os.pidfd_open(pid)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert exit_status(pid) == status
    os.waitpid(pid, 0)
    assert exit_status(pid) is None
    assert status_by_descriptor(descriptor) in (status, None)
    os.close(descriptor)


def written(directory, identity, pid, clock):
    """A journal that a process `pid`, which is not here, has begun."""
    journal = Journal(directory / f"{identity.writer}-{pid}.jsonl", identity, clock=clock, heartbeat_s=1e6)
    journal.put(AttemptStart, clock.now(), process_started_at=clock.now(), urgent=True)
    return journal


NOBODY = 2**22 + 1
"""More than any pid may be."""


def watching(tmp_path, hands):
    identity = Identity(job_id="job", writer="w", rank=3, node="n0")
    watch = RankWatch(tmp_path, job_id="job", node="n0", now=hands.clock().now)
    return watch, written(tmp_path, identity, NOBODY, hands.clock())


def test_a_rank_of_another_pid_namespace_does_not_look_dead(tmp_path, hands):
    """Its journal grows though nobody here has its pid; when it stops, that is silence and no death."""
    watch, journal = watching(tmp_path, hands)
    assert watch.look() == []
    journal.put(Heartbeat, hands.clock().now(), urgent=True)
    assert journal.flush(PATIENCE_S)
    assert watch.look() == []
    hands.move(61.0)
    assert watch.look() == []
    assert [process.rank for process in watch.fallen_silent] == [3]
    assert watch.look() == []
    assert watch.fallen_silent == []
    journal.put(Heartbeat, hands.clock().now(), urgent=True)
    assert journal.flush(PATIENCE_S)
    watch.look()
    hands.move(61.0)
    watch.look()
    assert [process.rank for process in watch.fallen_silent] == [3]
    assert watch.look(at_end=True) == []
    journal.close()


@pytest.mark.parametrize(("told", "at_end"), [((), True), ((NOBODY,), False)])
def test_a_rank_that_died_before_it_was_met_is_a_death_once_that_is_known(tmp_path, hands, told, at_end):
    """A journal that never grew is that of a process that is gone; the moment is that of the meeting."""
    watch, journal = watching(tmp_path, hands)
    journal.close()
    met_at = hands.clock().now()
    assert watch.look() == []
    hands.move(5.0)
    (found,) = watch.look(told, at_end=at_end)
    assert (found.process.pid, found.seen_at) == (NOBODY, met_at)
    assert watch.look(told, at_end=at_end) == []


def test_a_process_that_only_has_the_number_of_a_rank_is_not_taken_for_it():
    """The start tells two processes with one pid apart."""
    started = process_started_at(os.getpid())
    assert find_process(os.getpid(), started).pid == os.getpid()
    assert find_process(os.getpid(), None).pid == os.getpid()
    assert find_process(os.getpid(), started - 3600.0) is None


def test_a_process_in_a_namespace_below_this_one_is_found_by_its_own_number(tmp_path):
    """`NSpid` holds its pid here and its pid there."""
    for pid, inner in ((41, ""), (99, "\t12")):
        place = tmp_path / str(pid)
        place.mkdir()
        (place / "stat").write_text(f"{pid} (a b) c) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5000 0 0\n")
        (place / "status").write_text(f"Name:\tx\nNSpid:\t{pid}{inner}\n")
    (tmp_path / "uptime").write_text("50.0 1.0\n")
    assert find_process(12, time.time(), tmp_path).pid == 99
    assert find_process(13, time.time(), tmp_path) is None
