"""What the metadata of sharded tables costs a start: gathered table by table, and built from the plan.

Both ways in turns in the same processes; the former is TorchRec's own.

    python benchmarks/pipeline/sharding/metadata.py --ranks 2 4 --tables 10 100 1000 --pairs 5
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torchrec import EmbeddingCollection, EmbeddingConfig
from torchrec.distributed.embedding import EmbeddingCollectionSharder, ShardedEmbeddingCollection
from torchrec.distributed.sharding_plan import construct_module_sharding_plan, row_wise, table_wise
from torchrec.distributed.types import ShardingEnv
from turns import Duel, Measured, Table, Turn, counted

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.collectives import CollectiveCount
from ett_trainer_hooks.pipeline.shard_metadata import local_metadata

METHOD = "_initialize_torch_state"
CALLS = ("all_gather_object", "all_reduce")
TITLES = ("gathered, s", "built, s", "times less, by pair", "gathers", "all-reduces", "the whole sharding, s")


def shard(count: int, way: str, folder: Path) -> Turn:
    """Seconds until all ranks have sharded a collection, those for its tensors' state, and the calls."""
    del folder
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
    context = local_metadata(Recorder.from_env({})) if way == "built" else contextlib.nullcontext()
    dist.barrier()
    with CollectiveCount() as calls, context, timed(ShardedEmbeddingCollection) as state:
        began_s = time.perf_counter()
        sharder.shard(module, plan, env, torch.device("cpu"))
        whole_s = time.perf_counter() - began_s
    return counted(calls, CALLS, metadata_s=state[0], whole_s=whole_s)


def warm_up(count: int, folder: Path) -> None:
    """What is only done once a process."""
    del count
    shard(2, "built", folder)


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


def cells(measured: Measured) -> list[str]:
    """A row of the table."""
    return [*measured.both("metadata_s", 4), *measured.calls(CALLS), measured.medians("whole_s")]


if __name__ == "__main__":
    duel = Duel(("gathered", "built"), shard, warm_up)
    Table(__doc__ or "", TITLES, cells, ranks=[2, 4], tables=[10, 100, 1000]).fill(duel)
