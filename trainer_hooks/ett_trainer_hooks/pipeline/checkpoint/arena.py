"""One block of host memory into which the tensors of a save are copied, allocated once and used again.

New memory costs a fault a page, several times what the copy costs. Pinned where tensors come from an
accelerator; shared where another process is to read it.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch

ALIGNED = 512
"""Bytes to which every tensor is aligned."""


class Slot(msgspec.Struct, frozen=True):
    """Where a tensor lies in the block, and how: as a clone of it would."""

    offset: int
    size: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]


class Arena:
    """The block; `shared`: a process that gets this object pickled sees the same memory (Linux)."""

    def __init__(self, *, shared: bool = False) -> None:
        self._file = os.memfd_create("checkpoint") if shared else None
        self._block = torch.empty(0, dtype=torch.uint8)
        self._slots: dict[Hashable, Slot] = {}

    @property
    def size(self) -> int:
        """Bytes allocated."""
        return int(self._block.numel())

    def lay_out(self, tensors: Mapping[Hashable, torch.Tensor]) -> None:
        """Make room for tensors like these; costs nothing where they are those of the last time."""
        slots, end = {}, 0
        for key, tensor in tensors.items():
            size = tensor.numel() * tensor.element_size()
            clone = torch.empty_like(tensor, device="meta")
            slots[key] = Slot(end, size, tensor.dtype, tuple(tensor.shape), clone.stride())
            end += -(-size // ALIGNED) * ALIGNED
        if slots != self._slots:
            self._slots = {}
            if end > self.size:
                self._allocate(end, pinned=any(tensor.is_cuda for tensor in tensors.values()))
            self._slots = slots

    def fill(self, tensors: Mapping[Hashable, torch.Tensor]) -> None:
        """Copy the tensors; when this returns, they may change."""
        with torch.no_grad():
            for key, tensor in tensors.items():
                slot = self._slots[key]
                piece = self._block[slot.offset : slot.offset + slot.size]
                piece.view(slot.dtype).as_strided(slot.shape, slot.stride).copy_(tensor, non_blocking=True)
        if any(tensor.is_cuda for tensor in tensors.values()):
            torch.cuda.current_stream().synchronize()

    def tensor(self, key: Hashable) -> torch.Tensor:
        """The copy of a tensor, which lies in the block; its storage has its size, as writers want it."""
        slot = self._slots[key]
        if not slot.size:
            return torch.empty(slot.shape, dtype=slot.dtype)
        piece: Any = self._block[slot.offset : slot.offset + slot.size].numpy()
        return torch.frombuffer(piece, dtype=slot.dtype).as_strided(slot.shape, slot.stride)

    def _allocate(self, size: int, *, pinned: bool) -> None:
        self._block = torch.empty(0, dtype=torch.uint8)  # the old one goes before the new one comes
        if self._file is None:
            self._block = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
        else:
            os.ftruncate(self._file, size)
            self._block = torch.frombuffer(mmap.mmap(self._file, size), dtype=torch.uint8)
        self._block.zero_()  # the faults are taken here

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to see the same memory."""
        if self._file is None:
            raise TypeError("the memory of this arena is not shared")
        return {
            "place": f"/proc/{os.getpid()}/fd/{self._file}",
            "size": self.size,
            "slots": self._slots,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """See the memory of the process that made it."""
        self._file, self._slots = None, state["slots"]
        self._block = torch.empty(0, dtype=torch.uint8)
        if state["size"]:
            with Path(state["place"]).open("r+b") as file:
                self._block = torch.frombuffer(mmap.mmap(file.fileno(), state["size"]), dtype=torch.uint8)

    def __del__(self) -> None:
        """Give the memory back."""
        if self._file is not None:
            os.close(self._file)
