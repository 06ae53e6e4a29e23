"""Saves in every mode: what was copied is what is kept, and a save that fails does not end the training."""

import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("fsspec")

from gloo_ranks import run_ranks  # noqa: E402
from late_copies import copy_late  # noqa: E402

from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.found import UnavailableError  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.permit import Permit  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteStore  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.resumable import Randomness  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.sole_writer import claim  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore  # noqa: E402
from ett_trainer_hooks.pipeline.takes import LostError, Machine, Start  # noqa: E402

pytestmark = [
    pytest.mark.service("torch"),
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled"),  # torch's word on a process alone
]

PROGRAM = Path(__file__).with_name("programs") / "checkpointers.py"
MODES = ("sync", "async_thread", "async_process")
DURABLE = {"sync": [1, 2, 5], "async_thread": [1, 2, 5], "async_process": [1, 2, 5, 7, 8]}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What each rank tells of each mode, and the folder of what they wrote."""
    folder = tmp_path_factory.mktemp("checkpointers")
    environ = {"ETT_JOB_ID": "job", "ETT_JOURNAL_DIR": str(folder / "journal")}
    return run_ranks(PROGRAM, folder, str(folder), *MODES, **environ), folder


@pytest.fixture
def events(saved, events_in):
    """Events of a kind, in the order of their time, and of a rank where it is given."""
    everything = events_in(saved[1] / "journal")

    def of(kind, rank=None):
        return [each for each in everything if each.kind == kind and rank in (None, each.rank)]

    return of


def by_mode(events):
    """Steps in the order of their events, split where the next mode begins anew with step 1."""
    steps = [event.step for event in events]
    starts = [index for index, step in enumerate(steps) if index == 0 or step < steps[index - 1]]
    return [steps[begin:end] for begin, end in zip(starts, [*starts[1:], None], strict=True)]


@pytest.mark.parametrize("mode", MODES)
def test_the_bytes_are_those_of_a_blocking_save(saved, mode):
    for told in saved[0]:
        assert told[mode]["same_bytes"] == [True, True]


@pytest.mark.parametrize("mode", MODES)
def test_a_resumed_run_goes_on_with_the_weights_numbers_and_data_of_its_step(saved, mode):
    for told in saved[0]:
        assert told[mode]["resumed"] == 2
        assert told[mode]["weights"]
        assert told[mode]["random"]
        assert told[mode]["position"]


@pytest.mark.parametrize("mode", MODES)
def test_saves_that_fail_leave_what_was_there_and_nothing_else(saved, mode):
    for told in saved[0]:
        assert told[mode]["after_failures"] == ["latest", "step_1", "step_2"]
        assert (told[mode]["newest"], told[mode]["size"]) == (DURABLE[mode][-1], 2)


def test_durable_is_told_by_one_rank_of_what_is_committed(events):
    assert by_mode(events("checkpoint_durable", 0)) == [DURABLE[mode] for mode in MODES]
    assert events("checkpoint_durable", 1) == []
    assert all(event.bytes > 1000 * 64 * 4 for event in events("checkpoint_durable"))


def test_every_rank_tells_what_failed_and_why(events):
    for rank in (0, 1):
        failed = events("checkpoint_failed", rank)
        assert by_mode(failed) == [[3, 4], [3, 4], [3, 4, 6, 9]]
        for event in failed:
            match event.step:
                case 3:
                    assert "rank 1" in event.message
                    assert "RefusalError: not me" in event.message
                case 4:
                    assert "File too large" in event.message
                case 6:
                    assert "rank 1: ScribeError: the process that writes ended with -9" in event.message
                case 9:
                    assert event.message == "the save before is still being written after 0 s"


def test_what_the_trainer_waits_for_is_told_apart_from_what_goes_on_beside_it(events):
    uploads = [event for event in events("phase_end", 0) if event.phase == "checkpoint_upload"]
    assert {event.track for event in uploads} == {"checkpoint"}
    complete = [event for event in events("checkpoint", 0) if event.upload_s is not None]
    assert by_mode(complete) == [DURABLE["async_thread"], DURABLE["async_process"]]
    assert all(event.staging_s <= event.blocking_s for event in complete)


@pytest.fixture
def alone(bench, tmp_path):
    """A process without a group: its checkpointer, and what is told."""
    told = bench()
    keeper = Checkpointer(CheckpointStore(tmp_path / "store"), told.recorder)
    yield keeper, told
    keeper.close()


def test_a_damaged_one_is_passed_over_with_a_reason_and_set_aside(alone):
    keeper, told = alone
    for step in (100, 200):
        keeper.save(step, {"w": torch.full((10,), float(step))})
        keeper.wait()
    path = keeper.store.path_of(200) / "__0_0.distcp"
    path.write_bytes(path.read_bytes()[:-1])
    state = {"w": torch.zeros(10)}
    assert keeper.resume(state) == 100
    assert state["w"].tolist() == [100.0] * 10
    [decision] = told.of("decision")
    assert decision.what == "the checkpoint of step 200 is passed over"
    assert decision.why.endswith("bytes; step 100 is taken")
    [end] = [event for event in told.of("phase_end") if event.phase == "checkpoint_load"]
    assert end.resumed_step == 100
    assert (keeper.store.root / "step_200.damaged").exists()


def test_a_trainer_that_was_overtaken_while_it_saved_publishes_nothing(bench, tmp_path):
    """Neither what it was just writing, nor what it begins, nor what was on its way to the remote store."""
    remote = RemoteStore((tmp_path / "remote").as_uri())

    def start(node, number):
        who = {"start": Start(number, number), "here": Machine(node, node), "say": lambda _: None}
        told = bench()
        lease = claim(tmp_path / "disk", told.recorder, **who)
        store = CheckpointStore(tmp_path / "disk", lease=lease)
        return lease, told, store, Checkpointer(store, told.recorder, remote=remote)

    lease, told, store, keeper = start("n1", 0)
    keeper.save(100, {"w": torch.ones(3)})
    assert keeper.wait_until_durable()
    begun = store.begin(200)
    later_lease, _, later_store, later = start("n2", 1000)
    assert later.resume({"w": torch.zeros(3)}) == 100
    assert not begun.exists()
    keeper.save(200, {"w": torch.ones(3)})
    assert keeper.close()
    [failed] = told.of("checkpoint_failed")
    assert "another process has taken over" in failed.message
    assert "on n2, of job job, attempt 1000" in failed.message
    with pytest.raises(LostError):
        remote.upload(store.path_of(100), store.manifest_of(100), Permit(store.check_lease))
    assert [each.step for each in later_store.committed()] == [100]
    assert [each.step for each in remote.committed()] == [100]
    later.close()
    for each in (lease, later_lease):
        each.release()


def test_where_no_thread_can_be_had_the_trainer_waits(bench, tmp_path, monkeypatch):
    """A limit on processes: the save, and the upload after it, are made all the same."""
    start = threading.Thread.start

    def refused(thread):
        if thread.name.startswith("checkpoint") and "_" not in thread.name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    told, remote = bench(), RemoteStore((tmp_path / "remote").as_uri())
    keeper = Checkpointer(CheckpointStore(tmp_path / "store"), told.recorder, remote=remote)
    for step in (100, 200):
        keeper.save(step, {"w": torch.ones(3)})
    assert keeper.close()
    assert [each.step for each in told.of("checkpoint_durable")] == [100, 200]
    assert [each.step for each in remote.committed()] == [200, 100]


def test_where_none_can_be_read_now_nothing_begins_anew(alone):
    """Saves of a run from step 0 would in time take the place of what is there."""
    keeper, _ = alone
    keeper.save(100, {"w": torch.ones(3)})
    keeper.wait()
    path = keeper.store.path_of(100) / "__0_0.distcp"
    path.unlink()
    path.symlink_to(path.name)
    with pytest.raises(UnavailableError, match=r"step 100 cannot be had now: .*symbolic links"):
        keeper.resume({"w": torch.zeros(3)})
    assert keeper.store.path_of(100).exists()


class Model(torch.nn.Module):
    """Weights that change in the backward pass, as TorchRec's do, others that an optimizer changes."""

    def __init__(self):
        super().__init__()
        self.fused = torch.nn.Parameter(torch.zeros(200_000))
        self.fused.register_post_accumulate_grad_hook(self.update)
        self.plain = torch.nn.Parameter(torch.zeros(200_000))
        self.register_buffer("seen", torch.zeros(200_000))

    @staticmethod
    def update(weight):
        with torch.no_grad():
            weight.add_(1)
        weight.grad = None

    def forward(self):
        self.seen.add_(1)
        return (self.fused + self.plain).sum()


def test_without_waiting_each_save_still_holds_one_step(alone):
    keeper, told = alone
    model = Model()
    copy_late(keeper)
    optimizer = torch.optim.SGD([model.plain], lr=1.0, maximize=True)
    keeper.no_wait(model, optimizer)
    for step in range(1, 6):
        model().backward()
        optimizer.step()
        optimizer.zero_grad()
        keeper.save(step, {"model": model.state_dict(), "step": step})
        model().backward()  # a step that is not saved
        optimizer.step()
        optimizer.zero_grad()
        keeper.wait()
        state = {"model": {name: torch.zeros(200_000) for name in ("fused", "plain", "seen")}}
        assert keeper.load(keeper.find(), state) == step
        assert {name: tensor.unique().tolist() for name, tensor in state["model"].items()} == {
            name: [2.0 * step - 1] for name in state["model"]
        }
    assert {event.phase for event in told.of("phase_end")} > {"checkpoint_staging", "checkpoint_upload"}


def test_an_empty_store_resumes_from_nothing(alone):
    keeper, _ = alone
    state = {"w": torch.ones(3)}
    assert keeper.resume(state, own={"random": Randomness()}) == 0
    assert state["w"].tolist() == [1.0] * 3


def test_a_store_that_cannot_be_written_is_told_and_the_training_goes_on(alone):
    keeper, told = alone
    keeper.store.root.write_text("a file where the store should be")
    keeper.save(100, {"w": torch.ones(3)})
    keeper.wait()
    [failed] = told.of("checkpoint_failed")
    assert "File exists" in failed.message
    assert told.of("checkpoint_durable") == []


def test_with_a_remote_store_durable_is_what_is_there_and_a_lost_disk_is_restored(bench, tmp_path):
    told, remote = bench(), RemoteStore((tmp_path / "remote").as_uri())
    for disk, first in (("old disk", 0), ("new disk", 200)):
        keeper = Checkpointer(CheckpointStore(tmp_path / disk), told.recorder, remote=remote)
        state = {"w": torch.zeros(10)}
        assert keeper.resume(state) == first
        assert state["w"].tolist() == [float(first)] * 10
        for step in (first + 100, first + 200):
            keeper.save(step, {"w": torch.full((10,), float(step))})
            keeper.wait()
            assert keeper._fates.wait(30.0)
        assert keeper.close()
    assert [event.step for event in told.of("checkpoint_durable")] == [100, 200, 300, 400]
    assert [manifest.step for manifest in remote.committed()] == [400, 300, 200]


def test_what_an_earlier_attempt_could_not_bring_to_the_remote_store_is_brought_by_the_next(bench, tmp_path):
    """Also where nothing is trained any more; once it is there, nobody speaks of it."""
    way = tmp_path / "remote"
    way.write_text("a file where the store should be")
    remote = RemoteStore(way.as_uri(), pause=lambda _: None)
    told = []

    def attempt(step=None):
        told.append(bench())
        keeper = Checkpointer(CheckpointStore(tmp_path / "disk"), told[-1].recorder, remote=remote)
        resumed = keeper.resume({"w": torch.zeros(3)})
        if step is not None:
            keeper.save(step, {"w": torch.ones(3)})
        assert keeper.close()
        return resumed, [each.step for each in told[-1].of("checkpoint_durable")], keeper.fault != ""

    assert attempt(100) == (0, [], True)
    assert attempt() == (100, [], True)
    way.unlink()
    assert attempt() == (100, [100], False)
    [decision] = told[-1].of("decision")
    assert decision.what == "the checkpoint of step 100 is brought to the remote store"
    assert [each.step for each in remote.committed()] == [100]
    assert attempt() == (100, [], False)
    assert told[-1].of("decision") == []
    assert [[each.step for each in each.of("checkpoint_failed")] for each in told] == [[100], [100], [], []]


def test_what_a_checkpoint_does_not_hold_begins_anew(alone):
    keeper, told = alone
    keeper.save(100, {"w": torch.ones(3)})
    keeper.wait()
    assert keeper.resume({"w": torch.zeros(3)}, own={"random": Randomness()}) == 100
    [decision] = told.of("decision")
    assert decision.why == "the checkpoint of step 100 does not hold it"


def test_another_number_of_ranks_takes_the_weights_over_and_says_what_begins_anew(saved, alone):
    _, told = alone
    keeper = Checkpointer(CheckpointStore(saved[1] / "sync" / "store"), told.recorder, mode="sync")
    state = {"model": {"w0": torch.zeros(1000, 64), "w1": torch.zeros(1000, 64)}}
    assert keeper.resume(state, own={"random": Randomness()}) == 5
    assert all(weight.abs().sum() > 0 for weight in state["model"].values())
    [decision] = told.of("decision")
    assert (decision.what, decision.why) == (
        "random of this rank begins anew",
        "2 ranks saved it, 1 resume",
    )
