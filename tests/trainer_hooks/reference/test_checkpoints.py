"""The checkpoint store: what exists after a save, and what a load makes of damage."""

import pytest

torch = pytest.importorskip("torch")
checkpoints = pytest.importorskip("ett_trainer_hooks.reference.checkpoints")

pytestmark = [pytest.mark.service("torch"), pytest.mark.usefixtures("one_rank")]


@pytest.fixture
def root(tmp_path):
    return tmp_path / "checkpoints"


def save(root, *steps, keep=3):
    for step in steps:
        checkpoints.CheckpointStore(root, keep=keep).save(
            step, {"model": {"w": torch.full((1000,), float(step))}}
        )


def load(root):
    state = {"model": {"w": torch.zeros(1000)}}
    store = checkpoints.CheckpointStore(root, keep=3)
    step = store.newest()
    if step:
        store.load(step, state)
    return step, float(state["model"]["w"][0])


def test_an_empty_place_loads_nothing(root):
    """The first start of a job begins at step 0 with its own weights."""
    assert load(root) == (0, 0.0)


def test_the_newest_is_loaded_and_latest_points_to_it(root):
    """Order is by step number, not by name."""
    save(root, 9, 10)
    assert load(root) == (10, 10.0)
    assert (root / "latest").resolve().name == "step_10"


def test_only_so_many_are_kept(root):
    """Older checkpoints and left-overs of a killed save are removed."""
    (root / "step_7.partial").mkdir(parents=True)
    save(root, 1, 2, 3, 4, keep=2)
    assert sorted(entry.name for entry in root.iterdir()) == ["latest", "step_3", "step_4"]


def test_one_that_is_still_to_be_published_is_kept(root):
    handover = pytest.importorskip("ett_trainer_hooks.pipeline.publishing.handover")
    told = {"job_id": "job", "publishable": "a:b", "settings": {}, "predictions": b""}
    made = handover.prepare(root, 1, **told)
    save(root, 1)
    made.asked_for()
    save(root, 2, 3, keep=1)
    assert checkpoints.steps(root) == [3, 1]
    made.end(handover.Outcome(state="done", by="publisher", at=1.0))
    save(root, 4, keep=1)
    assert checkpoints.steps(root) == [4]


@pytest.mark.parametrize(
    "damage", ["no metadata", "empty metadata", "garbled metadata", "short data", "no data", "partial"]
)
def test_a_damaged_newest_falls_back_to_the_one_before(root, damage):
    """What a kill or a full disk can leave is not loaded; an older intact one is."""
    save(root, 1, 2)
    metadata = root / "step_2" / ".metadata"
    data = next((root / "step_2").glob("*.distcp"))
    if damage == "no metadata":
        metadata.unlink()
    elif damage == "empty metadata":
        metadata.write_bytes(b"")
    elif damage == "garbled metadata":
        metadata.write_bytes(b"garbled" * 9)
    elif damage == "short data":
        data.write_bytes(data.read_bytes()[:-10])
    elif damage == "no data":
        data.unlink()
    else:
        (root / "step_2").rename(root / "step_2.partial")
    assert load(root) == (1, 1.0)


def test_the_bytes_of_a_save_are_those_on_disk(root):
    """The size that is reported is the size of all files of the checkpoint."""
    size = checkpoints.CheckpointStore(root, keep=2).save(3, {"model": {"w": torch.zeros(1000)}})
    assert size == sum(file.stat().st_size for file in (root / "step_3").iterdir())
    assert size > 4000
