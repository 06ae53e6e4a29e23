"""Publishing: what was published predicts as the trainer did, or nothing is there and it is said why."""

import json
import os
import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
fsspec = pytest.importorskip("fsspec")

import toy_model  # noqa: E402

from ett_core.failures import read_line  # noqa: E402
from ett_trainer_hooks import Recorder  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError  # noqa: E402
from ett_trainer_hooks.pipeline.publishing import working  # noqa: E402
from ett_trainer_hooks.pipeline.publishing.places import LocalPlace, RemotePlace, place_at  # noqa: E402
from ett_trainer_hooks.pipeline.publishing.publisher import Publisher  # noqa: E402
from ett_trainer_hooks.pipeline.publishing.serving import load  # noqa: E402
from ett_trainer_hooks.pipeline.publishing.statuses import AGAIN, NEVER, PUBLISHED  # noqa: E402
from ett_trainer_hooks.pipeline.takes import LostError, take  # noqa: E402

pytestmark = [
    pytest.mark.service("torch"),
    pytest.mark.filterwarnings("ignore:torch.distributed is (disabled|unavailable)"),  # torch's, at saves
]
NOBODY = Recorder.from_env({})


@pytest.fixture
def root(tmp_path):
    return tmp_path / "checkpoints"


@pytest.fixture
def models(tmp_path):
    return tmp_path / "models"


def publish(handover, models, form="plain", **more):
    return working.run(handover, str(models), NOBODY, form=form, **more)


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def largest_difference(model):
    numbers, bags = toy_model.samples()
    wanted = toy_model.predicted(toy_model.weights(), numbers, bags)
    return float((model.predict(numbers, bags) - wanted).abs().max())


@pytest.mark.parametrize("safely", [True, False])
def test_what_was_published_predicts_as_the_trainer_did(root, models, safely):
    handover = toy_model.handed_over(root, safely=safely)
    assert publish(handover, models) == PUBLISHED
    model = load(models)
    assert largest_difference(model) < 1e-6
    outcome = handover.outcome()
    assert (outcome.state, outcome.place) == ("done", str(models / (models / "latest").read_text().strip()))
    card = json.loads(Path(outcome.place, "card.json").read_bytes())
    assert card["origin"] == {
        "job_id": "trainer",
        "step": toy_model.STEP,
        "anchor": handover.request().anchor,
        "world_size": 1,
        "hashed": safely,
    }
    assert set(card["files"]) == {"dense.pt2", "tables/people.safetensors", "tables/items.safetensors"}
    assert card["validation"]["largest_difference"] == outcome.largest_difference < 1e-6
    assert card["validation"]["samples"] == toy_model.SAMPLES
    assert "| tables | 2, plain |" in Path(outcome.place, "README.md").read_text()


def test_other_numbers_of_samples_are_predicted_too(root, models):
    publish(toy_model.handed_over(root), models)
    numbers, bags = toy_model.samples()
    ones = {name: each._replace(ids=each.ids[:1], lengths=torch.tensor([1])) for name, each in bags.items()}
    wanted = toy_model.predicted(toy_model.weights(), numbers[:1], ones)
    assert torch.allclose(load(models).predict(numbers[:1], ones), wanted)


def test_quantised_tables_state_their_error_and_stay_within_the_tolerance(root, models):
    assert publish(toy_model.handed_over(root), models, "int8") == PUBLISHED
    model = load(models)
    assert 0 < largest_difference(model) < 1e-2
    card = json.loads(Path(models, (models / "latest").read_text().strip(), "card.json").read_bytes())
    spread = max(float(row.max() - row.min()) for row in toy_model.weights()["people"])
    (people,) = [table for table in card["tables"] if table["name"] == "people"]
    assert 0 < people["rms_error"] < people["largest_error"] < spread / 255
    assert card["validation"]["tolerance"] == 1e-2


def test_quantised_tables_are_refused_where_less_is_tolerated(root, models):
    handover = toy_model.handed_over(root)
    assert publish(handover, models, "int8", tolerance=1e-7) == NEVER
    assert "disagrees with the trainer" in handover.outcome().reason
    assert list(models.iterdir()) == []


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"off_by": 0.01}, "predictions differ by up to 0.01, 1e-05 is allowed"),
        ({"off_by": float("nan")}, "predictions differ by up to nan"),
        (
            {"width": 5},
            "size mismatch for model.dense.over.weight: (1, 15) in the checkpoint, (1, 18) in the model",
        ),
        ({"missing": "_of_old"}, "model.people_of_old not found in the checkpoint, which has 4 tensors"),
        ({"rows": 5}, "toy_model:Toy cannot be built: TypeError: "),
    ],
)
def test_a_model_that_is_another_one_than_the_trainer_had_is_not_published(root, models, told, reason):
    handover = toy_model.handed_over(root, **told)
    assert publish(handover, models) == NEVER
    assert reason in handover.outcome().reason
    assert list(models.iterdir()) == []


def test_a_damaged_checkpoint_is_not_published(root, models, capsys):
    handover = toy_model.handed_over(root)
    file = handover.anchor / "__0_0.distcp"
    flip(file, file.stat().st_size // 2)
    assert publish(handover, models) == NEVER
    assert f"damaged checkpoint {handover.anchor}: __0_0.distcp was changed" in capsys.readouterr().err
    assert handover.state() == "failed"


def test_a_checkpoint_without_hashes_that_was_cut_short_is_not_published(root, models):
    handover = toy_model.handed_over(root, safely=False)
    file = handover.anchor / "__0_0.distcp"
    file.write_bytes(file.read_bytes()[:-100])
    assert publish(handover, models) == NEVER
    assert "__0_0.distcp has " in handover.outcome().reason


def test_a_checkpoint_of_the_step_that_is_not_the_one_handed_over_is_not_published(root, models):
    handover = toy_model.handed_over(root)
    toy_model.save(root, seed=3)
    assert publish(handover, models) == NEVER
    assert "is another one" in handover.outcome().reason


def test_damaged_recordings_are_not_believed(root, models):
    handover = toy_model.handed_over(root)
    flip(handover.folder / "predictions.pt", -200)
    assert publish(handover, models) == NEVER
    assert "what the trainer recorded" in handover.outcome().reason


def test_a_publisher_that_died_after_publishing_has_published(root, models):
    handover = toy_model.handed_over(root)
    publish(handover, models)
    place = handover.outcome().place
    (handover.folder / "outcome.json").unlink()
    (models / "latest").unlink()
    (models / f"step_40-{handover.request().anchor}.0").mkdir()  # of a publisher that was killed before it
    assert publish(handover, models) == PUBLISHED
    assert handover.outcome().place == place
    assert [str(entry) for entry in models.iterdir() if entry.is_dir()] == [place]
    assert load(models)


def test_a_later_model_stays_the_latest_where_an_earlier_one_is_found_published(root, models):
    handover = toy_model.handed_over(root)
    publish(handover, models)
    (handover.folder / "outcome.json").unlink()
    (models / "latest").write_text("step_50-0123456789abcdef.1\n")
    assert publish(handover, models) == PUBLISHED
    assert (models / "latest").read_text() == "step_50-0123456789abcdef.1\n"


def test_a_publisher_that_stood_still_does_not_publish_a_second_time(root, models):
    handover = toy_model.handed_over(root)

    class Overtaken(LocalPlace):
        def bring(self, name):
            super().bring(name)
            lease.release()  # as if it had run out
            assert publish(handover, models) == PUBLISHED

    lease = take(handover.folder, "slow")
    with pytest.raises(LostError):
        Publisher(handover, Overtaken(models), lease, NOBODY).publish()
    names = sorted(entry.name for entry in models.iterdir())
    name = f"step_40-{handover.request().anchor}"
    assert names == ["latest", f"{name}.2", f"{name}.json"]


@pytest.mark.parametrize(
    ("told", "failure_class"),
    [
        ("DamagedError: damaged checkpoint /c/step_4: __0_0.distcp was changed", "checkpoint_corrupt"),
        ("UnfitError: size mismatch for a.weight: (1, 5) in the checkpoint", "checkpoint_incompatible"),
        ("UnfitError: a not found in the checkpoint, which has 4 tensors", "checkpoint_incompatible"),
        ("DisagreementError: predictions differ by up to 0.5, 0 is allowed", "checkpoint_incompatible"),
        ("RemoteError: s3://models: PermissionError: no", "object_store"),
        ("OSError: dense.pt2 cannot be written: [Errno 28] No space left on device", "storage_full"),
    ],
)
def test_failures_of_publishing_have_classes(told, failure_class):
    found = read_line(f"not published: {told}")
    assert (found.failure_class, found.role) == (failure_class, "root")


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_of_two_that_commit_at_once_one_has_published(tmp_path, kind):
    fsspec.filesystem("memory").store.clear()
    place = place_at(str(tmp_path) if kind == "local" else "memory://models")
    place.replace("latest", b"0")
    assert place.create("step_1.json", b"one")
    assert not place.create("step_1.json", b"two")
    assert place.read("step_1.json") == b"one"
    place.close()


def test_what_killed_publishers_left_is_cleared_away(root, models):
    handover = toy_model.handed_over(root)
    models.mkdir()
    left = models / f"step_40-{handover.request().anchor}.0"
    left.mkdir()
    assert publish(handover, models) == PUBLISHED
    assert not left.exists()


def test_a_model_goes_to_a_url(root, tmp_path):
    files = fsspec.filesystem("memory")
    files.store.clear()
    handover = toy_model.handed_over(root)
    assert publish(handover, "memory://models") == PUBLISHED
    name = files.cat_file("/models/latest").decode().strip()
    assert handover.outcome().place == f"memory://models/{name}"
    files.get(f"/models/{name}", str(tmp_path / "fetched"), recursive=True)
    assert largest_difference(load(tmp_path / "fetched")) < 1e-6


def test_a_store_that_refuses_is_tried_again_another_time(root, capsys):
    handover = toy_model.handed_over(root)
    assert publish(handover, "nosuch://models") == AGAIN
    assert "not published now: RemoteError: nosuch://models" in capsys.readouterr().err
    assert handover.state() == "pending"


def test_a_store_that_stutters_is_asked_again(root, monkeypatch):
    files = fsspec.filesystem("memory")
    files.store.clear()
    errors, put = [OSError("503 Slow Down")] * 3, files.put_file

    def stuttering(*arguments, **more):
        if errors:
            raise errors.pop()
        return put(*arguments, **more)

    monkeypatch.setattr(type(files), "put_file", staticmethod(stuttering))
    handover, pauses = toy_model.handed_over(root), []
    place = RemotePlace("memory://models", pause=pauses.append)
    lease = take(handover.folder, "me")
    name, _ = Publisher(handover, place, lease, NOBODY).publish()
    assert files.exists(f"/models/{name}/dense.pt2")
    assert len(pauses) == 3
    lease.release()
    place.close()


def die_of(handover):
    """Take it, and let go of nothing."""
    lease = take(handover.folder, "killed")
    path = handover.folder / f"take-{lease.number}.json"
    renewed_s = path.stat().st_mtime
    lease.release()
    os.utime(path, (renewed_s, renewed_s))


def test_what_kills_its_publishers_is_given_up_until_somebody_wants_it_again(root, models):
    handover = toy_model.handed_over(root)
    for _ in range(working.MOST_DEATHS):
        die_of(handover)
    assert publish(handover, models) == NEVER
    assert f"{working.MOST_DEATHS} publishers have died of it" in handover.outcome().reason
    handover.reopen()
    assert publish(handover, models) == PUBLISHED


def test_what_could_not_be_published_for_long_is_not_given_up(root, models):
    """A store that is out of reach for an hour kills nobody."""
    handover = toy_model.handed_over(root)
    for _ in range(working.MOST_DEATHS + 1):
        take(handover.folder, "out of reach").release()
    assert publish(handover, models) == PUBLISHED


def test_a_disk_that_does_not_let_it_be_taken_is_asked_another_time(root, models, capsys):
    handover = toy_model.handed_over(root)
    shutil.rmtree(handover.folder)
    assert publish(handover, models) == AGAIN
    assert f"not published now: FileNotFoundError: [Errno 2] No such file or directory: '{root}" in (
        capsys.readouterr().err
    )


def test_a_published_model_that_was_changed_is_not_loaded(root, models):
    publish(toy_model.handed_over(root), models)
    place = models / (models / "latest").read_text().strip()
    flip(place / "tables" / "items.safetensors", -1)
    with pytest.raises(DamagedError, match=r"items\.safetensors was changed"):
        load(models)
    with pytest.raises(DamagedError, match="there is no published model"):
        load(models / "nothing")
