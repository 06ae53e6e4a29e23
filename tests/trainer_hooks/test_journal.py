"""The journal against real kills, full disks, slow disks and forks."""

from __future__ import annotations

import errno
import os
import random
import signal
import threading
from pathlib import Path

import pytest

from ett_core.events import Counters, Decision, Heartbeat, decode
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal

WRITER = """
import sys
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
number = 0
while True:
    with recorder.phase("step" + "x" * 200, step=number):
        number += 1
    print(number, flush=True)
"""

FORKER = """
import os, sys
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
with recorder.phase("model_init"):
    pid = os.fork()
    if pid == 0:
        for _ in recorder.batches(range(3)):
            recorder.durable(1)
        recorder.close("failed")
        sys.exit(0 if not recorder.active else 1)
    _, status = os.waitpid(pid, 0)
recorder.close("succeeded" if status == 0 else "failed")
"""


@pytest.fixture
def journal(tmp_path):
    made = []

    def make(path=None, **settings):
        warnings = []
        identity = Identity(job_id="job", writer="w", rank=0)
        path = path or tmp_path / "w-1.jsonl"
        made.append(
            Journal(path, identity, clock=Clock(), guard=Guard(warnings.append), retry_s=0.01, **settings)
        )
        return made[-1], warnings

    yield make
    for each in made:
        each.close(0.1)


def test_whole_lines_survive_sigkill_at_any_moment(start, events_in, tmp_path):
    """Every phase that had ended when the process was killed is in the journal, in order."""
    for _ in range(8):
        child = start(WRITER)
        rounds = random.Random().randrange(1, 40)
        told = [int(child.stdout.readline()) for _ in range(rounds)]
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        (path,) = (tmp_path / "journal").glob(f"*-{child.pid}.jsonl")
        events = events_in(path)
        assert [event.seq for event in events] == list(range(len(events)))
        assert sum(event.kind == "phase_end" for event in events) >= told[-1]


def test_a_full_disk_costs_events_and_nothing_else(journal):
    """Memory stays bounded, losses are counted, one warning is given for each reason."""
    full, warnings = journal(Path("/dev/full"), limit=100)
    for number in range(1000):
        full.put(Decision, 1e9, urgent=number % 2 == 0, what="w")
    assert full.dropped >= 850
    assert full._queue.qsize() <= 110
    assert not full.close(0.1)
    assert len(warnings) <= 3
    assert sum("No space left" in text for text in warnings) == 1


def test_lines_are_whole_and_in_order_when_the_disk_takes_them_by_pieces(journal, tmp_path):
    """Short writes and errors in between lose nothing and tear nothing."""
    chance = random.Random(7)

    def grudging(descriptor, data):
        if chance.random() < 0.3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(descriptor, data[: chance.randrange(1, 60)])

    slow, _ = journal(write=grudging)
    for number in range(30):
        slow.put(Decision, 1e9 + number, what=f"decision {number}")
    assert slow.flush(30.0)
    events = [decode(line) for line in (tmp_path / "w-1.jsonl").read_bytes().splitlines()]
    assert [event.what for event in events] == [f"decision {number}" for number in range(30)]


def test_nobody_waits_for_a_disk_that_hangs(journal):
    """The first urgent event waits a bounded moment, later ones not at all; all arrive in the end."""
    hanging = threading.Event()

    def hang(descriptor, data):
        hanging.wait(60.0)
        return os.write(descriptor, data)

    stuck, _ = journal(write=hang)
    for _ in range(5000):
        stuck.put(Decision, 1e9, urgent=True, what="w")
    assert not hanging.is_set()
    hanging.set()
    assert stuck.flush(30.0)
    assert len(stuck.path.read_bytes().splitlines()) == 5000


def test_silence_is_broken_by_a_heartbeat(journal, eventually):
    """A process that has nothing to say still says that it lives."""
    quiet, _ = journal(heartbeat_s=0.02)
    eventually(lambda: quiet.path.exists() and quiet.path.read_bytes().count(b"\n") >= 2)
    assert all(isinstance(decode(line), Heartbeat) for line in quiet.path.read_bytes().splitlines())


def test_what_was_dropped_is_told_at_the_end(journal):
    """The loss stands in the journal itself."""
    lossy, _ = journal()
    lossy.put(Decision, -1.0, what="before time")
    assert lossy.flush(30.0)
    assert lossy.close()
    (event,) = [decode(line) for line in lossy.path.read_bytes().splitlines()]
    assert isinstance(event, Counters)
    assert event.values == {"hooks.dropped_events": 1.0}


def test_a_directory_that_appears_late_is_written_then(journal, tmp_path, eventually):
    """Events wait in memory while the place cannot be made."""
    blocked = tmp_path / "run"
    blocked.write_text("a file where the directory should be")
    late, warnings = journal(blocked / "w-1.jsonl")
    late.put(Decision, 1e9, what="w", urgent=True)
    eventually(lambda: warnings)
    blocked.unlink()
    assert late.flush(30.0)
    assert late.path.exists()


def test_a_forked_child_writes_nothing_under_its_parents_name(start, events_in, tmp_path):
    """In the child the hooks are off; the parent's journal is whole."""
    child = start(FORKER)
    _, errors = child.communicate()
    assert child.returncode == 0, errors
    (path,) = (tmp_path / "journal").iterdir()
    events = events_in(path)
    assert [event.kind for event in events] == ["attempt_start", "phase_begin", "phase_end", "attempt_end"]
    assert [event.seq for event in events] == [0, 1, 2, 3]
    assert events[-1].status == "succeeded"


def test_a_step_of_the_wall_clock_bends_no_duration_and_is_followed():
    """Small differences are left alone, a step moves the anchor."""
    wall_s = [1000.0]
    clock = Clock(wall=lambda: wall_s[0], monotonic=lambda: 10.0)
    wall_s[0] += 0.4
    assert not clock.reanchor()
    assert clock.now() == 1000.0
    wall_s[0] += 3600.0
    assert clock.reanchor()
    assert clock.now() == 4600.4
