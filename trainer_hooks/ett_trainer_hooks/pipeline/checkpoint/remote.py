"""Committed checkpoints at a URL that fsspec understands: a second place, from which a lost disk is restored.

    step_300-0123456789abcdef/   the files of the checkpoint; manifest.json comes last and makes it exist
    latest                       the name of the one that came last, for people and scripts

Object stores rename nothing, so every upload has a directory of its own, named by its commit. One
process writes; whoever reads checks sizes and hashes. A store that throttles or stutters is asked again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple, ParamSpec

import msgspec

from ett_trainer_hooks.pipeline.checkpoint import manifest as manifests
from ett_trainer_hooks.pipeline.checkpoint.asking import Asked, RemoteError
from ett_trainer_hooks.pipeline.checkpoint.found import Found, PassedOver
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError, FileMark, Manifest
from ett_trainer_hooks.pipeline.checkpoint.permit import Permit
from ett_trainer_hooks.pipeline.checkpoint.retention import Retention, retired
from ett_trainer_hooks.pipeline.checkpoint.store import LATEST, CheckpointStore

__all__ = ["RemoteError", "RemoteStore", "name_of", "newest_of_both"]

P = ParamSpec("P")
WORKERS = 4
"""Files on their way at once."""
TRIES = 2
"""How often a file is fetched that does not arrive as it was committed."""
ASIDE = "manifest.damaged.json"
"""What the manifest of a checkpoint that was set aside is called."""
END = b"}}"
"""The last bytes of a manifest that was written to its end."""
_NAME = re.compile(r"step_(\d+)-[0-9a-f]{16}")


class Unreadable(NamedTuple):
    """A checkpoint of that name whose manifest tells nothing."""

    name: str
    fault: PassedOver


class RemoteStore:
    """The checkpoints below a URL.

    Args:
        url: such as `s3://bucket/job-17`; what fsspec needs for it must be installed.
        retention: which of them stay.
        workers: files on their way at once.
        pause: waits so many seconds before a store is asked again.

    Raises:
        RemoteError: nobody knows this kind of URL, or its package is missing.
    """

    def __init__(
        self,
        url: str,
        *,
        retention: Retention | None = None,
        workers: int = WORKERS,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url
        self._retention = retention or Retention()
        self._workers = workers
        self._at = Asked(url, pause)
        self._fs, self._root, self._ask = self._at.files, self._at.root, self._at.ask

    def upload(
        self, directory: Path, manifest: Manifest, permit: Permit, *, maybe_there: bool = False
    ) -> None:
        """Bring a committed checkpoint there; when this returns, it exists there whole.

        With `maybe_there` one that is there already stays as it is.

        Raises:
            RemoteError: it does not exist.
            GivenUpError: nor shall it, by the `permit`.
        """
        if maybe_there and self._manifest(self._place(manifest)) == manifest:
            return
        self.put(directory, name_of(manifest), manifest.files)
        with permit.committing(manifest.step):
            self.publish(manifest)

    def put(self, directory: Path, name: str, files: Mapping[str, FileMark]) -> None:
        """Bring files of a checkpoint of that name there, which does not exist yet.

        Raises:
            RemoteError: they are not there.
        """
        sizes = {file: mark.size for file, mark in files.items()}
        self._at.put(directory, sizes, f"{self._root}/{name}", workers=self._workers)

    def publish(self, manifest: Manifest) -> None:
        """Make a checkpoint exist whose files are all there.

        Raises:
            RemoteError: it does not.
        """
        place = self._place(manifest)
        self._ask(self._fs.pipe_file, f"{place}/{manifests.NAME}", manifests.encoded(manifest))
        self._ask(self._fs.pipe_file, f"{self._root}/{LATEST}", f"{name_of(manifest)}\n".encode())

    def committed(self) -> list[Manifest]:
        """Checkpoints that are there whole, newest first; their files are not looked at.

        Raises:
            RemoteError: the store cannot be asked.
        """
        return self.published()[0]

    def published(self) -> tuple[list[Manifest], list[Unreadable]]:
        """As `committed`, and those whose manifest is there, but is damaged or of another version.

        Raises:
            RemoteError: the store cannot be asked.
        """
        found = [self._read(place) for place in self._places()]
        whole = [each for each in found if isinstance(each, Manifest)]
        whole.sort(key=lambda each: each.sequence, reverse=True)
        return whole, [each for each in found if isinstance(each, Unreadable)]

    def download(self, manifest: Manifest, directory: Path) -> None:
        """Bring the files of a checkpoint into a directory, and check them.

        Raises:
            DamagedError: they are not what was committed.
            RemoteError: the store cannot be asked.
        """
        place, wrong = self._place(manifest), manifest.files

        def fetch(name: str) -> None:
            try:
                self._fs.get_file(f"{place}/{name}", str(directory / name))
            except FileNotFoundError:
                if not directory.is_dir():  # it is the place here that is gone
                    raise

        for name in wrong:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
        for _ in range(TRIES):  # what was changed on its way is right the next time
            self._at.each(wrong, fetch, self._workers)
            wrong = manifests.wrong(directory, wrong)
            if not wrong:
                return
        manifests.check(directory, wrong)

    def get(self, manifest: Manifest, name: str, file: Path) -> None:
        """Bring one file of a checkpoint to a path of this machine; it has its name once it was checked.

        Raises:
            DamagedError: it is not what was committed.
            RemoteError: the store cannot be asked, or has it no longer.
        """
        fresh = file.with_name(f"{file.name}.{token_hex(4)}")
        try:
            for _ in range(TRIES):  # what was changed on its way is right the next time
                self._ask(self._fs.get_file, f"{self._place(manifest)}/{name}", str(fresh))
                if manifests.mark(fresh) == manifest.files[name]:
                    fresh.replace(file)
                    return
        except FileNotFoundError:
            raise DamagedError(f"{name} is missing") from None
        finally:
            fresh.unlink(missing_ok=True)
        raise DamagedError(f"{name} was changed")

    def set_aside(self, name: str) -> None:
        """Let a damaged checkpoint exist no longer; its files stay until all that are kept are newer.

        Raises:
            RemoteError: the store cannot be asked.
        """
        place = f"{self._root}/{name}"
        with suppress(FileNotFoundError):  # somebody else was faster
            data = self._ask(self._fs.cat_file, f"{place}/{manifests.NAME}")
            self._ask(self._fs.pipe_file, f"{place}/{ASIDE}", data)
        self._remove(self._fs.rm_file, f"{place}/{manifests.NAME}")

    def retire(self) -> list[int]:
        """Remove what the retention no longer wants, and older uploads that never ended; returns its steps.

        Raises:
            RemoteError: the store cannot be asked.
        """
        committed = self.committed()
        leaving = retired(committed, self._retention)
        for manifest in leaving:
            self._remove(self._fs.rm_file, f"{self._place(manifest)}/{manifests.NAME}")
            self._remove(self._fs.rm, self._place(manifest), recursive=True)
        oldest = min((each.step for each in committed if each not in leaving), default=0)
        for place in self._places():
            if _step_of(place) < oldest and self._read(place) is None:
                self._remove(self._fs.rm, place, recursive=True)
        return [manifest.step for manifest in leaving]

    def _remove(self, how: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Have something go; gone already is as good, as after an answer that was lost."""
        with suppress(FileNotFoundError):
            self._ask(how, *args, **kwargs)

    def _place(self, manifest: Manifest) -> str:
        return f"{self._root}/{name_of(manifest)}"

    def _places(self) -> list[str]:
        return sorted(path for path in self._at.paths() if _NAME.fullmatch(path.rpartition("/")[2]))

    def _manifest(self, place: str) -> Manifest | None:
        found = self._read(place)
        return found if isinstance(found, Manifest) else None

    def _read(self, place: str) -> Manifest | Unreadable | None:
        """The manifest of an upload; None where that never ended."""
        try:
            data = self._ask(self._fs.cat_file, f"{place}/{manifests.NAME}")
        except FileNotFoundError:
            return None
        try:
            return manifests.decoded(data)
        except DamagedError as error:
            if not data.endswith(END):
                return None
            fault = PassedOver(
                _step_of(place), f"{error} (in {self.url})", lasting=type(error) is DamagedError
            )
            return Unreadable(place.rpartition("/")[2], fault)


def name_of(manifest: Manifest) -> str:
    """The name of a checkpoint at a URL."""
    return f"step_{manifest.step}-{manifest.commit}"


def newest_of_both(found: Found, store: CheckpointStore, remote: RemoteStore) -> Found:
    """The newest intact checkpoint of either; one that only the remote has is brought into the store.

    `found`: what the store has. A remote that cannot be asked is named in `fault`, and that is taken.
    `only_here` where the remote is not known to have it. What is damaged for good in the remote is set aside.

    Raises:
        RemoteError: the remote cannot be asked, and the store has nothing.
    """
    try:
        candidates, unreadable = remote.published()
    except RemoteError as error:
        if found.manifest is None:
            raise
        return msgspec.structs.replace(found, fault=str(error), only_here=True)
    passed_over = [*found.passed_over, *(_set_aside(remote, each.name, each.fault) for each in unreadable)]
    newest_here = 0 if found.manifest is None else found.manifest.sequence
    for manifest in (each for each in candidates if each.sequence > newest_here):
        fault = _fetch(store, remote, manifest)
        if fault is None:
            return Found(manifest, store.path_of(manifest.step), tuple(passed_over))
        passed_over.append(_set_aside(remote, name_of(manifest), fault))
    known_there = found.manifest is None or found.manifest.commit in {each.commit for each in candidates}
    return msgspec.structs.replace(found, passed_over=tuple(passed_over), only_here=not known_there)


def _fetch(store: CheckpointStore, remote: RemoteStore, manifest: Manifest) -> PassedOver | None:
    """Bring a checkpoint from the remote into the store; returns why it could not be had."""
    directory = None
    try:
        directory = store.begin(manifest.step)
        remote.download(manifest, directory)
        store.adopt(directory, manifest)
    except (DamagedError, RemoteError, OSError) as error:
        if directory is not None:
            store.abandon(directory)
        why = f"{error} (in {remote.url})"
        return PassedOver(manifest.step, why, lasting=isinstance(error, DamagedError))
    return None


def _set_aside(remote: RemoteStore, name: str, fault: PassedOver) -> PassedOver:
    """What is wrong with a checkpoint, which is asked no more where that lasts."""
    if fault.lasting:
        with suppress(RemoteError):
            remote.set_aside(name)
    return fault


def _step_of(place: str) -> int:
    return int(place.rpartition("/")[2].removeprefix("step_").partition("-")[0])
