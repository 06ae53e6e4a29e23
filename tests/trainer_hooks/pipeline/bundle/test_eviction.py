"""Least recently used bundles leave a store that is too large."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_trainer_hooks.pipeline.bundle.contents import Contents
from ett_trainer_hooks.pipeline.bundle.entry import RefusedError, object_path, used_path
from ett_trainer_hooks.pipeline.bundle.eviction import YOUNG_S, Held, evict, to_evict
from ett_trainer_hooks.pipeline.bundle.files import PARTIAL
from ett_trainer_hooks.pipeline.bundle.store import BundleStore

FACTS = {"torch": "2.13", "cpu": "avx avx2", "compiler": "g++ 12"}


class Clock:
    now_s = 0.0

    def __call__(self):
        self.now_s += 1.0
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def filled(address, bundle, clock):
    """A store with three bundles `a`, `b` and `c`, stored in this order."""
    store = BundleStore(address, now=clock)
    for number, name in enumerate("abc"):
        contents = Contents(f"artifacts of {name}".encode(), {})
        store.put(*bundle(contents, name=name, content=f"{number:064d}"))
    return store


def names(store):
    return sorted(entry.name for entry in store.entries().values())


def test_what_was_used_longest_ago_goes_first(filled):
    filled.note_use(filled.find("a", FACTS, 0))
    size = sum(filled.objects().values())
    gone = evict(filled, size - 1)
    assert names(filled) == ["a", "c"]
    assert (gone.objects, gone.objects_left, gone.bytes + gone.bytes_left) == (1, 2, size)
    with pytest.raises(RefusedError, match="none of the name 'b'"):
        filled.find("b", FACTS, 0)


def test_a_store_that_is_small_enough_keeps_all_and_a_dry_run_takes_nothing(filled):
    assert evict(filled, 10**9).objects == 0
    assert evict(filled, 0, dry=True).objects == 3
    assert names(filled) == ["a", "b", "c"]


def test_nothing_is_left_of_what_is_evicted(filled):
    evict(filled, 0)
    files = filled._files()
    assert [files.sizes(folder) for folder in ("entries", "objects", "used")] == [{}, {}, {}]


def test_an_object_that_no_bundle_names_goes_once_it_is_old(filled, clock):
    for path in list(filled.entries()):
        filled.remove(path)
    assert evict(filled, 10**9).objects == 0
    clock.now_s += YOUNG_S
    assert evict(filled, 10**9).objects == 3


def test_notes_and_entries_of_objects_that_are_not_there_go_once_they_are_old(filled, bundle, clock):
    """A writer that dies has noted the use of what never came; another one names what was just evicted."""
    never = "e" * 64
    filled.note_use(bundle(sha256=never)[0])
    gone = filled.find("b", FACTS, 0)
    filled.remove(object_path(gone.sha256))
    evict(filled, 10**9)
    assert (names(filled), never in filled.noted()) == (["a", "b", "c"], True)
    clock.now_s = gone.made_at + YOUNG_S
    evict(filled, 10**9, dry=True)
    assert (names(filled), never in filled.noted()) == (["a", "b", "c"], True)
    evict(filled, 10**9)
    assert names(filled) == ["a", "c"]
    assert filled.noted() == {filled.find(name, FACTS, 0).sha256 for name in "ac"}


@pytest.mark.parametrize("stamp", [b"nan", b"inf", b"-1", b"1e300", b"then", b""])
def test_a_moment_of_use_that_cannot_be_is_long_ago(filled, stamp):
    """So that it goes first, and not never."""
    held = filled.find("c", FACTS, 0)
    filled._files().write(used_path(held.sha256), stamp)
    evict(filled, sum(filled.objects().values()) - 1)
    assert names(filled) == ["a", "b"]


def test_what_writers_that_were_killed_have_left_goes_once_it_is_old(tmp_path, bundle):
    store = BundleStore(str(tmp_path))
    store.put(*bundle())
    left = tmp_path / "objects" / f"tmpx{PARTIAL}"
    left.write_bytes(b"half a bundle")
    store.remove_partial()
    assert left.exists()
    then = left.stat().st_mtime - YOUNG_S - 60.0
    os.utime(left, (then, then))
    assert evict(store, 10**9, dry=True).objects == 0
    assert left.exists()
    assert evict(store, 10**9).objects == 0
    assert not left.exists()
    assert names(store) == ["dlrm"]


def test_bundles_of_another_team_count_as_bundles(address, bundle, clock):
    BundleStore(address, key=b"o" * 32, now=clock).put(*bundle())
    clock.now_s += 2 * YOUNG_S
    assert evict(BundleStore(address, key=b"k" * 32, now=clock), 10**9).objects == 0


HELD = st.lists(
    st.builds(Held, st.uuids().map(str), st.integers(0, 100), st.floats(0, 1e5), st.booleans()),
    max_size=12,
    unique_by=lambda held: held.sha256,
)


@given(HELD, st.integers(0, 500))
def test_what_is_left_fits_and_no_more_goes_than_must(held, limit):
    gone = to_evict(held, limit, now=1e5)
    left = [each for each in held if each not in gone]
    assert sum(each.size for each in left) <= limit
    for each in gone:
        orphan = not each.named and 1e5 - each.used_at > YOUNG_S
        older = [other for other in left if other.used_at < each.used_at]
        assert orphan or not older
