"""A snapshot is what a blocking save at that moment had written, byte by byte, whatever changes meanwhile."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchrec")

from gloo_ranks import run_ranks  # noqa: E402

from ett_trainer_hooks.pipeline.checkpoint import manifest as manifests  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.arena import Arena  # noqa: E402

pytestmark = pytest.mark.service("torch")

PROGRAM = Path(__file__).with_name("programs") / "snapshots.py"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What two ranks tell, and the folder with what they wrote."""
    folder = tmp_path_factory.mktemp("snapshots")
    return run_ranks(PROGRAM, folder, str(folder)), folder


@pytest.mark.parametrize(("store", "step"), [("store", 1), ("store", 2), ("no_wait", 3), ("no_wait", 4)])
def test_the_bytes_are_those_of_a_blocking_save(saved, store, step):
    """Without waiting, tables are copied between the forward and the backward pass, which changes them."""
    told, folder = saved
    assert all(rank["trained"] == [True, True] for rank in told)
    for name in ("__0_0.distcp", "__1_0.distcp"):
        written = (folder / store / f"step_{step}" / name).read_bytes()
        assert written == (folder / f"plain_{step}" / name).read_bytes()


def test_tables_and_their_optimizer_come_back_though_they_changed_while_it_was_saved(saved):
    for told in saved[0]:
        assert told["changed"]
        assert told["restored"]
        assert (told["step"], told["restored_step"]) == (2, 2)
    assert sum(told["tensors"] for told in saved[0]) == 3 * 2 + 2 * 4  # tables and their states, the odd ones


def test_the_manifest_speaks_of_all_ranks(saved):
    for told in saved[0]:
        assert told["world_size"] == 2
        assert told["files"] == [".metadata", "__0_0.distcp", "__1_0.distcp"]
    manifests.check(saved[1] / "store" / "step_2", manifests.read(saved[1] / "store" / "step_2").files)


def test_memory_is_taken_once(saved):
    for told in saved[0]:
        assert told["arena_1"] == told["arena_2"] > 0


def test_an_arena_keeps_every_kind_of_tensor_apart():
    tensors = {
        "f": torch.randn(3, 5),
        "b": torch.tensor([True, False]),
        "h": torch.randn(4).bfloat16(),
        "t": torch.arange(6).view(2, 3).t(),
        "0": torch.empty(0, 2),
        "n": torch.tensor(2.5),
    }
    arena = Arena()
    arena.lay_out(tensors)
    arena.fill(tensors)
    for key, tensor in tensors.items():
        copy = arena.tensor(key)
        assert torch.equal(copy, tensor)
        assert (copy.dtype, copy.shape, copy.stride()) == (tensor.dtype, tensor.shape, tensor.stride())
        assert copy.untyped_storage().size() == tensor.numel() * tensor.element_size()
