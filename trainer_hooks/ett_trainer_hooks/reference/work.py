"""What the stages of the reference trainer's start do: everything here needs torch and TorchRec.

Importing this module is itself a stage, as it takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
import torch.distributed as dist
from torchrec.distributed.types import ShardingPlan

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.guard import type_and_text
from ett_trainer_hooks.pipeline.checkpoint import sole_writer
from ett_trainer_hooks.pipeline.checkpoint.policy import CheckpointPolicy
from ett_trainer_hooks.pipeline.fast_batch import FastBatch
from ett_trainer_hooks.pipeline.plan_store import PlanStore, stored_plan
from ett_trainer_hooks.pipeline.shard_metadata import local_metadata
from ett_trainer_hooks.pipeline.takes import Lease, Start
from ett_trainer_hooks.reference import criteo, model
from ett_trainer_hooks.reference.keepers import Keeper, Waiting
from ett_trainer_hooks.reference.loop import Loop
from ett_trainer_hooks.reference.prefetch import Prefetcher
from ett_trainer_hooks.reference.settings import Settings

__all__ = [
    "Loop",
    "build",
    "claim",
    "device",
    "fast_batch",
    "join_ranks",
    "keeper",
    "local_metadata",
    "model",
    "part",
    "plan_again",
    "reader",
]


def device() -> torch.device:
    """The device of this rank, with one core for it."""
    torch.set_num_threads(1)
    return torch.device("cpu")


def join_ranks(leaving: ExitStack) -> None:
    """The process group of all ranks, until `leaving` closes."""
    dist.init_process_group("gloo")
    leaving.callback(dist.destroy_process_group)


def build(settings: Settings, on: torch.device) -> torch.nn.Module:
    """The model, its dense parts marked for compilation, which comes with the first step."""
    dlrm = model.build(settings, on)
    if settings.compile:
        model.compile_dense_parts(dlrm, settings.backend)
    return dlrm


def fast_batch(settings: Settings, recorder: Recorder) -> FastBatch:
    """What compiles the dense parts with a made-up batch."""
    forward = model.dense_forward(settings)
    return FastBatch(model.batch_spec(settings), forward, recorder, {"backend": settings.backend})


def plan_again(dlrm: torch.nn.Module, on: torch.device, address: str, recorder: Recorder) -> ShardingPlan:
    """The sharding plan of an earlier start that lies at `address`, or a new one."""
    planner = model.planner(on)
    return stored_plan(planner, dlrm, model.sharders(), store=PlanStore(address), recorder=recorder)


def claim(settings: Settings, recorder: Recorder) -> Lease | None:
    """Keep other starts from writing to the same checkpoints; the first rank does, where its disk takes it.

    Raises:
        OccupiedError: another one does already.
    """
    start = _start(recorder) if settings.uses("async_checkpoint") and not settings.checkpoint_disk else None
    if dist.get_rank() != 0:
        return None
    try:
        return sole_writer.claim(settings.saves_to, recorder, start=start)
    except OSError as error:
        what = "nothing keeps another start from writing to the same checkpoints"
        recorder.decision(what, type_and_text(error))
        return None


def _start(recorder: Recorder) -> Start | None:
    """Which start of its job this is, by whichever rank has seen most of them: a new node has seen none."""
    mine = sole_writer.this_start(recorder)
    latest = torch.tensor([-1, -1] if mine is None else mine)
    dist.all_reduce(latest, dist.ReduceOp.MAX)
    return Start(*latest.tolist()) if mine is not None else None


def keeper(
    settings: Settings,
    recorder: Recorder,
    policy: CheckpointPolicy,
    lease: Lease | None,
    leaving: ExitStack,
) -> Keeper:
    """What saves the learner, until `leaving` closes; then another start may have what is claimed."""
    made: Keeper = Waiting(settings, recorder, policy)
    if settings.uses("async_checkpoint"):
        from ett_trainer_hooks.reference.beside import Beside  # noqa: PLC0415 - needs an extra

        made = Beside(settings, recorder, policy, lease)

    def close() -> None:
        if made.close() and lease is not None:  # a disk that hangs would hang here, too
            lease.release()

    leaving.callback(close)
    return made


def reader(
    make: Callable[[int], criteo.Samples], first: int, end: int, leaving: ExitStack
) -> Prefetcher[Any]:
    """Batches from step `first` on, made ahead until `leaving` closes; the first lies ready."""
    batches = Prefetcher(lambda step: model.as_batch(make(step)), first=first, end=end)
    leaving.enter_context(batches)
    batches.warm_up()
    return batches


def part() -> None:
    """Wait for the other ranks, so that none closes what another still uses."""
    dist.barrier()
