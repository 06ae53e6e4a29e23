"""Tensors of a checkpoint, whole, however many ranks saved their shards. One process, no group."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from pickle import UnpicklingError

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

from ett_trainer_hooks.pipeline.checkpoint import manifest as manifests
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError
from ett_trainer_hooks.pipeline.publishing.publishable import UnfitError
from ett_trainer_hooks.recording.spans import describe

AT_ONCE_BYTES = 256 << 20
"""So much is read in one go; a larger table comes alone."""


class Weights:
    """The tensors of a checkpoint.

    Raises:
        DamagedError: its metadata cannot be read, or a file is too short for what it holds.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        try:
            metadata = dcp.FileSystemReader(directory).read_metadata()
        except (OSError, EOFError, UnpicklingError, CheckpointException) as error:
            raise DamagedError(f"its metadata cannot be read: {describe(error)}") from error
        if faults := _too_short(directory, (metadata.storage_data or {}).values()):
            raise DamagedError(manifests.summary(faults))
        self._known: dict[str, TensorStorageMetadata] = {
            name: each
            for name, each in metadata.state_dict_metadata.items()
            if isinstance(each, TensorStorageMetadata)
        }

    def size(self, key: str) -> tuple[int, ...]:
        """The size of a tensor.

        Raises:
            UnfitError: the checkpoint does not have it.
        """
        if key not in self._known:
            raise UnfitError(f"{key} not found in the checkpoint, which has {len(self._known)} tensors")
        return tuple(self._known[key].size)

    def read(self, keys: Iterable[str]) -> dict[str, torch.Tensor]:
        """These tensors.

        Raises:
            UnfitError: the checkpoint does not have one.
            DamagedError: one cannot be read.
        """
        place = {key: torch.empty(self.size(key), dtype=self._known[key].properties.dtype) for key in keys}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.distributed is (disabled|unavailable)")
            try:
                dcp.load(place, checkpoint_id=self._directory, no_dist=True)
            except (RuntimeError, EOFError, UnpicklingError, CheckpointException) as error:
                raise DamagedError(f"a tensor cannot be read: {describe(error)}") from error
        return place

    def each(self, keys: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        """These tensors one after another; not many are in memory at once.

        Raises:
            UnfitError: the checkpoint does not have one.
            DamagedError: one cannot be read.
        """
        sizes = {key: self._bytes(key) for key in keys}
        for some in batched(sizes, AT_ONCE_BYTES):
            yield from self.read(some).items()

    def _bytes(self, key: str) -> int:
        return prod(self.size(key)) * int(self._known[key].properties.dtype.itemsize)


def batched(sizes: Mapping[str, int], limit: int) -> list[list[str]]:
    """Names in their order, so many together as stay below a limit, at least one.

    >>> batched({"a": 3, "b": 4, "c": 9, "d": 1}, 8)
    [['a', 'b'], ['c'], ['d']]
    """
    batches: list[list[str]] = []
    filled = 0
    for name, size in sizes.items():
        if not batches or filled + size > limit:
            batches.append([])
            filled = 0
        batches[-1].append(name)
        filled += size
    return batches


def _too_short(directory: Path, parts: Iterable[object]) -> list[str]:
    """The files that are missing, or end before what the metadata says they hold."""
    needed: dict[str, int] = {}
    for part in parts:
        name = str(part.relative_path)  # type: ignore[attr-defined] # torch is not seen by mypy
        end = int(part.offset + part.length)  # type: ignore[attr-defined]
        needed[name] = max(needed.get(name, 0), end)
    sizes = {name: manifests.size_of(directory / name) for name in needed}
    return [
        f"{name} is missing" if (size := sizes[name]) is None else f"{name} has {size} of {end} bytes"
        for name, end in sorted(needed.items())
        if (sizes[name] or 0) < end
    ]
