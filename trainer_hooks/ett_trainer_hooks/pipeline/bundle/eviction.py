"""Keeping a store below a size: what was used longest ago goes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_trainer_hooks.pipeline.bundle.entry import Entry, object_path, used_path
from ett_trainer_hooks.pipeline.bundle.store import YOUNG_S, BundleStore


class Held(msgspec.Struct, frozen=True):
    """An object of a store: its hash, bytes, when it was last used, and whether a bundle is made of it."""

    sha256: str
    size: int
    used_at: float
    named: bool


class Evicted(msgspec.Struct, frozen=True):
    """What an eviction took away, and what is left: objects and bytes."""

    objects: int
    bytes: int
    objects_left: int
    bytes_left: int


def to_evict(held: Sequence[Held], limit: int, now: float) -> list[Held]:
    """The objects to take away: those that no bundle names, then the least recently used above the limit.

    >>> old, new = Held("a", 60, 1.0, True), Held("b", 60, 2.0, True)
    >>> [each.sha256 for each in to_evict([new, old], limit=100, now=3.0)]
    ['a']
    """
    gone = [each for each in held if not each.named and now - each.used_at > YOUNG_S]
    left = sorted((each for each in held if each not in gone), key=lambda each: each.used_at)
    total = sum(each.size for each in left)
    for each in left:
        if total <= limit:
            break
        gone.append(each)
        total -= each.size
    return gone


def evict(store: BundleStore, limit: int, *, dry: bool = False) -> Evicted:
    """Bring a store below `limit` bytes; entries go before their object.

    Raises:
        StoreFailedError: the store cannot be asked.
    """
    entries = store.entries(anyones=True)
    named = _paths_by_object(entries)
    held = [
        Held(sha256, size, store.used_at(sha256), sha256 in named)
        for path, size in store.objects().items()
        for sha256 in (path.removeprefix("objects/").removesuffix(".zip"),)
    ]
    gone = to_evict(held, limit, store.now())
    if not dry:
        store.remove_partial()
        for each in gone:
            for path in (*named.get(each.sha256, ()), object_path(each.sha256), used_path(each.sha256)):
                store.remove(path)
        _remove_loose(store, entries, {each.sha256 for each in held})
    size, total = sum(each.size for each in gone), sum(each.size for each in held)
    return Evicted(len(gone), size, len(held) - len(gone), total - size)


def _paths_by_object(entries: Mapping[str, object]) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for path, entry in entries.items():
        if isinstance(entry, Entry):
            paths.setdefault(entry.sha256, []).append(path)
    return paths


def _remove_loose(store: BundleStore, entries: Mapping[str, object], there: set[str]) -> None:
    """Take away old entries and notes of use whose object is not there: it never came, or is gone."""
    old = store.now() - YOUNG_S
    for path, entry in entries.items():
        if isinstance(entry, Entry) and entry.sha256 not in there and entry.made_at < old:
            store.remove(path)
    for sha256 in store.noted() - there:
        if store.used_at(sha256) < old:
            store.remove(used_path(sha256))
