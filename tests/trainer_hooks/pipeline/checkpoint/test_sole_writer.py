"""Who writes to a directory of checkpoints: one start at a time, and the other one learns what to do."""

import os
import signal
import subprocess
import sys

import msgspec
import pytest

from ett_trainer_hooks.pipeline import takes
from ett_trainer_hooks.pipeline.checkpoint.sole_writer import FOLDER, OccupiedError, claim, writer_here
from ett_trainer_hooks.pipeline.takes import LEASE_S, Holder, LostError

CLAIMS = """
import os, pathlib, sys
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.sole_writer import claim
recorder = Recorder.from_env({"ETT_JOB_ID": "dlrm", "ETT_JOURNAL_DIR": sys.argv[1]})
lease = claim(pathlib.Path(sys.argv[1]), recorder)
print("claimed", flush=True)
sys.stdin.read()
"""


class Patience:
    """A clock that goes on only in pauses, in which something may happen."""

    def __init__(self, meanwhile=lambda: None):
        self.now_s, self._meanwhile = 0.0, meanwhile

    def clock(self):
        return self.now_s

    def pause(self, seconds):
        self.now_s += seconds
        self._meanwhile()


@pytest.fixture
def other(tmp_path):
    """Another process that writes there."""
    child = subprocess.Popen(
        [sys.executable, "-c", CLAIMS, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "claimed\n"
    yield child
    child.kill()
    child.communicate()


def claimed(directory, told, patience):
    return claim(directory, told.recorder, pause=patience.pause, clock=patience.clock)


def from_elsewhere(directory, seconds=0.0):
    """A writer on another machine that has renewed its lease so many seconds ago."""
    folder = directory / FOLDER
    folder.mkdir()
    holder = Holder(job_id="dlrm", node="n7", boot="another kernel", pid=17, taken_at=0.0)
    path = folder / "take-1.json"
    path.write_bytes(msgspec.json.encode(holder))
    os.utime(path, (path.stat().st_mtime - seconds,) * 2)
    return path


def test_a_second_start_waits_and_is_refused_with_what_to_do(other, tmp_path, bench):
    told = bench()
    with pytest.raises(OccupiedError) as refused:
        claimed(tmp_path, told, Patience())
    text = str(refused.value)
    assert text.startswith(f"another start writes to {tmp_path}: process {other.pid} on ")
    assert "of job dlrm, since " in text
    assert f"(pstree -sp {other.pid}, there)" in text
    [decision] = told.of("decision")
    assert (decision.what, decision.why) == ("this start waits for the one that writes its checkpoints", text)
    assert writer_here(tmp_path).pid == other.pid


def test_a_writer_that_was_killed_leaves_nothing_behind(other, tmp_path, bench):
    def kill():
        other.send_signal(signal.SIGKILL)
        other.wait()

    claimed(tmp_path, bench(), Patience(kill)).release()
    assert writer_here(tmp_path) is None


def test_one_after_the_other_writes_and_old_leases_go(tmp_path, bench):
    told = bench()
    assert writer_here(tmp_path) is None
    for number in range(1, 6):
        lease = claimed(tmp_path, told, Patience())
        assert (lease.number, writer_here(tmp_path).pid) == (number, os.getpid())
        lease.release()
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == ["take-4.json", "take-5.json"]
    assert told.of("decision") == []


def test_a_writer_elsewhere_is_waited_for_until_its_lease_has_run_out(tmp_path, bench):
    path = from_elsewhere(tmp_path)
    assert writer_here(tmp_path) is None  # another machine's is not ours to judge

    def age():
        os.utime(path, (path.stat().st_mtime - LEASE_S / 4,) * 2)

    patience = Patience(age)
    claimed(tmp_path, bench(), patience).release()
    assert patience.now_s > 0


def test_a_writer_elsewhere_that_lives_refuses_us(tmp_path, bench):
    path = from_elsewhere(tmp_path)
    with pytest.raises(OccupiedError, match="process 17 on n7, of job dlrm"):
        claimed(tmp_path, bench(), Patience(lambda: os.utime(path)))


def test_who_stood_still_for_too_long_learns_that_others_write_now(tmp_path, bench):
    """However many of them there were since."""
    lease = claimed(tmp_path, bench(), Patience())
    lease.check()
    others = []
    for number in range(1, 5):
        os.utime(tmp_path / FOLDER / f"take-{number}.json", takes.LET_GO)
        others.append(claimed(tmp_path, bench(), Patience()))
        with pytest.raises(LostError, match="another process has taken over"):
            lease.check()
    for each in (lease, *others):
        each.release()
