"""Two ranks that start again and again with stored plans: in a fit, apart, with damage."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from gloo_ranks import answer, join
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology

from ett_trainer_hooks.pipeline.collectives import CollectiveCount
from ett_trainer_hooks.pipeline.plan_store import PlanStore, stored_plan


class Told:
    """What the part told, in place of a recorder."""

    def __init__(self) -> None:
        self.decisions = []

    def decision(self, what, why, values):
        self.decisions.append([what, why, values])


def start(root, rows=1000):
    """One start: the plan, what was told, the collectives that it took."""
    tables = [
        EmbeddingBagConfig(name=f"t{i}", embedding_dim=8, num_embeddings=rows, feature_names=[f"f{i}"])
        for i in range(3)
    ]
    collection = EmbeddingBagCollection(tables=tables, device=torch.device("meta"))
    planner = EmbeddingShardingPlanner(topology=Topology(world_size=2, compute_device="cpu"))
    told = Told()
    dist.barrier()  # the first rank of a host keeps the plan of a start before any rank begins the next one
    with CollectiveCount() as count:
        plan = stored_plan(
            planner, collection, [EmbeddingBagCollectionSharder()], store=PlanStore(str(root)), recorder=told
        )
    calls = {name: count.calls.get(name, 0) for name in ("all_reduce", "broadcast_object_list")}
    return {"plan": str(plan), "told": told.decisions, "calls": calls}


rank = join()
shared = Path(sys.argv[1])
runs = {
    "first": start(shared / "one"),
    "again": start(shared / "one"),
    "other tables": start(shared / "one", rows=2000),
    "apart": start(shared / f"apart{min(rank, 1)}" if rank else shared / "one"),
}
if rank == 1:
    os.environ["LOCAL_RANK"] = "0"  # the first rank of a host of its own
runs["a host of its own"] = start(shared / f"host{rank}")
runs["both hosts again"] = start(shared / f"host{rank}")
if rank == 1:
    path = next((shared / "host1").glob("plan-*.json"))
    path.write_bytes(
        path.read_bytes().replace(b"table_wise", b"table_wize").replace(b"row_wise", b"row_wize")
    )
runs["damaged on one"] = start(shared / f"host{rank}")
runs["mended"] = start(shared / f"host{rank}")
answer(runs)
