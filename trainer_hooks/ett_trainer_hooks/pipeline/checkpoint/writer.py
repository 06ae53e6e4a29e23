"""How torch's distributed checkpoints get into the store: ranks hash their files, the coordinator commits.

    coordinator   begins the directory, once it has the plans of all ranks
    every rank    learns it with its plan, writes, reads its files once more for their hashes
    coordinator   gets all hashes, writes the metadata, then commits

Nothing is sent but what torch sends anyway. When a save returns on any rank, the checkpoint is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from ett_trainer_hooks.pipeline.checkpoint import manifest as manifests
from ett_trainer_hooks.pipeline.checkpoint.manifest import FileMark, Manifest
from ett_trainer_hooks.pipeline.checkpoint.node_disk import NodeDisk
from ett_trainer_hooks.pipeline.checkpoint.permit import Permit

METADATA = ".metadata"


@dataclass(frozen=True)
class Place:
    """Where a rank writes: the directory of this save, and what torch's writer wants to know."""

    directory: Path
    prefix: Any


@dataclass(frozen=True)
class Written:
    """What a rank has written, with the hashes of its files."""

    results: list[WriteResult]
    files: dict[str, FileMark]


Write = Callable[[Place, SavePlan, SavePlanner, int], Written]


def write_files(place: Place, plan: SavePlan, planner: SavePlanner, threads: int) -> Written:
    """Write what a plan says, bring it to the disk, and read it once more for the hashes.

    Torch's writer syncs a file before the last of it has left its buffer, and loses the errors of threads.

    Raises:
        OSError: the store does not take it; the message names the place.
    """
    try:
        return _written(place, plan, planner, threads)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(place.directory)) from None


def _written(place: Place, plan: SavePlan, planner: SavePlanner, threads: int) -> Written:
    writer = FileSystemWriter(place.directory, sync_files=False, thread_count=threads)
    try:
        results = writer.write_data(replace(plan, storage_data=place.prefix), planner).wait()
    except RuntimeError as error:
        if isinstance(error.__context__, OSError):  # torch tells of positions in the file, not of the disk
            raise error.__context__ from None
        raise
    if len(results) != len(plan.items):
        raise OSError(f"{len(plan.items) - len(results)} of {len(plan.items)} items are not written")
    names = {result.storage_data.relative_path for result in results}
    return Written(results, manifests.marks(place.directory, names, sync=True))


class Target(Protocol):
    """What begins directories and makes checkpoints of them: a `CheckpointStore`, or a `NodeDisk`."""

    root: Path

    def begin(self, step: int) -> Path:
        """A new directory."""
        ...

    def commit(
        self,
        directory: Path,
        step: int,
        *,
        world_size: int = 1,
        metrics: Mapping[str, float] | None = None,
        files: Mapping[str, FileMark],
    ) -> Manifest:
        """Make the checkpoint exist."""
        ...


class StoreWriter(FileSystemWriter):  # type: ignore[misc] # torch is not seen by mypy
    """Writes one step into a store; one object a save, the same arguments on every rank.

    `threads` write the files of a rank, of which there are as many; `write` does it, here or elsewhere;
    `permit`: whether it may still be committed.
    """

    def __init__(  # noqa: PLR0913 - settings
        self,
        store: Target,
        step: int,
        *,
        metrics: Mapping[str, float] | None = None,
        threads: int = 1,
        write: Write = write_files,
        permit: Permit | None = None,
    ) -> None:
        super().__init__(store.root, thread_count=threads)
        self._store = store
        self._write = write
        self._permit = permit or Permit()
        self._step = step
        self._metrics = dict(metrics or {})
        self._ranks = 1

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """As torch's; the directory is not known yet, the step goes along."""
        return replace(plan, storage_data=self._step)

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """As torch's: begins the directory, on the coordinator."""
        if steps := {plan.storage_data for plan in plans} - {self._step}:
            raise ValueError(f"rank 0 saves step {self._step}, others {sorted(steps)}")
        self._ranks = len(plans)
        self.path = self._store.begin(self._step)
        named = super().prepare_global_plan([replace(plan, storage_data=None) for plan in plans])
        return [replace(plan, storage_data=Place(self.path, plan.storage_data)) for plan in named]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[Any]:
        """As torch's, with hashes."""
        done: Future[Any] = Future()
        done.set_result(self.write(plan.storage_data, plan, planner))
        return done

    def write(self, place: Place, plan: SavePlan, planner: SavePlanner) -> Written:
        """Write what this rank has to write."""
        return self._write(place, plan, planner, self.thread_count)

    def finish(self, metadata: Metadata, results: list[Any]) -> None:
        """As torch's, then the checkpoint is committed."""
        super().finish(metadata, [written.results for written in results])
        files = {name: mark for written in results for name, mark in written.files.items()}
        files[METADATA] = manifests.mark(self.path / METADATA, sync=True)
        self.commit(files)

    def commit(self, files: Mapping[str, FileMark]) -> None:
        """Make the checkpoint exist, of these files."""
        with self._permit.committing(self._step):
            self._store.commit(
                self.path, self._step, world_size=self._ranks, metrics=self._metrics, files=files
            )


class NodeWriter(StoreWriter):
    """Writes one step onto the disk of each node; every rank brings its files on from there."""

    def __init__(self, disk: NodeDisk, step: int, **arguments: Any) -> None:  # noqa: ANN401 - as StoreWriter's
        super().__init__(disk, step, **arguments)
        self._disk = disk

    def write(self, place: Place, plan: SavePlan, planner: SavePlanner) -> Written:
        """As `StoreWriter`."""
        directory = self._disk.here(place.directory.name)
        written = super().write(replace(place, directory=directory), plan, planner)
        self._disk.bring(directory, written.files)
        return written

    def commit(self, files: Mapping[str, FileMark]) -> None:
        """As `StoreWriter`."""
        self._disk.bring(self.path, {METADATA: files[METADATA]})
        super().commit(files)
