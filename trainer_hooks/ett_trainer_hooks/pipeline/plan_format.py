"""A sharding plan as JSON and back: data only, nothing in it is ever executed.

What has no place in the format (statistics of a cache, parameters of key-value tables, a kind of
sharding spec other than a list of shards) makes a plan one that is not stored.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec
from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.types import (
    BoundsCheckMode,
    CacheAlgorithm,
    CacheParams,
    EmbeddingModuleShardingPlan,
    EnumerableShardingSpec,
    ParameterSharding,
    ShardingPlan,
    ShardingType,
    ShardMetadata,
)
from torchrec.modules.embedding_configs import DataType


class StoredShard(msgspec.Struct, frozen=True):
    """Where one piece of a table lies: rows and columns, and `rank:R/device`."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    placement: str


class StoredCache(msgspec.Struct, frozen=True, omit_defaults=True):
    """How rows of a table are cached; enums by name."""

    algorithm: str | None = None
    load_factor: float | None = None
    reserved_memory: float | None = None
    precision: str | None = None
    prefetch_pipeline: bool | None = None


class StoredTable(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one table is sharded; without shards where each rank has all of it."""

    sharding_type: str
    compute_kernel: str
    ranks: tuple[int, ...] | None = None
    shards: tuple[StoredShard, ...] | None = None
    cache: StoredCache | None = None
    enforce_hbm: bool | None = None
    stochastic_rounding: bool | None = None
    bounds_check_mode: str | None = None
    output_dtype: str | None = None


Tables = dict[str, dict[str, StoredTable]]
"""Path of a module to table to how it is sharded."""


def stored(plan: ShardingPlan) -> Tables:
    """The plan as plain data.

    Raises:
        ValueError: something in it has no place in the format; says what.
    """
    tables = {
        path: {name: _table(name, sharding) for name, sharding in module.items()}
        for path, module in plan.plan.items()
    }
    if restored(tables) != plan:
        raise ValueError("it does not come back as it was")
    return tables


def restored(tables: Tables) -> ShardingPlan:
    """The plan that plain data describe.

    Raises:
        ValueError: a name in it is unknown to this torchrec, or shards overlap.
    """
    return ShardingPlan(
        {
            path: EmbeddingModuleShardingPlan({name: _sharding(table) for name, table in module.items()})
            for path, module in tables.items()
        }
    )


def _table(name: str, sharding: ParameterSharding) -> StoredTable:
    spec = sharding.sharding_spec
    if sharding.key_value_params is not None:
        raise ValueError(f"table {name} has parameters of a key-value store")
    if spec is not None and type(spec) is not EnumerableShardingSpec:
        raise ValueError(f"table {name} is placed by a {type(spec).__name__}")
    return StoredTable(
        sharding_type=sharding.sharding_type,
        compute_kernel=sharding.compute_kernel,
        ranks=None if sharding.ranks is None else tuple(sharding.ranks),
        shards=None if spec is None else tuple(map(_shard, spec.shards)),
        cache=None if sharding.cache_params is None else _cache(name, sharding.cache_params),
        enforce_hbm=sharding.enforce_hbm,
        stochastic_rounding=sharding.stochastic_rounding,
        bounds_check_mode=_name(sharding.bounds_check_mode),
        output_dtype=_name(sharding.output_dtype),
    )


def _shard(shard: ShardMetadata) -> StoredShard:
    return StoredShard(tuple(shard.shard_offsets), tuple(shard.shard_sizes), str(shard.placement))


def _cache(name: str, params: CacheParams) -> StoredCache:
    if params.stats is not None or params.multipass_prefetch_config is not None:
        raise ValueError(f"table {name} has statistics or several passes for its cache")
    return StoredCache(
        algorithm=_name(params.algorithm),
        load_factor=params.load_factor,
        reserved_memory=params.reserved_memory,
        precision=_name(params.precision),
        prefetch_pipeline=params.prefetch_pipeline,
    )


def _sharding(table: StoredTable) -> ParameterSharding:
    shards = table.shards
    return ParameterSharding(
        sharding_type=ShardingType(table.sharding_type).value,
        compute_kernel=EmbeddingComputeKernel(table.compute_kernel).value,
        ranks=None if table.ranks is None else list(table.ranks),
        sharding_spec=None if shards is None else EnumerableShardingSpec(list(map(_metadata, shards))),
        cache_params=None if table.cache is None else _params(table.cache),
        enforce_hbm=table.enforce_hbm,
        stochastic_rounding=table.stochastic_rounding,
        bounds_check_mode=_member(BoundsCheckMode, table.bounds_check_mode),
        output_dtype=_member(DataType, table.output_dtype),
    )


def _metadata(shard: StoredShard) -> ShardMetadata:
    return ShardMetadata(list(shard.offsets), list(shard.sizes), shard.placement)


def _params(cache: StoredCache) -> CacheParams:
    return CacheParams(
        algorithm=_member(CacheAlgorithm, cache.algorithm),
        load_factor=cache.load_factor,
        reserved_memory=cache.reserved_memory,
        precision=_member(DataType, cache.precision),
        prefetch_pipeline=cache.prefetch_pipeline,
    )


def _name(member: Enum | None) -> str | None:
    return None if member is None else member.name


def _member(kind: Any, name: str | None) -> Any:  # noqa: ANN401 - an enum of torchrec and its member
    if name is not None and name not in kind.__members__:
        raise ValueError(f"{name} is no {kind.__name__}")
    return None if name is None else kind[name]
