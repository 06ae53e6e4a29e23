"""A store that hangs at the end of a job: the save is told as failed, and the trainer leaves."""

import math
import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("fsspec")

from gloo_ranks import run_ranks  # noqa: E402

from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.node_disk import NodeDisk  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteStore  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore  # noqa: E402

pytestmark = [
    pytest.mark.service("torch"),
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled"),  # torch's word on a process alone
]

PROGRAM = Path(__file__).with_name("programs") / "hanging.py"
WHY = "given up at the end: not durable after a wait of 0 s"


class Listener:
    """Hears what becomes of saves."""

    def __init__(self):
        self.heard = []

    def durable(self, step):
        self.heard.append(("durable", step))

    def failed(self, step):
        self.heard.append(("failed", step))


@pytest.fixture
def gated(tmp_path):
    """A remote store whose uploads wait at a gate once it is closed; says when one has come to it."""
    remote, gate, reached = RemoteStore((tmp_path / "remote").as_uri()), threading.Event(), threading.Event()
    put = remote._fs.put_file

    def at_the_gate(*arguments):
        if not gate.is_set():
            reached.set()
            gate.wait()
        put(*arguments)

    gate.set()
    remote._fs = remote._at.files = _With(remote._fs, put_file=at_the_gate)
    yield remote, gate, reached
    gate.set()


class _With:
    """A file system with some of its calls replaced."""

    def __init__(self, files, **calls):
        self._files = files
        vars(self).update(calls)

    def __getattr__(self, name):
        return getattr(self._files, name)


@pytest.mark.parametrize("kind", ["flight", "upload"])
def test_a_save_that_hangs_is_told_as_failed_once_and_for_all(bench, tmp_path, gated, kind):
    """In flight, where the disk of the node is the first stage; on its way from a store, else."""
    remote, gate, reached = gated
    told, listener = bench(), Listener()
    disk = tmp_path / "disk"
    keeper = (
        Checkpointer(NodeDisk(disk, remote), told.recorder, told=listener)
        if kind == "flight"
        else Checkpointer(CheckpointStore(disk), told.recorder, remote=remote, told=listener)
    )
    keeper.save(100, {"w": torch.ones(10)})
    assert keeper.wait_until_durable()
    gate.clear()
    keeper.save(200, {"w": torch.ones(10)})
    assert reached.wait(60.0)
    assert not keeper.wait_until_durable(0.0)
    assert told.of("checkpoint_failed") == []  # the training may go on, and so may the save
    assert not keeper.close(0.0)
    assert not keeper.close()  # waits no more
    [failed] = told.of("checkpoint_failed")
    assert (failed.step, failed.message) == (200, WHY)
    assert [manifest.step for manifest in remote.committed()] == [100]

    gate.set()  # too late: it is not committed any more
    assert keeper.wait(60.0)
    assert keeper._fates.wait(60.0)
    assert [manifest.step for manifest in remote.committed()] == [100]
    assert listener.heard == [("durable", 100), ("failed", 200)]
    assert [event.step for event in told.of("checkpoint_durable")] == [100]
    assert len(told.of("checkpoint_failed")) == 1


class Stuck(CheckpointStore):
    """Stands still in one of its calls, until the gate opens."""

    def __init__(self, root, where):
        super().__init__(root)
        self.where, self.gate, self.reached = where, threading.Event(), threading.Event()

    def stand_still(self, where):
        if where == self.where:
            self.reached.set()
            self.gate.wait()

    def commit(self, *arguments, **more):
        manifest = super().commit(*arguments, **more)
        self.stand_still("commit")
        return manifest

    def manifest_of(self, step):
        self.stand_still("after it")
        return super().manifest_of(step)


@pytest.mark.parametrize("where", ["commit", "after it"])
def test_what_is_committed_is_not_given_up_and_has_one_fate(bench, tmp_path, where):
    """What hangs in the commit itself may be there later: that is said."""
    told, listener, store = bench(), Listener(), Stuck(tmp_path / "disk", where)
    keeper = Checkpointer(store, told.recorder, told=listener)
    keeper.save(100, {"w": torch.ones(10)})
    assert store.reached.wait(60.0)
    assert not keeper.close(0.0)
    store.gate.set()
    assert keeper.wait(60.0)
    durable = [("durable", each.step) for each in told.of("checkpoint_durable")]
    failed = [("failed", each.step) for each in told.of("checkpoint_failed")]
    assert durable + failed == listener.heard == [("failed" if where == "commit" else "durable", 100)]
    assert bool(keeper.fault) is bool(failed)
    if failed:
        assert keeper.fault == f"{WHY}; it was just being committed, so the next start may find it"


@pytest.mark.parametrize("patience_s", [600.0, math.inf])
def test_what_goes_well_is_durable_at_the_end_and_nothing_is_given_up(bench, tmp_path, patience_s):
    """However long somebody would wait for it."""
    told = bench()
    root, longest = tmp_path / "disk", {"patience_s": patience_s, "close_patience_s": patience_s}
    keeper = Checkpointer(CheckpointStore(root), told.recorder, **longest)
    keeper.save(50, {"w": torch.ones(10)})
    keeper.save(100, {"w": torch.ones(10)})
    assert keeper.wait(patience_s)
    assert keeper.close()
    assert keeper.close()
    assert [event.step for event in told.of("checkpoint_durable")] == [50, 100]
    assert told.of("checkpoint_failed") == []


def test_the_ranks_of_a_job_leave_although_one_of_them_hangs_in_its_saves(tmp_path, events_in):
    environ = {"ETT_JOB_ID": "job", "ETT_JOURNAL_DIR": str(tmp_path / "journal")}
    assert run_ranks(PROGRAM, tmp_path, str(tmp_path), **environ) == [[False, False]] * 2
    events = events_in(tmp_path / "journal")
    failed = [(event.step, event.message) for event in events if event.kind == "checkpoint_failed"]
    assert sorted(failed) == [(3, WHY), (4, WHY)]  # by the rank that commits
    waited = {(event.rank, event.what, event.why) for event in events if event.kind == "decision"}
    assert waited == {(1, f"the save of step {step} is waited for no longer", WHY) for step in (3, 4)}
    assert {event.status for event in events if event.kind == "attempt_end"} == {"succeeded"}
    [at_the_place] = RemoteStore((tmp_path / "remote").as_uri()).committed()
    assert at_the_place.step == 1
    assert CheckpointStore(tmp_path / "shared").newest_intact().manifest.step == 2
