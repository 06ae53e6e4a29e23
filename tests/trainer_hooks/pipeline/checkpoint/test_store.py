"""The store: what is committed is found whole, what is damaged is passed over with its reason."""

import os
import re

import pytest

from ett_trainer_hooks.pipeline.checkpoint import manifest as manifests
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError
from ett_trainer_hooks.pipeline.checkpoint.retention import Retention
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore


@pytest.fixture
def store(tmp_path):
    """Checkpoints in a directory that does not exist yet."""
    return CheckpointStore(tmp_path / "team" / "checkpoints")


def save(store, step, *, ranks=2, **about):
    """Commit a checkpoint whose files tell their step and rank."""
    directory = store.begin(step)
    for rank in range(ranks):
        (directory / f"__{rank}_0.distcp").write_bytes(f"step {step} of rank {rank} ".encode() * 1000)
    return store.commit(directory, step, world_size=ranks, **about)


def flip(path, at=100):
    """Change one bit of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_an_empty_store_has_nothing_and_is_not_made_by_asking(store):
    found = store.newest_intact()
    assert (found.manifest, found.directory, found.passed_over) == (None, None, ())
    assert store.committed() == []
    assert not store.root.exists()


def test_what_was_committed_last_is_found_with_all_that_was_said_of_it(store):
    save(store, 100)
    kept = save(store, 200, metrics={"loss": 0.5})
    found = store.newest_intact()
    assert found.manifest == kept
    assert (kept.step, kept.sequence, kept.world_size, kept.metrics) == (200, 2, 2, {"loss": 0.5})
    assert found.directory == store.path_of(200)
    assert kept.size == sum(path.stat().st_size for path in found.directory.glob("*.distcp"))
    assert (store.root / "latest").read_text() == "step_200\n"


def test_a_save_that_was_not_committed_is_no_checkpoint_and_makes_room_for_the_next(store):
    save(store, 100)
    directory = store.begin(200)
    (directory / "__0_0.distcp").write_bytes(b"half of")
    assert store.newest_intact().manifest.step == 100
    save(store, 300)
    assert not directory.exists()
    assert sorted(path.name for path in store.root.iterdir()) == ["latest", "step_100", "step_300"]


def test_ranks_of_an_earlier_attempt_write_beside_what_is_saved_now(store):
    assert store.begin(200) != store.begin(200)


def test_an_abandoned_save_gives_its_room_back(store):
    directory = store.begin(200)
    (directory / "__0_0.distcp").write_bytes(b"a part")
    store.abandon(directory)
    assert list(store.root.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda path: flip(path / "__1_0.distcp"), "__1_0.distcp was changed"),
        (lambda path: os.truncate(path / "__1_0.distcp", 7), "__1_0.distcp has 7 of 19000 bytes"),
        (lambda path: (path / "__1_0.distcp").unlink(), "__1_0.distcp is missing"),
        (lambda path: flip(path / "manifest.json"), "its manifest (was changed|cannot be read: .*)"),
        (lambda path: os.truncate(path / "manifest.json", 90), "its manifest cannot be read: .*"),
        (lambda path: os.truncate(path / "manifest.json", 0), "its manifest cannot be read: .*"),
        (lambda path: (path / "manifest.json").unlink(), "it has no manifest"),
    ],
    ids=[
        "flipped",
        "truncated",
        "missing",
        "manifest flipped",
        "manifest cut",
        "manifest empty",
        "no manifest",
    ],
)
def test_a_damaged_one_is_passed_over_for_the_one_before(store, damage, why):
    save(store, 100)
    save(store, 200)
    damage(store.path_of(200))
    found = store.newest_intact()
    assert found.manifest.step == 100
    [passed] = found.passed_over
    assert (passed.step, passed.lasting) == (200, True)
    assert re.fullmatch(why, passed.why)


def test_every_flipped_bit_of_a_manifest_is_found(store):
    kept = save(store, 100)
    data = (store.path_of(100) / "manifest.json").read_bytes()
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        try:
            assert manifests.decoded(changed) == kept
        except DamagedError:
            continue


def test_where_all_are_damaged_each_is_named(store):
    for step in (100, 200):
        save(store, step)
        (store.path_of(step) / "__0_0.distcp").unlink()
    found = store.newest_intact()
    assert found.manifest is None
    assert [passed.step for passed in found.passed_over] == [200, 100]


def test_the_files_of_another_step_are_found_out_though_their_sizes_fit(store):
    save(store, 100)
    save(store, 200)
    (store.path_of(100) / "__1_0.distcp").replace(store.path_of(200) / "__1_0.distcp")
    [passed] = store.newest_intact().passed_over[:1]
    assert passed.why == "__1_0.distcp was changed"


def test_a_manifest_of_another_format_is_not_read_as_this_one(store):
    save(store, 100)
    path = store.path_of(100) / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":2'))
    [passed] = store.newest_intact().passed_over
    assert passed.why == "its manifest has format 2; this version reads 1"
    assert not passed.lasting


def test_one_that_is_set_aside_is_not_asked_again_and_frees_its_name(store):
    save(store, 100)
    save(store, 200)
    flip(store.path_of(200) / "__0_0.distcp")
    aside = store.set_aside(200)
    assert aside.name == "step_200.damaged"
    assert store.newest_intact().passed_over == ()
    save(store, 200)
    assert store.newest_intact().manifest.step == 200


def test_a_step_that_is_saved_again_takes_the_place_of_the_first(store):
    first = save(store, 100)
    again = save(store, 100, ranks=1)
    assert store.newest_intact().manifest == again
    assert again.sequence == first.sequence + 1
    assert sorted(path.name for path in store.root.iterdir()) == ["latest", "step_100"]


def test_after_training_went_back_the_newer_commit_counts_and_not_the_larger_step(store):
    for step in (100, 200, 300, 150):
        save(store, step)
    assert store.newest_intact().manifest.step == 150


def test_hashes_that_the_ranks_took_are_held_against_what_is_there(store):
    directory = store.begin(100)
    path = directory / "__0_0.distcp"
    path.write_bytes(b"weights")
    files = manifests.marks(directory, [path.name])
    path.write_bytes(b"weight")
    with pytest.raises(
        DamagedError, match=r"step 100 is not committed: __0_0\.distcp has 6 bytes, 7 were written"
    ):
        store.commit(directory, 100, files=files)
    path.write_bytes(b"weights")
    (directory / "__3_0.distcp").write_bytes(b"of four ranks")
    with pytest.raises(DamagedError, match=r"__3_0\.distcp is of no rank"):
        store.commit(directory, 100, files=files)
    assert store.committed() == []


def test_files_put_there_later_do_no_harm(store):
    save(store, 100)
    (store.path_of(100) / "notes.txt").write_text("a good one")
    assert store.newest_intact().manifest.step == 100


def test_files_in_folders_are_part_of_it(store):
    directory = store.begin(100)
    (directory / "tokenizer").mkdir()
    (directory / "tokenizer" / "words").write_text("a b c")
    store.commit(directory, 100)
    (store.path_of(100) / "tokenizer" / "words").unlink()
    [passed] = store.newest_intact().passed_over
    assert passed.why == "tokenizer/words is missing"


def test_what_is_no_longer_wanted_goes(store):
    store = CheckpointStore(store.root, retention=Retention(last=2))
    for step in (100, 200, 300):
        save(store, step)
    assert store.retire() == [100]
    assert [manifest.step for manifest in store.committed()] == [300, 200]
    assert store.retire() == []


def test_one_in_use_stays_until_it_is_not(store):
    store = CheckpointStore(store.root, retention=Retention(last=1))
    with store.hold(save(store, 100)):
        save(store, 200)
        assert store.retire() == []
    assert store.retire() == [100]


def test_a_damaged_one_goes_once_all_that_stay_are_newer(store):
    seconds = iter(range(10**10, 10**10 + 100))
    store = CheckpointStore(store.root, retention=Retention(last=2), now=lambda: next(seconds))
    save(store, 100)
    aside = store.set_aside(100)
    for step in (200, 300):
        save(store, step)
        assert store.retire() == []
        assert aside.exists()
    save(store, 400)
    assert store.retire() == [200]
    assert not aside.exists()


def test_one_that_cannot_be_read_now_is_passed_over_but_not_called_damaged_for_good(store):
    save(store, 100)
    path = store.path_of(100) / "__0_0.distcp"
    path.unlink()
    path.symlink_to(path.name)
    [passed] = store.newest_intact().passed_over
    assert "symbolic links" in passed.why
    assert not passed.lasting
