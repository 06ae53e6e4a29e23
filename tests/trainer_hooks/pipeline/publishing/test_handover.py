"""The hand-over: either side may die at any moment, and two publishers never hold one lease."""

import errno
import os
import resource
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("xxhash")

from ett_trainer_hooks.pipeline import takes
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError
from ett_trainer_hooks.pipeline.checkpoint.retention import Retention
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.pipeline.durable import created
from ett_trainer_hooks.pipeline.publishing.handover import OPEN_FOR_S, Outcome, find, prepare
from ett_trainer_hooks.pipeline.takes import Holder, Lease, LostError, take

LONG_AGO_S = 2 * takes.LEASE_S
TAKES = """
import pathlib, sys, time
from ett_trainer_hooks.pipeline.takes import take
lease = take(pathlib.Path(sys.argv[1]), "other")
print("taken", flush=True)
time.sleep(600)
"""


def record(root, step=400):
    return prepare(root, step, job_id="trainer", publishable="a:b", settings={"rows": 7}, predictions=b"told")


def anchor(root, step=400, *, made_s=0.0):
    """A checkpoint as torch writes it, completed so many seconds after now."""
    directory = root / f"step_{step}"
    directory.mkdir(exist_ok=True)
    metadata = directory / ".metadata"
    metadata.write_bytes(os.urandom(8))
    moment = metadata.stat().st_mtime + made_s
    os.utime(metadata, (moment, moment))


def age(folder, number, seconds):
    path = folder / f"take-{number}.json"
    moment = path.stat().st_mtime - seconds
    os.utime(path, (moment, moment))


def from_elsewhere(folder, number):
    """A take of another machine, just renewed."""
    holder = Holder(job_id="other", node="n7", boot="another kernel", pid=17, taken_at=0.0)
    (folder / f"take-{number}.json").write_bytes(msgspec.json.encode(holder))


@pytest.fixture
def handover(tmp_path):
    made = record(tmp_path)
    anchor(tmp_path)
    made.asked_for()
    return made


def test_a_hand_over_goes_from_prepared_to_done(tmp_path):
    made = record(tmp_path)
    assert (made.state(), find(tmp_path)) == ("prepared", [made])
    anchor(tmp_path)
    made.asked_for()
    assert made.state() == "pending"
    lease = take(made.folder, "publisher")
    assert (lease.number, made.state()) == (1, "taken")
    assert made.end(Outcome(state="done", by="publisher", at=1.0, place="/models/m")).place == "/models/m"
    lease.release()
    assert made.state() == "done"


def test_an_outcome_is_said_once(handover):
    handover.end(Outcome(state="done", by="one", at=1.0, place="here"))
    assert handover.end(Outcome(state="failed", by="two", at=2.0, reason="late")).by == "one"
    handover.reopen()
    assert handover.state() == "done"


def test_a_failed_one_can_be_reopened(handover):
    handover.end(Outcome(state="failed", by="one", at=1.0, reason="full"))
    assert handover.state() == "failed"
    handover.reopen()
    assert handover.state() == "pending"


def test_a_trainer_that_died_between_anchor_and_request_is_found(tmp_path):
    made = record(tmp_path)
    anchor(tmp_path)
    assert [each.state() for each in find(tmp_path)] == ["pending"]
    assert made.request().step == 400


def test_a_trainer_that_died_before_its_anchor_has_handed_nothing_over(tmp_path):
    anchor(tmp_path, made_s=-5.0)  # of an earlier run that came to the same step
    record(tmp_path)
    record(tmp_path, step=800)
    assert [each.state() for each in find(tmp_path)] == ["prepared", "prepared"]


def test_a_trainer_that_comes_to_the_step_again_takes_its_earlier_record_away(tmp_path):
    record(tmp_path)
    second = record(tmp_path)
    anchor(tmp_path)
    assert find(tmp_path) == [second]


def test_what_was_asked_for_stays_though_the_step_is_trained_again(tmp_path, handover):
    second = record(tmp_path)
    assert {each.folder for each in find(tmp_path)} == {handover.folder, second.folder}


def test_there_is_no_request_without_a_checkpoint(tmp_path):
    with pytest.raises(DamagedError, match="there is no checkpoint"):
        record(tmp_path).asked_for()


def test_a_disk_that_stutters_ends_no_renewals(handover, monkeypatch, eventually):
    """A holder that lives keeps its lease, though for a while nobody could tell it whether it has it."""
    monkeypatch.setattr(takes, "LEASE_S", 0.6)
    lease, stat = take(handover.folder, "publisher"), Path.stat
    path, asked = handover.folder / "take-1.json", threading.Event()

    def stuttering(self, **how):
        if self == path:
            asked.set()
            raise OSError(errno.EIO, "Input/output error")
        return stat(self, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", stuttering)
        assert asked.wait(60.0)
    os.utime(path, (1.0, 1.0))
    eventually(lambda: path.stat().st_mtime > 1.0)
    lease.release()
    assert path.stat().st_mtime == takes.LET_GO[1]


def test_of_many_that_want_it_one_has_it(handover):
    got, ready = [], threading.Barrier(8)

    def want():
        ready.wait()
        got.append(take(handover.folder, "publisher"))

    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    leases = [each for each in got if isinstance(each, Lease)]
    assert len(leases) == 1
    assert [each.pid for each in got if isinstance(each, Holder)] == [os.getpid()] * 7
    leases[0].release()


def test_what_a_killed_process_of_this_machine_held_is_free_at_once(handover):
    with subprocess.Popen(
        [sys.executable, "-c", TAKES, str(handover.folder)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"taken\n"
        assert (handover.state(), take(handover.folder, "me").pid) == ("taken", process.pid)
        process.kill()
        process.wait()
        assert handover.state() == "pending"
        lease = take(handover.folder, "me")
        assert lease.number == 2
        lease.release()


def test_a_lease_of_another_machine_runs_out(handover):
    from_elsewhere(handover.folder, 1)
    assert take(handover.folder, "me").node == "n7"
    age(handover.folder, 1, LONG_AGO_S)
    lease = take(handover.folder, "me")
    assert lease.number == 2
    lease.release()


def test_a_holder_that_stood_still_learns_that_it_has_lost(handover):
    stood_still = take(handover.folder, "me")
    age(handover.folder, 1, LONG_AGO_S)
    lease = take(handover.folder, "other")
    with pytest.raises(LostError, match="another process has taken over"):
        stood_still.check()
    stood_still.release()
    assert handover.state() == "taken"
    lease.check()
    lease.release()


def test_a_lease_is_renewed(handover, monkeypatch, eventually):
    monkeypatch.setattr(takes, "RENEWALS", 6000)
    lease = take(handover.folder, "me")
    path = handover.folder / "take-1.json"
    os.utime(path, (1.0, 1.0))
    eventually(lambda: path.stat().st_mtime > 1.0)
    lease.release()


def test_what_was_released_is_free_at_once(handover):
    take(handover.folder, "me").release()
    assert handover.state() == "pending"


@contextmanager
def disk_that_takes(size):
    """Files grow to so many bytes, and no further."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_of_which_the_disk_takes_a_part_is_not_created(tmp_path):
    with disk_that_takes(10), pytest.raises(OSError, match="File too large"):
        created(tmp_path / "outcome.json", b"x" * 100)
    assert list(tmp_path.iterdir()) == []


def test_on_a_full_disk_it_is_seen_where_a_hand_over_stands(handover):
    from_elsewhere(handover.folder, 1)
    with disk_that_takes(0):
        assert handover.state() == "taken"
        with pytest.raises(OSError, match="File too large"):
            handover.end(Outcome(state="failed", by="one", at=1.0, reason="full"))


def test_a_damaged_file_is_named(handover):
    (handover.folder / "outcome.json").write_bytes(b"{")
    with pytest.raises(ValueError, match=r"outcome\.json is damaged: Input data was truncated"):
        handover.state()


def committed(store, *steps):
    """Checkpoints of the commit-safe store."""
    for step in steps:
        directory = store.begin(step)
        (directory / ".metadata").write_text(f"step {step}")
        store.commit(directory, step)


@pytest.fixture
def hour():
    """The clock of a store, in hours from now."""
    return [0.0]


@pytest.fixture
def store(tmp_path, hour):
    """One that keeps the last checkpoint alone."""
    return CheckpointStore(tmp_path, retention=Retention(last=1), now=lambda: time.time() + 3600.0 * hour[0])


@pytest.fixture
def wanted(store):
    """What is handed over of step 400, while the training has gone on to step 800."""
    made = record(store.root)
    committed(store, 400)
    made.asked_for()
    committed(store, 800)
    return made


@pytest.mark.parametrize("state", ["done", "failed"])
def test_a_checkpoint_stays_until_it_is_published_or_given_up(store, wanted, state):
    assert store.retire() == []  # asked for
    lease = take(wanted.folder, "publisher")
    assert store.retire() == []  # at work
    wanted.end(Outcome(state=state, by="publisher", at=1.0))
    lease.release()
    assert store.retire() == [400]


def test_a_checkpoint_whose_trainer_died_before_it_asked_stays_too(store):
    record(store.root)
    committed(store, 400, 800)
    assert store.retire() == []


def test_a_record_without_its_checkpoint_keeps_no_earlier_one(store):
    committed(store, 400)
    metadata = store.path_of(400) / ".metadata"
    os.utime(metadata, ns=(0, 0))
    record(store.root)
    committed(store, 800)
    assert store.retire() == [400]


def test_a_request_that_nobody_takes_keeps_its_checkpoint_for_a_week(store, wanted, hour):
    hour[0] = OPEN_FOR_S / 3600.0 - 1.0
    assert store.retire() == []
    hour[0] += 2.0
    lease = take(wanted.folder, "publisher")
    assert store.retire() == []  # somebody has come at last
    lease.release()
    assert store.retire() == [400]


def test_what_is_damaged_of_a_hand_over_keeps_nothing(store, wanted):
    (wanted.folder / "request.json").write_text("{")
    assert store.retire() == [400]
