"""Ranks that shard collections of every kind, with metadata gathered and built locally, and compare."""

from __future__ import annotations

import contextlib
import warnings

import torch
import torch.distributed as dist
from gloo_ranks import answer, join
from torchrec import EmbeddingCollection, EmbeddingConfig
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.mc_embedding import ManagedCollisionEmbeddingCollectionSharder
from torchrec.distributed.sharding_plan import (
    column_wise,
    construct_module_sharding_plan,
    data_parallel,
    row_wise,
    table_row_wise,
    table_wise,
)
from torchrec.distributed.types import Shard, ShardedTensor, ShardingEnv
from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.modules.mc_embedding_modules import ManagedCollisionEmbeddingCollection
from torchrec.modules.mc_modules import (
    DistanceLFU_EvictionPolicy,
    ManagedCollisionCollection,
    MCHManagedCollisionModule,
)

from ett_trainer_hooks.pipeline import shard_metadata
from ett_trainer_hooks.pipeline.collectives import CollectiveCount
from ett_trainer_hooks.pipeline.shard_forecast import Forecast, Foretold
from ett_trainer_hooks.pipeline.shard_metadata import local_metadata

warnings.simplefilter("ignore")
ROWS, WIDTH, HOST = 40, 16, 2


class Told:
    """What was decided, in place of a recorder."""

    def __init__(self) -> None:
        self.decisions = []

    def decision(self, what, why, values=None):
        self.decisions.append([what, why, int((values or {}).get("tensors", -1))])


def configs(kind, count, data_type=DataType.FP32):
    return [
        kind(
            name=f"t{i}",
            embedding_dim=WIDTH,
            num_embeddings=ROWS + i,
            feature_names=[f"f{i}"],
            data_type=data_type,
        )
        for i in range(count)
    ]


def collection(plans, data_type=DataType.FP32):
    """A collection with a table a plan, and its sharding plan."""
    module = EmbeddingCollection(
        tables=configs(EmbeddingConfig, len(plans), data_type), device=torch.device("meta")
    )
    sharder = EmbeddingCollectionSharder()
    each = {f"t{i}": plan for i, plan in enumerate(plans)}
    plan = construct_module_sharding_plan(module, each, sharder, local_size=HOST, device_type="cpu")
    return module, sharder, plan


def managed(count):
    """A collection with managed collisions: two buffers a table."""
    tables = configs(EmbeddingConfig, count)
    collisions = {
        table.name: MCHManagedCollisionModule(
            zch_size=table.num_embeddings,
            device=torch.device("cpu"),
            eviction_interval=2,
            eviction_policy=DistanceLFU_EvictionPolicy(),
        )
        for table in tables
    }
    module = ManagedCollisionEmbeddingCollection(
        EmbeddingCollection(tables=tables, device=torch.device("meta")),
        ManagedCollisionCollection(collisions, tables),
    )
    sharder = ManagedCollisionEmbeddingCollectionSharder()
    each = {table.name: row_wise() for table in tables}
    plan = construct_module_sharding_plan(module, each, sharder, local_size=HOST, device_type="cpu")
    return module, sharder, plan


def shard(make, context):
    """The sharded tensors of a collection by name, and the gathers that they took."""
    module, sharder, plan = make()
    environment = ShardingEnv.from_process_group(dist.group.WORLD)
    with CollectiveCount() as count, context:
        sharded = sharder.shard(module, plan, environment, torch.device("cpu"))
    tensors = {name: each for name, each in sharded.state_dict().items() if isinstance(each, ShardedTensor)}
    return tensors, {name: count.calls.get(name, 0) for name in ("all_gather_object", "all_reduce")}


def differences(gathered, built):
    """What two sharded tensors do not have in common."""
    facts = {
        "metadata": lambda tensor: tensor.metadata(),
        "spec": lambda tensor: tensor.sharding_spec(),
        "shards": lambda tensor: [(shard.metadata, shard.tensor.shape) for shard in tensor.local_shards()],
        "dtype": lambda tensor: tensor.dtype,
        "size": lambda tensor: tensor.size(),
        "grad": lambda tensor: tensor.requires_grad,
        "group": lambda tensor: tensor._process_group,
        "type": type,
    }
    return [name for name, tell in facts.items() if tell(gathered) != tell(built)]


def compared(make):
    """Both ways side by side."""
    told = Told()
    gathered, plainly = shard(make, contextlib.nullcontext())
    built, ours = shard(make, local_metadata(told))
    same = {name: differences(each, built[name]) for name, each in gathered.items()}
    return {
        "names": list(built) == list(gathered),
        "differences": same,
        "plain": plainly,
        "ours": ours,
        "told": told.decisions,
    }


def table_row_wise_tensor():
    """A table in row blocks on one host, which embedding collections do not know: tensor by tensor."""
    module = EmbeddingBagCollection(tables=configs(EmbeddingBagConfig, 1), device=torch.device("meta"))
    plan = construct_module_sharding_plan(
        module,
        {"t0": table_row_wise(host_index=dist.get_world_size() // HOST - 1)},
        EmbeddingBagCollectionSharder(),
        local_size=HOST,
        device_type="cuda",
    )
    shards = [
        type(each)(each.shard_offsets, each.shard_sizes, f"rank:{each.placement.rank()}/cpu")
        for each in plan["t0"].sharding_spec.shards
    ]
    local = [
        Shard(torch.zeros(each.shard_sizes), each)
        for each in shards
        if each.placement.rank() == dist.get_rank()
    ]
    gather = ShardedTensor._init_from_local_shards
    group = dist.group.WORLD
    forecast = Forecast(group, gather)
    built = forecast.take(lambda: Foretold(shards, torch.float32), local, (ROWS, WIDTH), process_group=group)
    settled = forecast.settle()
    gathered = gather(local, (ROWS, WIDTH), process_group=group)
    return {"differences": differences(gathered, built), "settled": len(settled), "reason": forecast.reason}


def wrong_here(on, plan):
    """One rank takes its tables for those of another type; all are told."""

    def make():
        return collection([plan])

    told = Told()
    gathered, _ = shard(make, contextlib.nullcontext())
    original = shard_metadata.data_type_to_dtype
    if dist.get_rank() == on:
        shard_metadata.data_type_to_dtype = lambda _: torch.float16
    built, ours = shard(make, local_metadata(told))
    shard_metadata.data_type_to_dtype = original
    return {
        "differences": [differences(each, built[name]) for name, each in gathered.items()],
        "ours": ours,
        "told": told.decisions,
    }


join()
WORLD = dist.get_world_size()
LAST = WORLD - 1
ways = {
    "table-wise": lambda: collection([table_wise(rank=i) for i in (LAST, 0, LAST // 2)]),
    "row-wise": lambda: collection([row_wise()] * 3),
    "column-wise": lambda: collection(
        [column_wise(ranks=[0, 1, LAST - 1, LAST]), column_wise(ranks=[LAST, 1, LAST, 1])]
    ),
    "data-parallel": lambda: collection([data_parallel()] * 2),
    "mixed": lambda: collection(
        [row_wise(), table_wise(rank=LAST), data_parallel(), column_wise(ranks=[1, 0, LAST, LAST - 1])]
    ),
    "half": lambda: collection([row_wise(), table_wise(rank=1)], DataType.FP16),
    "managed": lambda: managed(2),
}
found = {name: compared(make) for name, make in ways.items()}
found["table-row-wise"] = table_row_wise_tensor()
found["wrong, and holds it"] = wrong_here(LAST, table_wise(rank=LAST))
found["wrong, and holds nothing"] = wrong_here(LAST, table_wise(rank=0))
answer(found)
