"""Metadata of sharded tables built on each rank from the plan, where TorchRec gathers it table by table.

TorchRec 1.8.0 does so itself for `EmbeddingBagCollection`, but `EmbeddingCollection` and collections
with managed collisions still take one `all_gather_object` a table (or buffer). Inside the context that
`local_metadata` gives they take one small all-reduce a module instead, and come to equal tensors.

Left to TorchRec, with a `decision` that says why: other versions of it, 2D parallel sharding, DTensor
outputs, tables without a plan (virtual and key-value tables know their size late), one rank alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch.distributed as dist
from torchrec.distributed.embedding import ShardedEmbeddingCollection
from torchrec.distributed.mc_modules import ShardedManagedCollisionCollection
from torchrec.distributed.types import Shard, ShardedTensor, ShardMetadata
from torchrec.modules.embedding_configs import data_type_to_dtype

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.shard_forecast import Forecast, Foretold
from ett_trainer_hooks.recording.versions import installed_versions

CHECKED_WITH = ("1.8.0",)
"""Versions of torchrec whose results this was found to be equal to."""

BUILT = "shard metadata is built locally"
GATHERED = "shard metadata is gathered"

_METHOD = "_initialize_torch_state"
_GATHER = "_init_from_local_shards"

Foretell = Callable[[list[Shard]], Foretold]
"""What is known of the tensor that has these local shards."""


@contextmanager
def local_metadata(recorder: Recorder) -> Iterator[None]:
    """While the context lasts, modules that are sharded build their metadata from the plan.

    All ranks enter it around the same `DistributedModelParallel`. Afterwards TorchRec is as it was.
    """
    version = installed_versions(("torchrec",)).get("torchrec", "")
    if version not in CHECKED_WITH:
        recorder.decision(GATHERED, f"torchrec {version} was not checked, only {', '.join(CHECKED_WITH)}")
        yield
        return
    ours = _Ours(recorder)
    kinds: list[tuple[type, str, Callable[[Any], Foretell]]] = [
        (ShardedEmbeddingCollection, "_model_parallel_name_to_sharded_tensor", tables),
        (
            ShardedManagedCollisionCollection,
            "_model_parallel_mc_buffer_name_to_sharded_tensor",
            managed_buffers,
        ),
    ]
    before = [(kind, vars(kind)[_METHOD]) for kind, _, _ in kinds]
    gather = vars(ShardedTensor)[_GATHER]
    for kind, tensors, teller in kinds:
        setattr(kind, _METHOD, ours.initialising(vars(kind)[_METHOD], tensors, teller))
    setattr(ShardedTensor, _GATHER, classmethod(ours.gathering))
    try:
        yield
    finally:
        setattr(ShardedTensor, _GATHER, gather)
        for kind, method in before:
            setattr(kind, _METHOD, method)


def tables(module: Any) -> Foretell:  # noqa: ANN401 - a sharded collection
    """Tables of an embedding collection, as the plan of the collection says."""
    names: dict[int, str] = {}

    def foretell(local_shards: list[Shard]) -> Foretold:
        if not names:
            shards_of = module._model_parallel_name_to_local_shards  # noqa: SLF001
            names.update({id(shards): name for name, shards in shards_of.items()})
        name = names[id(local_shards)]
        dtype = data_type_to_dtype(module._table_name_to_config[name].data_type)  # noqa: SLF001
        return Foretold(module.module_sharding_plan[name].sharding_spec.shards, dtype)

    return foretell


def managed_buffers(module: Any) -> Foretell:  # noqa: ANN401 - a sharded collection
    """Buffers of managed collisions: as many rows on each rank as the table has there."""
    names: dict[int, str] = {}

    def foretell(local_shards: list[Shard]) -> Foretold:
        if not names:
            names.update({each.data_ptr(): name for name, each in module.state_dict().items()})
        (local,) = local_shards
        name = names[local.tensor.data_ptr()].split(".")[1]
        spec = module._table_name_to_parameter_sharding[name].sharding_spec  # noqa: SLF001
        rest = list(local.tensor.shape[1:])
        rows = [(shard.shard_offsets[0], shard.shard_sizes[0], shard.placement) for shard in spec.shards]
        return Foretold(
            [ShardMetadata([first, *[0] * len(rest)], [count, *rest], place) for first, count, place in rows],
            local.tensor.dtype,
        )

    return foretell


def why_not(module: Any) -> str:  # noqa: ANN401 - a sharded collection
    """Why a module is left to TorchRec, which all ranks find alike; empty where it is not."""
    env = module._env  # noqa: SLF001
    if env.process_group is None or dist.get_world_size(env.process_group) == 1:
        return "one rank is alone: nothing is gathered"
    if hasattr(env, "sharding_pg"):
        return "the sharding is 2D parallel"
    if env.output_dtensor:
        return "the tables come as DTensor"
    configs = module._table_name_to_config.values()  # noqa: SLF001
    if any(getattr(config, "use_virtual_table", False) for config in configs):
        return "a table is virtual"
    return ""


class _Ours:
    """What takes the place of TorchRec's functions; the forecast under way belongs to its thread."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._here = threading.local()
        self._gather: Callable[..., Any] = getattr(ShardedTensor, _GATHER)

    def initialising(
        self, original: Callable[..., None], tensors: str, teller: Callable[[Any], Foretell]
    ) -> Any:  # noqa: ANN401
        """The method that makes the sharded tensors of a module, kept in its attribute `tensors`."""

        @wraps(original)
        def initialise(module: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
            if reason := why_not(module):
                self._recorder.decision(GATHERED, reason)
                original(module, *arguments, **named)
                return
            began_s = time.monotonic()
            forecast = Forecast(module._env.process_group, self._gather)  # noqa: SLF001
            self._here.way = (forecast, teller(module))
            try:
                original(module, *arguments, **named)
            finally:
                self._here.way = None
            if not forecast.tensors:
                return
            found = getattr(module, tensors)
            replaced = forecast.settle()
            found.update({name: replaced.get(id(each), each) for name, each in found.items()})
            self._recorder.decision(
                GATHERED if forecast.reason else BUILT,
                forecast.reason or f"for {type(module).__name__}",
                {"tensors": forecast.tensors, "seconds": time.monotonic() - began_s},
            )

        return initialise

    def gathering(self, _: type, local_shards: list[Shard], *size: Any, **more: Any) -> Any:  # noqa: ANN401
        """The function that gathers the metadata of one tensor, unless it can be foretold."""
        way = getattr(self._here, "way", None)
        if way is None:
            return self._gather(local_shards, *size, **more)
        forecast, foretell = way
        return forecast.take(lambda: foretell(local_shards), local_shards, *size, **more)
