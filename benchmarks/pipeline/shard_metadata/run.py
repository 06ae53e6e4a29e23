"""What the metadata of sharded tables costs a start: gathered table by table, and built from the plan.

Both ways in turns in the same processes; the former is TorchRec's own.

    python benchmarks/pipeline/shard_metadata/run.py --ranks 2 4 --tables 10 100 1000 --pairs 5
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torchrec import EmbeddingCollection, EmbeddingConfig
from torchrec.distributed.embedding import EmbeddingCollectionSharder, ShardedEmbeddingCollection
from torchrec.distributed.sharding_plan import construct_module_sharding_plan, row_wise, table_wise
from torchrec.distributed.types import ShardingEnv

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.collectives import CollectiveCount
from ett_trainer_hooks.pipeline.shard_metadata import local_metadata

METHOD = "_initialize_torch_state"
WAYS = ("gathered", "built")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--tables", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    print("| ranks | tables | gathered, s | built, s | times | gathers | all-reduces | of the sharding, s |")
    print("|---|---|---|---|---|---|---|---|")
    for ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as folder:
            given = (ranks, arguments.tables, arguments.pairs, folder)
            processes.spawn(rank_main, given, nprocs=ranks)
            for tables, measured in json.loads((Path(folder) / "measured").read_text()).items():
                print(row(ranks, tables, measured), flush=True)


def row(ranks: int, tables: str, measured: dict[str, list[dict[str, float]]]) -> str:
    gathered, built = ([each["metadata_s"] for each in measured[way]] for way in WAYS)
    ratios = [a / b for a, b in zip(gathered, built, strict=True)]
    calls = [
        " to ".join(f"{measured[way][0][name]:.0f}" for way in WAYS)
        for name in ("all_gather_object", "all_reduce")
    ]
    whole = [f"{statistics.median(each['whole_s'] for each in measured[way]):.3f}" for way in WAYS]
    cells = [ranks, tables, spread(gathered), spread(built), spread(ratios, 1), *calls, " to ".join(whole)]
    return f"| {' | '.join(map(str, cells))} |"


def spread(values: list[float], digits: int = 4) -> str:
    low, middle, high = (
        f"{each:.{digits}f}" for each in (min(values), statistics.median(values), max(values))
    )
    return f"{middle} ({low} to {high})"


def rank_main(rank: int, ranks: int, tables: list[int], pairs: int, folder: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    os.environ["LOCAL_WORLD_SIZE"] = str(ranks)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    found = {}
    for count in tables:
        shard_once(2, built=True)  # what is only done once a process
        found[count] = {way: [] for way in WAYS}
        for pair in range(pairs):
            for way in WAYS if pair % 2 else reversed(WAYS):
                found[count][way].append(shard_once(count, built=way == "built"))
    if rank == 0:
        (Path(folder) / "measured").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def shard_once(count: int, *, built: bool) -> dict[str, float]:
    """Seconds until all ranks have sharded a collection, those for its tensors' state, and the calls."""
    ranks = dist.get_world_size()
    configs = [
        EmbeddingConfig(name=f"t{i}", embedding_dim=4, num_embeddings=64, feature_names=[f"f{i}"])
        for i in range(count)
    ]
    module = EmbeddingCollection(tables=configs, device=torch.device("meta"))
    sharder = EmbeddingCollectionSharder()
    places = {f"t{i}": row_wise() if i % 2 else table_wise(rank=i // 2 % ranks) for i in range(count)}
    plan = construct_module_sharding_plan(module, places, sharder, local_size=ranks, device_type="cpu")
    env = ShardingEnv.from_process_group(dist.group.WORLD)
    context = local_metadata(Recorder.from_env({})) if built else contextlib.nullcontext()
    dist.barrier()
    with CollectiveCount() as calls, context, timed(ShardedEmbeddingCollection) as state:
        began_s = time.perf_counter()
        sharder.shard(module, plan, env, torch.device("cpu"))
        whole_s = time.perf_counter() - began_s
    slowest = torch.tensor([state[0], whole_s], dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    names = ("all_gather_object", "all_reduce")
    return {
        "metadata_s": float(slowest[0]),
        "whole_s": float(slowest[1]),
        **{name: calls.calls.get(name, 0) for name in names},
    }


@contextlib.contextmanager
def timed(kind: type) -> Iterator[list[float]]:
    """Seconds in the method that makes the sharded tensors of a module, as they add up."""
    method = vars(kind)[METHOD]
    seconds = [0.0]

    def measured(*arguments: object, **named: object) -> None:
        began_s = time.perf_counter()
        method(*arguments, **named)
        seconds[0] += time.perf_counter() - began_s

    setattr(kind, METHOD, measured)
    try:
        yield seconds
    finally:
        setattr(kind, METHOD, method)


if __name__ == "__main__":
    sys.exit(main())
