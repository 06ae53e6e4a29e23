"""The state of a rank at one moment, and the planner that has it written instead of the live one.

What a rank would save is asked of torch's own planner: write items for tensors, shards of sharded and
distributed tensors, and objects. Their values are copied by item, so any kind of tensor that torch can
save can be copied, and what is written is what a blocking save at that moment had written.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.distributed.checkpoint import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan, WriteItem

from ett_trainer_hooks.pipeline.checkpoint.arena import Arena
from ett_trainer_hooks.recording.spans import describe

Key = tuple[str, tuple[int, ...] | None]
Tensors = dict[Hashable, torch.Tensor]


class Snapshot:
    """The copies of one save: tensors in an arena, objects as the bytes that are written.

    `rest`: tensors that are yet to be copied.
    """

    def __init__(self, plan: SavePlan, arena: Arena, objects: dict[Key, bytes], rest: Tensors) -> None:
        self.plan = plan
        self._arena = arena
        self._objects = objects
        self._rest = rest

    @property
    def complete(self) -> bool:
        """Everything is copied."""
        return not self._rest

    def copy_rest(self) -> None:
        """Copy what has been left for later."""
        rest, self._rest = self._rest, {}
        self._arena.fill(rest)

    def value(self, item: WriteItem) -> torch.Tensor | io.BytesIO:
        """What is to be written for an item."""
        key = _key(item.index)
        return io.BytesIO(self._objects[key]) if key in self._objects else self._arena.tensor(key)


def snapshot(
    state: Mapping[str, Any],
    arena: Arena,
    *,
    leads: bool,
    may_wait: Callable[[torch.Tensor], bool] = lambda _: False,
) -> Snapshot:
    """Copy what this rank would save of a state; when this returns, what may not wait may change.

    `leads`: this rank coordinates the save.
    """
    live = DefaultSavePlanner()
    live.set_up_planner(dict(state), is_coordinator=leads)
    plan = live.create_local_plan()
    values = {_key(item.index): live.resolve_data(item) for item in plan.items}
    tensors: Tensors = {
        key: value.detach() for key, value in values.items() if isinstance(value, torch.Tensor)
    }
    objects = {key: value.getvalue() for key, value in values.items() if isinstance(value, io.BytesIO)}
    rest = {key: tensor for key, tensor in tensors.items() if may_wait(tensor)}
    arena.lay_out(tensors)
    arena.fill({key: tensor for key, tensor in tensors.items() if key not in rest})
    return Snapshot(plan, arena, objects, rest)


class SnapshotPlanner(DefaultSavePlanner):  # type: ignore[misc] # torch is not seen by mypy
    """Saves a snapshot; the state dict that torch passes is not looked at."""

    def __init__(self, taken: Snapshot) -> None:
        super().__init__()
        self.taken = taken

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: object = None,
        is_coordinator: bool = False,  # noqa: FBT001, FBT002 - as torch's
    ) -> None:
        """As torch's."""
        del state_dict, storage_meta
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        """As torch's: the plan of the moment of the snapshot."""
        self.plan = replace(self.taken.plan)
        return self.plan

    def resolve_data(self, write_item: WriteItem) -> torch.Tensor | io.BytesIO:
        """As torch's: from the copies."""
        return self.taken.value(write_item)


class UnsavableError(Exception):
    """A state that cannot be saved, and why; fit to be sent to the other ranks, whatever was raised."""


class LivePlanner(DefaultSavePlanner):  # type: ignore[misc] # torch is not seen by mypy
    """Saves a state as it is when it is written; the state dict that torch passes is not looked at."""

    def __init__(self, state: dict[str, Any]) -> None:
        super().__init__()
        self._live = state

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: object = None,
        is_coordinator: bool = False,  # noqa: FBT001, FBT002 - as torch's
    ) -> None:
        """As torch's."""
        del state_dict
        super().set_up_planner(self._live, storage_meta, is_coordinator)

    def resolve_data(self, write_item: WriteItem) -> torch.Tensor | io.BytesIO:
        """As torch's."""
        try:
            return super().resolve_data(write_item)
        except Exception as error:
            raise UnsavableError(describe(error)) from error


class FailedPlanner(DefaultSavePlanner):  # type: ignore[misc] # torch is not seen by mypy
    """Tells all ranks that this one has nothing to save, and why: none waits for it, none commits."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def create_local_plan(self) -> SavePlan:
        """As torch's."""
        raise UnsavableError(describe(self._error)) from self._error


def _key(index: MetadataIndex) -> Key:
    return index.fqn, None if index.offset is None else tuple(index.offset)
