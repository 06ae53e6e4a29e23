"""What a sharding plan costs a start: made by TorchRec's planner and broadcast, and used again from a store.

In turns in the same processes, each time with a new planner and model.

    python benchmarks/pipeline/sharding/plan.py --ranks 2 --tables 26 100 200 --pairs 5
"""

from __future__ import annotations

import time
from pathlib import Path

import torch
import torch.distributed as dist
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from turns import Duel, Measured, Table, Turn, counted

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.collectives import CollectiveCount
from ett_trainer_hooks.pipeline.plan_store import PlanStore, stored_plan

CALLS = ("broadcast_object_list", "all_reduce")
TITLES = ("made and broadcast, s", "used again, s", "times less, by pair", "broadcasts", "all-reduces")


def plan(count: int, way: str, folder: Path) -> Turn:
    """Seconds until the slowest rank has its plan, and the calls that it took."""
    configs = [
        EmbeddingBagConfig(
            name=f"t{i}", embedding_dim=16, num_embeddings=1000 + 7 * i, feature_names=[f"f{i}"]
        )
        for i in range(count)
    ]
    module = EmbeddingBagCollection(tables=configs, device=torch.device("meta"))
    sharders = [EmbeddingBagCollectionSharder()]
    planner = EmbeddingShardingPlanner(
        topology=Topology(world_size=dist.get_world_size(), compute_device="cpu")
    )
    recorder = Recorder.from_env({})
    dist.barrier()
    with CollectiveCount() as calls:
        began_s = time.perf_counter()
        if way == "made":
            planner.collective_plan(module, sharders, dist.group.WORLD)
        else:
            stored_plan(planner, module, sharders, store=PlanStore(f"{folder}/plans"), recorder=recorder)
        seconds = time.perf_counter() - began_s
    return counted(calls, CALLS, plan_s=seconds)


def warm_up(count: int, folder: Path) -> None:
    """The start that stores the plan."""
    plan(count, "used again", folder)


def cells(measured: Measured) -> list[str]:
    """A row of the table."""
    return [*measured.both("plan_s", 3), *measured.calls(CALLS)]


if __name__ == "__main__":
    duel = Duel(("made", "used again"), plan, warm_up)
    Table(__doc__ or "", TITLES, cells, ranks=[2], tables=[26, 100, 200]).fill(duel)
