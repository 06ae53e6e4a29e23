"""Where checkpoints live, as a checkpointer sees it: a store that all ranks share, or the disks of nodes.

Every rank calls the same methods in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import msgspec
import torch.distributed as dist
from torch.distributed.checkpoint import FileSystemReader, LoadPlan, LoadPlanner
from torch.futures import Future

from ett_trainer_hooks.pipeline.checkpoint.found import Found, PassedOver
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError, Manifest
from ett_trainer_hooks.pipeline.checkpoint.node_disk import NodeDisk
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteError, RemoteStore, name_of, newest_of_both
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.pipeline.checkpoint.writer import METADATA, NodeWriter, StoreWriter
from ett_trainer_hooks.pipeline.takes import LostError
from ett_trainer_hooks.recording.spans import describe

T = TypeVar("T")


class Ranks:
    """This rank and the others; without a process group there are none.

    A group of its own: what is said here never meets the collectives of the training.
    """

    def __init__(self) -> None:
        self.joined = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if self.joined else 0
        self.count = dist.get_world_size() if self.joined else 1
        self.group = dist.new_group(backend="gloo") if self.joined else None

    def first(self, work: Callable[[], T]) -> T:
        """What rank 0 finds, on all ranks.

        Raises:
            OSError, RemoteError, LostError: as it does there.
        """
        answer: list[Any] = [None]
        if self.rank == 0:
            try:
                answer = [work()]
            except (OSError, RemoteError, LostError) as error:
                answer = [error]
        if self.joined:
            dist.broadcast_object_list(answer, src=0, group=self.group)
        if isinstance(answer[0], Exception):
            raise answer[0]
        found: T = answer[0]
        return found

    def all(self, mine: T) -> list[T]:
        """What each rank has, in their order."""
        if not self.joined:
            return [mine]
        every: list[Any] = [None] * self.count
        dist.all_gather_object(every, mine, group=self.group)
        return every


class Home(Protocol):
    """Where a checkpointer writes to and reads from."""

    def find(self) -> Found:
        """The newest intact checkpoint, and those that were passed over."""
        ...

    def reader(self, found: Found) -> FileSystemReader:
        """Reads what was found."""
        ...

    def writer(self, step: int, **arguments: Any) -> StoreWriter:  # noqa: ANN401 - as StoreWriter's
        """Writes a step."""
        ...


class SharedHome:
    """A store that all ranks share, and maybe a remote one behind it; rank 0 looks, all read."""

    def __init__(self, store: CheckpointStore, remote: RemoteStore | None, ranks: Ranks) -> None:
        self._store = store
        self._remote = remote
        self._ranks = ranks

    def find(self) -> Found:
        """As `Home`; what is damaged for good is set aside."""
        return self._ranks.first(self._newest)

    def reader(self, found: Found) -> FileSystemReader:
        """As `Home`."""
        return FileSystemReader(found.directory)

    def writer(self, step: int, **arguments: Any) -> StoreWriter:  # noqa: ANN401 - as StoreWriter's
        """As `Home`."""
        return StoreWriter(self._store, step, **arguments)

    def _newest(self) -> Found:
        self._store.take_over()
        found = self._store.newest_intact()
        for passed in found.passed_over:
            if passed.lasting:
                with suppress(OSError, KeyError):
                    self._store.set_aside(passed.step)
        return found if self._remote is None else newest_of_both(found, self._store, self._remote)


class NodesHome:
    """The disks of the nodes before a remote store: every rank checks a part, and fetches what it reads."""

    def __init__(self, disk: NodeDisk, ranks: Ranks) -> None:
        self._disk = disk
        self._ranks = ranks

    def find(self) -> Found:
        """As `Home`: the remote store says what there is; what is damaged for good is set aside there.

        Raises:
            RemoteError: it cannot be asked.
        """
        candidates, unreadable = self._ranks.first(self._disk.remote.published)
        passed_over = [each.fault for each in unreadable]
        for each in unreadable:
            self._set_aside(each.name, each.fault)
        for manifest in candidates:
            faults = [fault for fault in self._ranks.all(self._fault(manifest)) if fault]
            if not faults:
                self._disk.keep(manifest)
                return Found(manifest, self._disk.have(manifest, ()), tuple(passed_over))
            lasting = all(each.lasting for each in faults)
            passed_over.append(msgspec.structs.replace(faults[0], lasting=lasting))
            self._set_aside(name_of(manifest), passed_over[-1])
        return Found(None, None, tuple(passed_over))

    def reader(self, found: Found) -> FileSystemReader:
        """As `Home`."""
        assert found.manifest is not None  # noqa: S101 - for the type checker
        return NodeReader(self._disk, found.manifest)

    def writer(self, step: int, **arguments: Any) -> StoreWriter:  # noqa: ANN401 - as StoreWriter's
        """As `Home`."""
        return NodeWriter(self._disk, step, **arguments)

    def _set_aside(self, name: str, fault: PassedOver) -> None:
        if fault.lasting and self._ranks.rank == 0:
            with suppress(RemoteError):
                self._disk.remote.set_aside(name)

    def _fault(self, manifest: Manifest) -> PassedOver | None:
        """Why this rank cannot have its part of a checkpoint."""
        names = parts(manifest.files, self._ranks.count)[self._ranks.rank] | {METADATA}
        try:
            self._disk.have(manifest, names)
        except (DamagedError, RemoteError, OSError) as error:
            why = f"rank {self._ranks.rank}: {describe(error)} (in {self._disk.remote.url})"
            return PassedOver(manifest.step, why, lasting=isinstance(error, DamagedError))
        return None


def home_of(store: CheckpointStore | NodeDisk, remote: RemoteStore | None, ranks: Ranks) -> Home:
    """Where the checkpoints of these ranks live.

    Raises:
        ValueError: a disk of a node, which has its remote store, was given a second one.
    """
    if isinstance(store, CheckpointStore):
        return SharedHome(store, remote, ranks)
    if remote is not None:
        raise ValueError("the disk of a node has its remote store: give it no second one")
    return NodesHome(store, ranks)


class NodeReader(FileSystemReader):  # type: ignore[misc] # torch is not seen by mypy
    """Has the files that a rank reads on its node, and checked, before it reads them."""

    def __init__(self, disk: NodeDisk, manifest: Manifest) -> None:
        super().__init__(disk.have(manifest, {METADATA}))
        self._disk = disk
        self._manifest = manifest

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """As torch's."""
        self._disk.have(
            self._manifest, {self.storage_data[item.storage_index].relative_path for item in plan.items}
        )
        return super().read_data(plan, planner)


def parts(files: Mapping[str, object], ranks: int) -> list[set[str]]:
    """The files that each rank checks: all of them together, those that it has written first of all.

    >>> files = {"__0_0.distcp": 1, "__1_0.distcp": 2, "__3_0.distcp": 3, ".metadata": 4}
    >>> [sorted(share) for share in parts(files, 2)]
    [['__0_0.distcp'], ['__1_0.distcp', '__3_0.distcp']]
    """
    shares: list[set[str]] = [set() for _ in range(ranks)]
    for name in files:
        writer = name.removeprefix("__").partition("_")[0]
        if name != METADATA:
            shares[int(writer) % ranks].add(name)
    return shares
