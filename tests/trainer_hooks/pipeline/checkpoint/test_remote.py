"""The second place: whole or not there, asked again where it stutters, and what restores a lost disk."""

import shutil
import threading
from pathlib import Path

import pytest

fsspec = pytest.importorskip("fsspec")
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

from ett_trainer_hooks.pipeline.checkpoint.asking import PAUSES_S  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.found import Found  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.permit import Permit  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.remote import (  # noqa: E402
    RemoteError,
    RemoteStore,
    name_of,
    newest_of_both,
)
from ett_trainer_hooks.pipeline.checkpoint.retention import Retention  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore  # noqa: E402
from ett_trainer_hooks.pipeline.checkpoint.uploads import Uploads  # noqa: E402

PATIENCE_S = 60.0


@pytest.fixture
def store(tmp_path):
    return CheckpointStore(tmp_path / "disk")


@pytest.fixture(params=["directory", "memory"])
def remote(request, tmp_path):
    """A place that fsspec reaches: another directory, or memory."""
    root = tmp_path / "remote"
    yield RemoteStore(root.as_uri() if request.param == "directory" else f"memory:/{root}")
    if request.param == "memory" and (memory := fsspec.filesystem("memory")).exists(str(root)):
        memory.rm(str(root), recursive=True)


class Stuttering(MemoryFileSystem):
    """Memory that first gives the errors it is told to."""

    protocol = "stuttering"
    cachable = False
    store: dict[str, object] = {}  # noqa: RUF012 - as its base
    errors: list[Exception] = []  # noqa: RUF012
    lost: list[Exception] = []  # noqa: RUF012 - raised in place of the answers to removals that were done
    changed_on_their_way: list[str] = []  # noqa: RUF012 - names of files

    def rm_file(self, path):
        super().rm_file(path)
        if self.lost:
            raise self.lost.pop(0)

    def get_file(self, rpath, lpath, **kwargs):
        super().get_file(rpath, lpath, **kwargs)
        if (name := rpath.rpartition("/")[2]) in self.changed_on_their_way:
            self.changed_on_their_way.remove(name)
            Path(lpath).write_bytes(Path(lpath).read_bytes()[::-1])

    def _or_error(self):
        if self.errors:
            raise self.errors.pop(0)

    def put_file(self, *args, **kwargs):
        self._or_error()
        return super().put_file(*args, **kwargs)

    def ls(self, *args, **kwargs):
        self._or_error()
        return super().ls(*args, **kwargs)


@pytest.fixture
def stuttering(tmp_path):
    """A remote store, the errors that it is still to give, and the pauses that it was given."""
    fsspec.register_implementation("stuttering", Stuttering, clobber=True)
    pauses = []
    Stuttering.store.clear()
    Stuttering.errors, Stuttering.lost = [], []
    yield RemoteStore(f"stuttering:/{tmp_path}", workers=1, pause=pauses.append), Stuttering.errors, pauses
    Stuttering.errors.clear()


def save(store, step):
    directory = store.begin(step)
    (directory / "__0_0.distcp").write_bytes(f"step {step} ".encode() * 1000)
    (directory / "extra").mkdir()
    (directory / "extra" / "words").write_text("a b c")
    return store.commit(directory, step)


def upload(remote, store, step):
    manifest = save(store, step)
    remote.upload(store.path_of(step), manifest, Permit())
    return manifest


def held(directory):
    return (directory / "__0_0.distcp").read_bytes()[:8], (directory / "extra" / "words").read_text()


def test_what_was_uploaded_is_there_newest_first(remote, store):
    assert remote.committed() == []
    manifests = [upload(remote, store, step) for step in (100, 200)]
    assert remote.committed() == manifests[::-1]


def test_a_lost_disk_is_restored(remote, store):
    kept = [upload(remote, store, step) for step in (100, 200)][-1]
    shutil.rmtree(store.root)
    found = newest_of_both(store.newest_intact(), store, remote)
    assert (found.manifest, found.passed_over, found.fault) == (kept, (), "")
    assert held(found.directory) == (b"step 200", "a b c")
    assert store.newest_intact().manifest == kept
    assert save(store, 300).sequence == kept.sequence + 1


def test_a_damaged_one_is_brought_again_rather_than_an_older_one_taken(remote, store):
    for step in (100, 200):
        upload(remote, store, step)
    (store.path_of(200) / "__0_0.distcp").write_bytes(b"damage")
    found = newest_of_both(store.newest_intact(), store, remote)
    assert held(found.directory)[0] == b"step 200"
    assert [passed.step for passed in found.passed_over] == [200]


def test_what_is_newer_on_the_disk_is_taken_from_there(remote, store):
    upload(remote, store, 100)
    save(store, 200)
    assert newest_of_both(store.newest_intact(), store, remote).manifest.step == 200


def test_what_a_start_that_was_overtaken_brings_late_is_not_taken_for_the_newest(remote, store, tmp_path):
    """It looked at its lease, stood still, and went on; the later start saves lower steps meanwhile."""
    upload(remote, store, 100)
    late = save(store, 300)
    remote.put(store.path_of(300), name_of(late), late.files)
    newest = [upload(remote, CheckpointStore(store.root), step) for step in (150, 200)][-1]
    remote.publish(late)
    nothing = Found(None, None, ())
    assert newest_of_both(nothing, CheckpointStore(tmp_path / "other"), remote).manifest == newest


def test_an_upload_without_its_manifest_does_not_exist(remote, store):
    manifest = upload(remote, store, 100)
    remote._fs.rm_file(f"{remote._place(manifest)}/manifest.json")
    assert remote.committed() == []


def changed(remote, place, name, data):
    remote._fs.pipe_file(f"{place}/{name}", data)


def without_its_end(remote, place, name, data):
    changed(remote, place, name, data[:7])


def with_another_byte(remote, place, name, data):
    changed(remote, place, name, data[:50] + bytes([data[50] ^ 1]) + data[51:])


def with_another_letter(remote, place, name, data):
    changed(remote, place, name, data.replace(b"c", b"d"))


def missing(remote, place, name, _):
    remote._fs.rm_file(f"{place}/{name}")


@pytest.mark.parametrize(
    "damaged",
    [
        ("__0_0.distcp", without_its_end, "__0_0.distcp has 7 of 9000 bytes"),
        ("__0_0.distcp", with_another_byte, "__0_0.distcp was changed"),
        ("__0_0.distcp", missing, "__0_0.distcp is missing"),
        ("extra/words", with_another_letter, "extra/words was changed"),
        ("manifest.json", with_another_byte, "its manifest was changed"),
    ],
)
def test_damage_in_the_remote_is_found_and_set_aside_and_an_older_one_is_taken(
    damaged, remote, store, tmp_path
):
    name, damage, why = damaged
    for step in (100, 200):
        manifest = upload(remote, store, step)
    place = remote._place(manifest)
    damage(remote, place, name, remote._fs.cat_file(f"{place}/{name}"))
    as_it_was = remote._fs.cat_file(f"{place}/manifest.json")
    for disk, told in (("new disk", [f"{why} (in {remote.url})"]), ("newer disk", [])):
        elsewhere = CheckpointStore(tmp_path / disk)
        found = newest_of_both(elsewhere.newest_intact(), elsewhere, remote)
        assert found.manifest.step == 100
        assert [passed.why for passed in found.passed_over] == told
        assert sorted(path.name for path in elsewhere.root.iterdir()) == ["latest", "step_100"]
    assert remote._fs.cat_file(f"{place}/manifest.damaged.json") == as_it_was
    assert not remote._fs.exists(f"{place}/manifest.json")
    for step in (300, 400, 500):
        upload(remote, store, step)
    remote.retire()
    assert not remote._fs.exists(place)


def test_a_checkpoint_of_another_version_in_the_remote_stays(remote, store, tmp_path):
    for step in (100, 200):
        manifest = upload(remote, store, step)
    file = f"{remote._place(manifest)}/manifest.json"
    remote._fs.pipe_file(file, remote._fs.cat_file(file).replace(b'"format":1', b'"format":9'))
    elsewhere = CheckpointStore(tmp_path / "new disk")
    found = newest_of_both(elsewhere.newest_intact(), elsewhere, remote)
    assert found.manifest.step == 100
    [passed] = found.passed_over
    assert "format 9" in passed.why
    assert not passed.lasting
    assert remote._fs.exists(file)


def test_a_file_that_was_changed_on_its_way_is_fetched_once_more(stuttering, store, tmp_path):
    """A network that damages says nothing of what lies there."""
    remote, _, _ = stuttering
    kept = upload(remote, store, 100)
    Stuttering.changed_on_their_way[:] = ["__0_0.distcp"]
    elsewhere = CheckpointStore(tmp_path / "new disk")
    found = newest_of_both(elsewhere.newest_intact(), elsewhere, remote)
    assert (found.manifest, found.passed_over) == (kept, ())
    assert Stuttering.changed_on_their_way == []
    assert held(found.directory) == (b"step 100", "a b c")


def test_what_is_no_longer_wanted_goes_and_so_do_older_uploads_that_never_ended(remote, store):
    remote._retention = Retention(last=2)
    torn = upload(remote, store, 50)
    remote._fs.rm_file(f"{remote._place(torn)}/manifest.json")
    for step in (100, 200, 300):
        upload(remote, store, step)
    assert remote.retire() == [100]
    assert [manifest.step for manifest in remote.committed()] == [300, 200]
    assert len(remote._places()) == 2


def test_a_store_that_stutters_is_asked_again(stuttering, store):
    remote, errors, pauses = stuttering
    errors += [OSError("503 Slow Down"), RuntimeError("429")]
    manifest = upload(remote, store, 100)
    assert remote.committed() == [manifest]
    assert pauses == list(PAUSES_S[:2])


def test_a_store_that_keeps_failing_is_given_up_with_its_reason(stuttering, store):
    remote, errors, pauses = stuttering
    errors += [OSError("503 Slow Down")] * (len(PAUSES_S) + 1)
    with pytest.raises(RemoteError, match="OSError: 503 Slow Down"):
        upload(remote, store, 100)
    assert pauses == list(PAUSES_S)


def test_a_store_that_refuses_us_is_not_asked_again(stuttering, store):
    remote, errors, pauses = stuttering
    errors += [PermissionError("403 Forbidden")]
    with pytest.raises(RemoteError, match="403 Forbidden"):
        upload(remote, store, 100)
    assert pauses == []


def test_a_remote_that_cannot_be_asked_is_named_unless_there_is_nothing_else(stuttering, store):
    remote, errors, _ = stuttering
    errors += [PermissionError("403 Forbidden")] * 2
    with pytest.raises(RemoteError, match="403"):
        newest_of_both(store.newest_intact(), store, remote)
    save(store, 100)
    found = newest_of_both(store.newest_intact(), store, remote)
    assert found.manifest.step == 100
    assert "403 Forbidden" in found.fault


def test_an_address_that_cannot_be_used_is_refused_with_its_name():
    fsspec.register_implementation("bare", "nobody.has.this", clobber=True, errtxt="install nobody")
    for url in ("nobody-knows-this://x", "bare://x"):
        with pytest.raises(RemoteError, match=url):
            RemoteStore(url)


def test_what_waits_is_overtaken_and_kept_on_the_disk_until_it_is_through(store, tmp_path):
    store = CheckpointStore(store.root, retention=Retention(last=1))
    remote, told = RemoteStore((tmp_path / "remote").as_uri()), []
    gate, begun = threading.Event(), threading.Event()
    whole = remote.upload

    def slow(*order, maybe_there):
        begun.set()
        assert gate.wait(PATIENCE_S)
        whole(*order, maybe_there=maybe_there)

    remote.upload = slow
    uploads = Uploads(store, remote, told.append)
    uploads.offer(save(store, 100))
    assert begun.wait(PATIENCE_S)
    uploads.offer(save(store, 200))
    uploads.offer(save(store, 300))
    assert not uploads.wait(0.0)
    assert store.retire() == [200]
    gate.set()
    assert uploads.wait(PATIENCE_S)
    assert [(each.manifest.step, each.overtaken, each.error) for each in told] == [
        (200, True, ""),
        (100, False, ""),
        (300, False, ""),
    ]
    assert [manifest.step for manifest in remote.committed()] == [300, 100]
    assert store.retire() == [100]


def test_what_may_be_there_already_is_brought_only_where_it_is_not(remote, store):
    """Nobody shall find half a checkpoint where there was a whole one."""
    manifest, told = save(store, 100), []
    uploads = Uploads(store, remote, told.append)
    for _ in range(2):
        uploads.offer(manifest, maybe_there=True)
        assert uploads.wait(PATIENCE_S)
        remote._at.put = None  # from now on
    assert [each.error for each in told] == ["", ""]
    assert remote.committed() == [manifest]


def test_what_only_the_disk_has_is_known_and_so_is_what_the_remote_has_too(stuttering, store):
    remote, errors, _ = stuttering
    assert not newest_of_both(store.newest_intact(), store, remote).only_here
    upload(remote, store, 100)
    assert not newest_of_both(store.newest_intact(), store, remote).only_here
    save(store, 200)
    assert newest_of_both(store.newest_intact(), store, remote).only_here
    upload(remote, store, 300)
    errors += [PermissionError("403 Forbidden")]
    assert newest_of_both(store.newest_intact(), store, remote).only_here  # as far as is known


def test_an_upload_that_fails_is_told_and_the_next_one_tried(stuttering, store):
    remote, errors, _ = stuttering
    errors += [PermissionError("403 Forbidden")]
    told = []
    uploads = Uploads(store, remote, told.append)
    for step in (100, 200):
        uploads.offer(save(store, step))
        assert uploads.wait(PATIENCE_S)
    assert "403 Forbidden" in told[0].error
    assert told[1].error == ""
    assert [manifest.step for manifest in remote.committed()] == [200]


def test_the_remote_is_kept_tidy_and_where_that_fails_the_upload_stands(stuttering, store):
    remote, errors, _ = stuttering
    remote._retention = Retention(last=1)
    told = []
    uploads = Uploads(store, remote, told.append)
    for step in (100, 200):
        uploads.offer(save(store, step))
        assert uploads.wait(PATIENCE_S)
    assert [manifest.step for manifest in remote.committed()] == [200]
    remote.upload = lambda *_, **__: errors.append(PermissionError("403 Forbidden"))
    uploads.offer(save(store, 300))
    assert uploads.wait(PATIENCE_S)
    assert (told[-1].error, "403" in told[-1].untidy) == ("", True)


def test_a_removal_of_which_the_answer_was_lost_is_done(stuttering, store):
    """Asked again, the store says that there is nothing: no reason to fail, or to let anybody wait."""
    remote, _, pauses = stuttering
    remote._retention = Retention(last=1)
    Stuttering.lost = [OSError("timed out")]
    told = []
    uploads = Uploads(store, remote, told.append)
    for step in (100, 200):
        uploads.offer(save(store, step))
        assert uploads.wait(PATIENCE_S)
    assert pauses == list(PAUSES_S[:1])
    assert [(each.error, each.untidy) for each in told] == [("", ""), ("", "")]
    assert [manifest.step for manifest in remote.committed()] == [200]


def test_nobody_waits_for_an_upload_whose_listener_fails(remote, store, monkeypatch):
    def fails(_):
        raise KeyError("a fault of the trainer's own")

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    uploads = Uploads(store, remote, fails)
    uploads.offer(save(store, 100))
    assert uploads.wait(PATIENCE_S)
    assert [manifest.step for manifest in remote.committed()] == [100]
