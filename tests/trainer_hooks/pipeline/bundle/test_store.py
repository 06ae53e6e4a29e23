"""Stores of both kinds: what is put is found, what is hostile or broken is a reason."""

import random
import resource
import threading

import pytest

from ett_trainer_hooks.pipeline.bundle.contents import Contents
from ett_trainer_hooks.pipeline.bundle.entry import Entry, RefusedError, object_path
from ett_trainer_hooks.pipeline.bundle.store import BundleStore, StoreFailedError

FACTS = {"torch": "2.13", "cpu": "avx avx2", "compiler": "g++ 12"}
KEY = b"k" * 32


def test_what_is_put_is_found_by_every_local_rank(store, bundle):
    entry, contents = bundle()
    kept = store.put(entry, contents)
    for local_rank in (0, 1, 7):
        found = store.find("dlrm", FACTS, local_rank)
        assert found == kept
        assert store.contents(found) == contents


def test_a_local_rank_prefers_its_own(store, bundle):
    store.put(*bundle())
    own, contents = bundle(Contents(b"other graphs", {}), local_rank=1, artifacts={"inductor": ["f9"]})
    kept = store.put(own, contents)
    assert store.find("dlrm", FACTS, 1) == kept
    assert store.contents(kept).artifacts == b"other graphs"


def test_an_empty_store_and_another_name_are_misses(store, bundle):
    with pytest.raises(RefusedError, match="none of the name 'dlrm' yet"):
        store.find("dlrm", FACTS, 0)
    store.put(*bundle())
    with pytest.raises(RefusedError, match="none of the name 'other' yet"):
        store.find("other", FACTS, 0)


def test_one_made_elsewhere_is_a_miss_that_says_what_differs(store, bundle):
    store.put(*bundle())
    with pytest.raises(RefusedError, match="compiler is g\\+\\+ 13, was g\\+\\+ 12"):
        store.find("dlrm", {**FACTS, "compiler": "g++ 13"}, 0)


def test_an_entry_moved_to_a_foreign_environment_is_refused(store, bundle):
    store.put(*bundle())
    [path] = store.entries()
    files = store._files()
    foreign = {**FACTS, "cpu": "avx"}
    elsewhere = BundleStore(store.address)
    elsewhere.put(*bundle(facts=foreign))
    [other] = set(store.entries()) - {path}
    files.write(other, files.read(path))
    with pytest.raises(RefusedError, match="made elsewhere: instructions of the processor: without avx2"):
        store.find("dlrm", foreign, 0)
    assert isinstance(store.entries()[other], RefusedError)


def test_an_object_that_was_changed_cut_or_removed_is_refused(store, bundle):
    entry = store.put(*bundle())
    files, path = store._files(), object_path(entry.sha256)
    data = files.read(path)
    for damage in (data[:-1], bytes([data[0] ^ 1]) + data[1:], b""):
        files.write(path, damage)
        with pytest.raises(RefusedError, match="changed or cut short"):
            store.contents(entry)
    files.remove(path)
    with pytest.raises(RefusedError, match="its content is gone"):
        store.contents(entry)


def test_the_same_content_is_kept_once(store, bundle):
    first = store.put(*bundle())
    second = store.put(
        *bundle(
            Contents(b"the same graphs, other times", bundle()[1].native),
            local_rank=1,
            rank=9,
            artifacts={**first.artifacts, "pgo": ["job:9:"]},
            content=first.content,
        )
    )
    assert (second.sha256, second.rank, second.artifacts) == (first.sha256, 0, first.artifacts)
    assert len(store.objects()) == 1
    assert len(store.entries()) == 2


def test_content_whose_object_is_gone_is_stored_again(store, bundle):
    first = store.put(*bundle())
    store.remove(object_path(first.sha256))
    again = store.put(*bundle(local_rank=1))
    assert store.contents(again) == bundle()[1]


def test_a_key_that_is_not_the_same_is_a_miss_and_no_error(address, bundle):
    BundleStore(address, key=b"o" * 32).put(*bundle())
    with pytest.raises(RefusedError, match="not signed with the key of this team"):
        BundleStore(address, key=KEY).find("dlrm", FACTS, 0)
    shared = BundleStore(address, key=KEY)
    kept = shared.put(*bundle())
    assert shared.find("dlrm", FACTS, 0) == kept


def test_without_a_key_a_directory_that_others_may_write_to_is_not_even_read(tmp_path, bundle):
    root = tmp_path / "shared"
    BundleStore(str(root)).put(*bundle())
    root.chmod(0o777)
    with pytest.raises(StoreFailedError, match="others may write"):
        BundleStore(str(root)).find("dlrm", FACTS, 0)
    with pytest.raises(RefusedError, match="it is not signed"):
        BundleStore(str(root), key=KEY).find("dlrm", FACTS, 0)


def test_a_directory_is_made_by_the_first_bundle_and_for_the_user_alone(tmp_path, bundle):
    root = tmp_path / "new" / "store"
    store = BundleStore(str(root))
    assert store.entries() == {}
    assert not root.exists()
    store.put(*bundle())
    assert root.stat().st_mode & 0o777 == 0o700


def test_a_directory_where_others_could_replace_it_is_not_used_even_if_it_is_new(tmp_path, bundle):
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(0o777)
    with pytest.raises(StoreFailedError, match="above it"):
        BundleStore(str(above / "store")).put(*bundle())


def test_a_store_by_url_needs_a_key():
    with pytest.raises(StoreFailedError, match="needs the key of a team"):
        BundleStore("s3://team/bundles").find("dlrm", FACTS, 0)


def test_a_kind_of_url_that_nobody_knows_fails_with_its_name():
    with pytest.raises(StoreFailedError, match="no-such-kind"):
        BundleStore("no-such-kind://x", key=KEY).find("dlrm", FACTS, 0)


def test_a_store_that_stands_still_is_given_up(address):
    asked, over = threading.Event(), threading.Event()

    def stands_still(_):
        asked.set()
        over.wait()

    store = BundleStore(address, patience_s=0.05)
    with pytest.raises(StoreFailedError, match=r"no answer within 0\.05 s"):
        store._ask(stands_still)
    over.set()
    assert asked.is_set()


def test_a_place_that_cannot_be_written_fails_and_leaves_nothing(tmp_path, bundle):
    (tmp_path / "store").mkdir(mode=0o700)
    (tmp_path / "store" / "objects").write_text("a file where a folder should be")
    store = BundleStore(str(tmp_path / "store"))
    with pytest.raises(StoreFailedError, match=r"FileExistsError|NotADirectoryError"):
        store.put(*bundle())
    assert store.entries() == {}


@pytest.fixture
def small_files():
    """No file may grow beyond 1 MB, as on a disk that is full: the write fails in the middle."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.usefixtures("small_files")
def test_a_write_that_fails_in_the_middle_leaves_no_partial_file(tmp_path, bundle):
    store = BundleStore(str(tmp_path / "store"))
    with pytest.raises(StoreFailedError, match="File too large"):
        store.put(*bundle(Contents(random.Random(1).randbytes(2_000_000), {})))
    assert store.objects() == {}
    assert not list(tmp_path.rglob("*.partial"))
    with pytest.raises(RefusedError):
        store.find("dlrm", FACTS, 0)


def test_many_writers_at_once_leave_one_whole_bundle(address, bundle):
    stores = [BundleStore(address) for _ in range(8)]
    failures = []

    def write(store, number):
        try:
            for _ in range(5):
                store.put(*bundle(Contents(f"from {number}".encode(), {}), content=f"{number:064d}"))
                store.contents(store.find("dlrm", FACTS, 0))
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=write, args=pair) for pair in zip(stores, range(8), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert all(isinstance(entry, Entry) for entry in stores[0].entries().values())
    assert stores[0].contents(stores[0].find("dlrm", FACTS, 3)).artifacts.startswith(b"from ")
