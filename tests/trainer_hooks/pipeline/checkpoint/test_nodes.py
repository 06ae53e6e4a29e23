"""Nodes with disks of their own before one place that all reach."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("fsspec")

from gloo_ranks import run_ranks  # noqa: E402

from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.found import UnavailableError  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.node_disk import NodeDisk  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteStore  # noqa: E402

pytestmark = [
    pytest.mark.service("torch"),
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled"),  # torch's word on a process alone
]

PROGRAM = Path(__file__).with_name("programs") / "nodes.py"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each rank tells, and the folder of all that was written."""
    folder = tmp_path_factory.mktemp("nodes")
    environ = {"ETT_JOB_ID": "job", "ETT_JOURNAL_DIR": str(folder / "journal")}
    return run_ranks(PROGRAM, folder, str(folder), **environ), folder


def of_both(told, key):
    return [rank[key] for rank in told[0]]


def test_each_disk_has_the_latest_two_of_what_its_ranks_wrote(told):
    """A save that fails, as one rank does not reach the place, leaves nothing."""
    for key in ("after_saves", "after_failure"):
        first, second = of_both(told, key)
        assert first == {step: [".metadata", "__0_0.distcp"] for step in ("step_2", "step_3")}
        assert second == {step: ["__1_0.distcp"] for step in ("step_2", "step_3")}


def test_what_exists_is_what_the_place_has_whole(told, events_in):
    events = events_in(told[1] / "journal")
    durable = [(event.step, event.rank) for event in events if event.kind == "checkpoint_durable"]
    assert durable == [(1, 0), (2, 0), (3, 0), (5, 0)]
    failed = [event for event in events if event.kind == "checkpoint_failed"]
    assert sorted((event.step, event.rank) for event in failed) == [(4, 0), (4, 1)]
    assert {event.message for event in failed} == {
        "CheckpointException: rank 1: RemoteError: the network is down"
    }
    manifests = RemoteStore((told[1] / "remote").as_uri()).committed()
    assert [(manifest.step, manifest.world_size) for manifest in manifests] == [(5, 2), (2, 2)]


@pytest.mark.parametrize(
    ("attempt", "fetched"),
    [
        ("restart", (["__1_0.distcp"], [".metadata", "__0_0.distcp"])),  # what the other node has written
        ("lost_disk", ([".metadata", "__0_0.distcp", "__1_0.distcp"], [])),
        ("damaged_disk", ([], ["__1_0.distcp"])),
    ],
)
def test_what_a_node_reads_and_does_not_have_is_fetched(told, attempt, fetched):
    for outcome, files in zip(of_both(told, attempt), fetched, strict=True):
        assert outcome == [3, True, files]


def test_where_the_place_has_it_damaged_an_older_one_is_taken_with_the_reason(told, events_in):
    assert [outcome[:2] for outcome in of_both(told, "damaged_both")] == [[2, True]] * 2
    decisions = [event for event in events_in(told[1] / "journal") if event.kind == "decision"]
    [passed] = [event for event in decisions if "passed over" in event.what]
    [aside] = (told[1] / "remote").glob("step_3-*/manifest*")
    assert aside.name == "manifest.damaged.json"
    assert passed.what == "the checkpoint of step 3 is passed over"
    assert passed.why.startswith("rank 1: DamagedError: __1_0.distcp was changed (in file://")
    assert passed.why.endswith("; step 2 is taken")
    assert of_both(told, "at_last") == [[5, True]] * 2


def test_another_number_of_ranks_takes_the_weights_over(told, bench, tmp_path):
    told_now, remote = bench(), RemoteStore((told[1] / "remote").as_uri())
    keeper = Checkpointer(NodeDisk(tmp_path, remote), told_now.recorder)
    state = {"model": {name: torch.zeros(20_000) for name in ("w0", "w1", "same")}}
    assert keeper.resume(state) == 5
    assert {float(weight.sum()) for weight in state["model"].values()} == {5.0 * 20_000}


def test_a_disk_that_is_full_now_does_not_make_the_job_begin_anew(told, bench, tmp_path):
    (tmp_path / "disk").write_text("a file where the disk should be")
    remote = RemoteStore((told[1] / "remote").as_uri())
    keeper = Checkpointer(NodeDisk(tmp_path / "disk", remote), bench().recorder)
    with pytest.raises(UnavailableError, match="step 5 cannot be had now: rank 0: NotADirectoryError"):
        keeper.find()


def test_an_empty_place_resumes_from_nothing(bench, tmp_path):
    keeper = Checkpointer(NodeDisk(tmp_path, RemoteStore((tmp_path / "no").as_uri())), bench().recorder)
    assert keeper.resume({"w": torch.ones(3)}) == 0
