"""Checkpoints whose files lie on the disk of the node that wrote them, and at a URL, which all nodes reach.

    /local/step_300-0123456789abcdef/   on each node: what its ranks have written, and what they have fetched
    s3://bucket/job-17/                 a `RemoteStore`: the files of all ranks, then the manifest

A checkpoint exists once the URL has all of it. The disk saves the way back: a file that is there, and is
what was committed, is not fetched. Every rank calls; ranks of a node share its disk, and each writes, brings
to the URL and takes away files of its own. Needs no torch.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from secrets import token_hex

from ett_trainer_hooks.pipeline.checkpoint import manifest as manifests
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError, FileMark, Manifest
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteStore, name_of

KEPT = 2
"""Checkpoints of which the disk keeps files: the last one, and the one before."""


class NodeDisk:
    """The disk of a node before a remote store.

    Args:
        root: a directory that the ranks of a node share; the same path on every node, or each its own.
        remote: what makes a checkpoint exist; the same on every rank.
        now: Unix seconds.
    """

    shared = False

    def __init__(self, root: Path, remote: RemoteStore, *, now: Callable[[], float] = time.time) -> None:
        self.root = root
        self.remote = remote
        self._now = now
        self._good: list[str] = []
        self._newest = ""
        self._committed: Manifest | None = None
        self._checked: set[tuple[str, str]] = set()

    def begin(self, step: int) -> Path:
        """A new directory for the files of a step, named as it will be at the URL."""
        return self.here(f"step_{step}-{token_hex(8)}")

    def here(self, name: str) -> Path:
        """The directory of that name on this node."""
        directory = self.root / name
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def bring(self, directory: Path, files: Mapping[str, FileMark]) -> None:
        """Files of a checkpoint that does not exist yet reach the URL.

        Raises:
            RemoteError: they do not.
        """
        self.remote.put(directory, directory.name, files)
        self._checked |= {(directory.name, name) for name in files}
        self._newest = directory.name

    def commit(
        self,
        directory: Path,
        step: int,
        *,
        world_size: int = 1,
        metrics: Mapping[str, float] | None = None,
        files: Mapping[str, FileMark],
    ) -> Manifest:
        """Make the checkpoint exist, once all ranks have brought their files; called by one of them.

        Raises:
            RemoteError: it does not exist.
        """
        self._committed = Manifest(
            step=step,
            sequence=1 + max((each.sequence for each in self.remote.committed()), default=0),
            commit=directory.name.rpartition("-")[2],
            world_size=world_size,
            made_at=self._now(),
            metrics=dict(metrics or {}),
            files=dict(files),
        )
        self.remote.publish(self._committed)
        return self._committed

    def manifest_of(self, step: int) -> Manifest:
        """What was committed last, by this rank.

        Raises:
            DamagedError: that is not the checkpoint of `step`.
        """
        if self._committed is None or self._committed.step != step:
            raise DamagedError(f"step {step} was not committed here")
        return self._committed

    def have(self, manifest: Manifest, names: Iterable[str]) -> Path:
        """The directory here of a checkpoint, with these files of it as they were committed.

        Raises:
            DamagedError: one was changed, also at the URL.
            RemoteError: one cannot be fetched.
            OSError: the disk fails.
        """
        directory = self.here(name_of(manifest))
        for name in names:
            if (directory.name, name) not in self._checked:
                file = directory / name
                if not file.exists() or manifests.mark(file) != manifest.files[name]:
                    self.remote.get(manifest, name, file)
                self._checked.add((directory.name, name))
        return directory

    def retire(self) -> list[int]:
        """Take away from this node what is older than the last two saves; returns steps that left the URL.

        Raises:
            RemoteError: the URL cannot be asked.
        """
        self._good = [self._newest, *self._good][:KEPT]
        self.clear_up()
        return [] if self._committed is None else self.remote.retire()

    def clear_up(self) -> None:
        """Take away from this node what interrupted saves have left; not while a save is going on."""
        for directory in self.root.glob("step_*"):
            if directory.name not in self._good:
                shutil.rmtree(directory, ignore_errors=True)

    def keep(self, manifest: Manifest) -> None:
        """Training goes on from this checkpoint: it stays on the disk until there are newer ones."""
        self._good = [name_of(manifest)]
