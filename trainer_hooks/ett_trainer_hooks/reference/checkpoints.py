"""Checkpoints that a kill at any moment cannot spoil: a directory a step, the name last.

Every rank calls `save`, `newest` and `load` together. All write their part into `step_N.partial` with
torch.distributed.checkpoint, whose metadata file comes last; then rank 0 renames the directory
to `step_N`, which makes the checkpoint exist, and lets `latest` point to it. A directory with
another name, without metadata or with a data file that is too short is no checkpoint.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException

from ett_trainer_hooks.pipeline.durable import sync_folder

_NAME = re.compile(r"step_(\d+)")


class CheckpointStore:
    """The checkpoints under one directory that all ranks share; `keep` of them stay."""

    def __init__(self, root: Path, *, keep: int) -> None:
        self._root = root
        self._keep = keep

    def save(self, step: int, state: Mapping[str, Any]) -> int | None:
        """Write the state of all ranks; returns its bytes on rank 0, where it is then durable."""
        partial, final = self._root / f"step_{step}.partial", self._root / f"step_{step}"
        leads = dist.get_rank() == 0
        if leads:
            self._root.mkdir(parents=True, exist_ok=True)
            for left_over in (*self._root.glob("*.partial"), final):
                shutil.rmtree(left_over, ignore_errors=True)
        dist.barrier()
        dcp.save({**state, "step": step}, checkpoint_id=partial)
        if not leads:
            return None
        partial.replace(final)
        _point(self._root / "latest", final.name)
        sync_folder(self._root)
        self._retire()
        return sum(file.stat().st_size for file in final.iterdir())

    def newest(self) -> int:
        """The step of the newest intact checkpoint, which rank 0 finds for all; 0 without one."""
        newest = [next(iter(intact_steps(self._root)), 0) if dist.get_rank() == 0 else 0]
        dist.broadcast_object_list(newest, src=0)
        return newest[0]

    def load(self, step: int, state: dict[str, Any]) -> None:
        """Read the checkpoint of `step` into the tensors of `state`."""
        dcp.load(state, checkpoint_id=self._root / f"step_{step}")

    def _retire(self) -> None:
        leaving = steps(self._root)[self._keep :]
        for step in set(leaving) - _handed_over(self._root):
            shutil.rmtree(self._root / f"step_{step}")


def _handed_over(root: Path) -> set[int]:
    """Steps whose checkpoints are still to be published."""
    if not (root / "publish").is_dir():
        return set()
    from ett_trainer_hooks.pipeline.publishing.handover import anchors_in_use  # noqa: PLC0415 - an extra

    return set(anchors_in_use(root, time.time()).values())


def steps(root: Path) -> list[int]:
    """Steps that have a directory under their final name, newest first."""
    names = [_NAME.fullmatch(entry.name) for entry in root.iterdir()] if root.is_dir() else []
    return sorted((int(match[1]) for match in names if match), reverse=True)


def intact_steps(root: Path) -> list[int]:
    """Steps whose checkpoint has its metadata and all the bytes it speaks of, newest first."""
    return [step for step in steps(root) if is_intact(root / f"step_{step}")]


def is_intact(directory: Path) -> bool:
    """Whether every data file that the metadata names is there at its length."""
    try:
        metadata = dcp.FileSystemReader(directory).read_metadata()
    except (OSError, EOFError, UnpicklingError, CheckpointException):
        return False
    return all(
        _size(directory / part.relative_path) >= part.offset + part.length
        for part in (metadata.storage_data or {}).values()
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1


def _point(link: Path, target: str) -> None:
    fresh = link.with_name(link.name + ".new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
