"""A store of bundles: entries that may be trusted, and the objects that they name.

Layout: `entries/<name>/<digest of facts>/<local rank>.json`, `objects/<sha256>.zip`,
`used/<sha256>`. Several processes of several nodes write at once: objects are named by their
hash, an entry is put in place whole, after its object. What is refused is a miss with its reason;
a store that fails raises StoreFailedError and nothing else.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from ett_trainer_hooks.guard import type_and_text
from ett_trainer_hooks.pipeline.bundle.contents import Contents, packed, unpacked
from ett_trainer_hooks.pipeline.bundle.entry import (
    Entry,
    RefusedError,
    decoded,
    encoded,
    entry_path,
    is_object,
    object_path,
    place_of,
    safe_name,
    signed,
    used_path,
)
from ett_trainer_hooks.pipeline.bundle.files import Files, LocalFiles, files_at, is_shared
from ett_trainer_hooks.pipeline.bundle.fingerprint import differences, digest
from ett_trainer_hooks.pipeline.bundle.patience import within
from ett_trainer_hooks.pipeline.bundle.trust import why_untrusted

T = TypeVar("T")
PATIENCE_S = 30.0
YOUNG_S = 3600.0
"""Seconds during which what belongs to no bundle is taken to be just being stored."""
LATEST = 4e9
"""Unix seconds: a moment after it is none."""
LOOKED_AT = 8
"""Bundles of a name that are looked at, at most, to say why none fits."""


class StoreFailedError(Exception):
    """A store cannot be used now, or not by us; the message says why."""


class BundleStore:
    """The bundles at an address.

    Args:
        address: a directory, or a URL for fsspec.
        key: the key that a team shares; without one only a directory of the user is trusted.
        patience_s: longest time for one answer of the store.
        now: Unix seconds.
        only_look: read entries that nobody vouches for, and make no directory: never to load what is found.
    """

    def __init__(
        self,
        address: str,
        *,
        key: bytes | None = None,
        patience_s: float = PATIENCE_S,
        now: Callable[[], float] = time.time,
        only_look: bool = False,
    ) -> None:
        self.address = address
        self._key = key
        self._patience_s = patience_s
        self._now = now
        self._only_look = only_look
        self._opened: Files | None = None

    def find(self, name: str, facts: Mapping[str, str], local_rank: int) -> Entry:
        """The bundle for a local rank in this environment, or that of local rank 0.

        Raises:
            RefusedError: there is none that fits and may be trusted.
            StoreFailedError: the store cannot be asked.
        """
        for rank in dict.fromkeys((local_rank, 0)):
            path = entry_path(name, digest(facts), rank)
            try:
                data = self._file(path)
            except FileNotFoundError:
                continue
            return self._checked(data, name, facts, rank)
        raise RefusedError(self._why_none(name, facts))

    def contents(self, entry: Entry) -> Contents:
        """What a bundle holds, checked.

        Raises:
            RefusedError: the object is gone, or is not what the entry says.
            StoreFailedError: the store cannot be asked.
        """
        try:
            data = self._file(object_path(entry.sha256))
        except FileNotFoundError:
            raise RefusedError("its content is gone") from None
        return unpacked(data, entry)

    def note_use(self, entry: Entry) -> None:
        """The bundle was used now: it is among the last to be evicted."""
        stamp = f"{self._now():.3f}".encode()
        self._ask(lambda files: files.write(used_path(entry.sha256), stamp))

    def put(self, entry: Entry, contents: Contents) -> Entry:
        """Keep a bundle; returns its entry as it is stored.

        `sha256` and `size` of the entry are set here. Where the same content is there already, made
        in the same environment under the same name, that object is used, and its rank named.

        Raises:
            StoreFailedError: it could not be kept.
        """
        twin = self._twin(entry)
        if twin is None:
            data = packed(contents)
            entry = msgspec.structs.replace(entry, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
            self.note_use(entry)
            self._ask(lambda files: files.write(object_path(entry.sha256), data))
        else:
            entry = msgspec.structs.replace(
                entry, sha256=twin.sha256, size=twin.size, rank=twin.rank, artifacts=twin.artifacts
            )
            self.note_use(entry)
        path = entry_path(entry.name, digest(entry.facts), entry.local_rank)
        entry = signed(entry, self._key)
        self._ask(lambda files: files.write(path, encoded(entry)))
        return entry

    def entries(self, name: str | None = None, *, anyones: bool = False) -> dict[str, Entry | RefusedError]:
        """All bundles, or those of a name, by path of their entry; of those not to be used the reason.

        With `anyones`, entries that are signed with another key, or with none, are read too: to see
        what lies there, never to load it.

        Raises:
            StoreFailedError: the store cannot be asked.
        """
        folder = "entries" if name is None else f"entries/{safe_name(name)}"
        return self._readable(list(self._ask(lambda files: files.sizes(folder))), anyones=anyones)

    def objects(self) -> dict[str, int]:
        """Bytes of every object, by its path; nothing else that lies there."""
        found = self._ask(lambda files: files.sizes("objects"))
        return {path: size for path, size in found.items() if is_object(path)}

    def noted(self) -> set[str]:
        """Hashes of the objects whose use was noted, whether they are there or not."""
        names = {path.removeprefix("used/") for path in self._ask(lambda files: files.sizes("used"))}
        return {name for name in names if is_object(object_path(name))}

    def used_at(self, sha256: str) -> float:
        """When an object was last used, Unix seconds; 0 where nobody noted it."""
        try:
            moment = float(self._file(used_path(sha256)))
        except (FileNotFoundError, ValueError):
            return 0.0
        return moment if 0.0 <= moment < LATEST else 0.0

    def remove(self, path: str) -> None:
        """Take a file of the store away."""
        self._ask(lambda files: files.remove(path))

    def remove_partial(self) -> None:
        """Take away what writers that were killed have left.

        Raises:
            StoreFailedError: the store cannot be asked.
        """
        self._ask(lambda files: files.remove_partial(self._now() - YOUNG_S))

    def now(self) -> float:
        """Unix seconds by the clock of this store's user."""
        return self._now()

    def _readable(self, paths: Sequence[str], *, anyones: bool = False) -> dict[str, Entry | RefusedError]:
        """The entries at these paths that are still there; of those not to be used the reason."""
        key = None if anyones else self._key
        found = {path: self._read_or_why_not(path, key) for path in paths if place_of(path) is not None}
        return {path: entry for path, entry in found.items() if entry is not None}

    def _read_or_why_not(self, path: str, key: bytes | None) -> Entry | RefusedError | None:
        try:
            return self._read(path, key)
        except RefusedError as reason:
            return reason
        except FileNotFoundError:  # evicted meanwhile
            return None

    def _read(self, path: str, key: bytes | None) -> Entry:
        entry = decoded(self._file(path), key)
        if entry_path(entry.name, digest(entry.facts), entry.local_rank) != path:
            raise RefusedError("its entry belongs to another place of the store")
        return entry

    def _checked(self, data: bytes, name: str, facts: Mapping[str, str], local_rank: int) -> Entry:
        entry = decoded(data, self._key)
        if entry.facts != facts:
            raise RefusedError("it was made elsewhere: " + "; ".join(differences(entry.facts, facts)))
        if (entry.name, entry.local_rank) != (name, local_rank):
            raise RefusedError("its entry belongs to another place of the store")
        return entry

    def _why_none(self, name: str, facts: Mapping[str, str]) -> str:
        """Why no bundle fits: none has this name, or those that have were made elsewhere.

        Looks at a few of them only, since a start waits for the answer.
        """
        folder = f"entries/{safe_name(name)}"
        paths = [path for path in self._ask(lambda files: files.sizes(folder)) if path.endswith("/0.json")]
        others = [entry for entry in self._readable(paths[-LOOKED_AT:]).values() if isinstance(entry, Entry)]
        if not others:
            return f"there is none of the name {name!r} yet"
        newest = max(others, key=lambda entry: entry.made_at)
        return "none was made here: " + "; ".join(differences(newest.facts, facts))

    def _twin(self, entry: Entry) -> Entry | None:
        """A bundle of the same name and environment that holds the same."""
        folder = entry_path(entry.name, digest(entry.facts), 0).rpartition("/")[0]
        paths = list(self._ask(lambda files: files.sizes(folder)))
        for other in self._readable(paths).values():
            if isinstance(other, Entry) and other.content == entry.content:
                return other if self.objects().get(object_path(other.sha256)) == other.size else None
        return None

    def _file(self, path: str) -> bytes:
        return self._ask(lambda files: files.read(path))

    def _ask(self, question: Callable[[Files], T]) -> T:
        """One answer of the store, in time; FileNotFoundError passes through."""
        try:
            return within(self._patience_s, lambda: question(self._files()))
        except (FileNotFoundError, StoreFailedError):
            raise
        except ModuleNotFoundError as error:
            raise StoreFailedError(f"{self.address} needs the package {error.name!r}") from error
        except Exception as error:  # stores of all kinds raise errors of all kinds
            raise StoreFailedError(f"{self.address}: {type_and_text(error)}") from error

    def _files(self) -> Files:
        if self._opened is None:
            asks_trust = self._key is None and not self._only_look
            if asks_trust and is_shared(self.address):
                raise StoreFailedError(f"{self.address} can be written by others: it needs the key of a team")
            files = files_at(self.address)
            if asks_trust and isinstance(files, LocalFiles):
                if not files.root.exists():  # made by the first write, and looked at after it
                    return files
                if reason := why_untrusted(files.root):
                    raise StoreFailedError(reason)
            self._opened = files
        return self._opened
