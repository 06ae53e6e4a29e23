"""What a sharding plan costs a start: made by TorchRec's planner and broadcast, and used again from a store.

In turns in the same processes, each time with a new planner and model.

    python benchmarks/pipeline/stored_plan/run.py --ranks 2 --tables 26 100 200 --pairs 5
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.collectives import CollectiveCount
from ett_trainer_hooks.pipeline.plan_store import PlanStore, stored_plan

WAYS = ("made", "used again")
CALLS = ("broadcast_object_list", "all_reduce")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--tables", type=int, nargs="+", default=[26, 100, 200])
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    print("| ranks | tables | made and broadcast, s | used again, s | times | broadcasts | all-reduces |")
    print("|---|---|---|---|---|---|---|")
    for ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as folder:
            given = (ranks, arguments.tables, arguments.pairs, folder)
            processes.spawn(rank_main, given, nprocs=ranks)
            for tables, measured in json.loads((Path(folder) / "measured").read_text()).items():
                print(row(ranks, tables, measured), flush=True)


def row(ranks: int, tables: str, measured: dict[str, list[dict[str, float]]]) -> str:
    made, used = ([each["seconds"] for each in measured[way]] for way in WAYS)
    ratios = [a / b for a, b in zip(made, used, strict=True)]
    calls = [" to ".join(f"{measured[way][0][name]:.0f}" for way in WAYS) for name in CALLS]
    cells = [ranks, tables, spread(made, 3), spread(used, 3), spread(ratios, 1), *calls]
    return f"| {' | '.join(map(str, cells))} |"


def spread(values: list[float], digits: int) -> str:
    low, middle, high = (
        f"{each:.{digits}f}" for each in (min(values), statistics.median(values), max(values))
    )
    return f"{middle} ({low} to {high})"


def rank_main(rank: int, ranks: int, tables: list[int], pairs: int, folder: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    os.environ["LOCAL_RANK"] = str(rank)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    found = {}
    for count in tables:
        plan_once(count, folder, stored=True)  # the start that stores it
        found[count] = {way: [] for way in WAYS}
        for pair in range(pairs):
            for way in WAYS if pair % 2 else reversed(WAYS):
                found[count][way].append(plan_once(count, folder, stored=way == "used again"))
    if rank == 0:
        (Path(folder) / "measured").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def plan_once(count: int, folder: str, *, stored: bool) -> dict[str, float]:
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
        if stored:
            stored_plan(planner, module, sharders, store=PlanStore(f"{folder}/plans"), recorder=recorder)
        else:
            planner.collective_plan(module, sharders, dist.group.WORLD)
        seconds = torch.tensor([time.perf_counter() - began_s], dtype=torch.float64)
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    return {"seconds": float(seconds), **{name: calls.calls.get(name, 0) for name in CALLS}}


if __name__ == "__main__":
    sys.exit(main())
