"""What a sharding plan was made for: if any of it differs, the plan is made anew.

The context is plain data, the same in every process that would make the same plan: no addresses,
no order of dictionaries. Memory stands apart, since two hosts of one kind seldom have quite the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import msgspec
import torch

from ett_trainer_hooks.recording.versions import installed_versions

PACKAGES = ("torch", "torchrec", "fbgemm-gpu", "fbgemm-gpu-cpu")
MEMORY_TOLERANCE = 0.05
"""Part by which the memory of a device may differ from that which a plan was made for."""

_LARGEST_DEPTH = 8
_WIRING = ("world_size", "local_world_size", "intra_group_size", "compute_device")
_SPEEDS = ("hbm_mem_bw", "ddr_mem_bw", "ssd_mem_bw", "hbm_to_ddr_mem_bw", "intra_host_bw", "inter_host_bw")
_WEIGHTS = (
    "bwd_compute_multiplier",
    "weighted_feature_bwd_compute_multiplier",
    "uneven_sharding_perf_multiplier",
)
_CHOOSERS = ("enumerator", "storage_reservation", "proposers", "partitioner", "perf_model", "callbacks")


class Memory(msgspec.Struct, frozen=True):
    """Bytes of each device's memory, by rank."""

    hbm: tuple[int, ...]
    ddr: tuple[int, ...]
    ssd: tuple[int, ...]


class Context(msgspec.Struct, frozen=True):
    """What decides on a plan: plain data, and the memory that there is."""

    facts: dict[str, Any]
    memory: Memory


def context_of(planner: Any, module: torch.nn.Module, sharders: Sequence[Any]) -> Context:  # noqa: ANN401
    """The context of the plan that TorchRec's `planner` would make now.

    Raises:
        AttributeError: this planner keeps its inputs elsewhere.
    """
    topology = planner._topology  # noqa: SLF001 - a planner tells its inputs to nobody
    facts = {
        "versions": installed_versions(PACKAGES),
        "planner": qualified(planner),
        "topology": {name: getattr(topology, name) for name in (*_WIRING, *_SPEEDS, *_WEIGHTS)},
        "batch_size": planner._batch_size,  # noqa: SLF001
        "constraints": plain(planner._constraints),  # noqa: SLF001
        "choosers": {name: outline(getattr(planner, f"_{name}", None)) for name in _CHOOSERS},
        "sharders": [outline(sharder, depth=2) for sharder in sharders],
        "tables": dict(_tables(module, sharders)),
    }
    devices = [device.storage for device in topology.devices]
    kinds = ("hbm", "ddr", "ssd")
    return Context(facts, Memory(*(tuple(int(getattr(each, kind)) for each in devices) for kind in kinds)))


def memory_difference(then: Memory, now: Memory) -> str:
    """Where the memory of a device is another than a plan was made for, in words; empty where it is not."""
    for kind in Memory.__struct_fields__:
        pairs = zip(getattr(then, kind), getattr(now, kind), strict=True)
        for rank, (was, is_) in enumerate(pairs):
            if abs(was - is_) > MEMORY_TOLERANCE * max(was, is_):
                return f"{kind} of rank {rank} was {was} bytes, is {is_}"
    return ""


def plain(thing: Any, depth: int = 0) -> Any:  # noqa: ANN401 - of any kind
    """All of a thing as plain data: fields of dataclasses, names of enums, classes and functions."""
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, Enum):
        return thing.name
    if isinstance(thing, torch.dtype | torch.device | torch.Size):
        return str(thing)
    return qualified(thing) if depth == _LARGEST_DEPTH else _inside(thing, depth + 1)


def _inside(thing: Any, depth: int) -> Any:  # noqa: ANN401 - of any kind
    if is_dataclass(thing) and not isinstance(thing, type):
        return {field.name: plain(getattr(thing, field.name), depth) for field in fields(thing)}
    if isinstance(thing, Mapping):
        return {str(plain(name)): plain(each, depth) for name, each in thing.items()}
    if isinstance(thing, list | tuple):
        return [plain(each, depth) for each in thing]
    if isinstance(thing, set | frozenset):
        return sorted(str(plain(each, depth)) for each in thing)
    return qualified(thing)


def outline(thing: Any, depth: int = 1) -> Any:  # noqa: ANN401 - of any kind
    """The class of a thing with what is plain in it; what it holds otherwise is left out.

    So the state of a part of the planner counts, and what it worked on does not.
    """
    if isinstance(thing, list | tuple):
        return [outline(each, depth) for each in thing]
    if thing is None or callable(thing):
        return plain(thing)
    kinds = (bool, int, float, str, Enum, *((Mapping,) if depth > 1 else ()))
    own = {name: plain(each) for name, each in vars(thing).items() if isinstance(each, kinds)}
    return {"class": qualified(thing), **own}


def qualified(thing: Any) -> str:  # noqa: ANN401 - of any kind
    """Module and name of a class or function, or of a thing's class: `torch.nn.modules.linear.Linear`."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


def _tables(module: torch.nn.Module, sharders: Sequence[Any]) -> Iterable[tuple[str, Any]]:
    by_type = {sharder.module_type: sharder for sharder in sharders}
    for path, child in module.named_modules():
        sharder = by_type.get(type(child))
        if sharder is not None:
            shardable = sharder.shardable_parameters(child)
            yield (
                path,
                {
                    "class": qualified(child),
                    "parameters": {name: _parameter(each) for name, each in shardable.items()},
                    "configs": plain(configs_of(child)),
                },
            )


def configs_of(module: torch.nn.Module) -> list[Any]:
    """The configurations of the tables of a collection, whatever its kind calls them."""
    for name in ("embedding_bag_configs", "embedding_configs"):
        tell = getattr(module, name, None)
        if callable(tell):
            return list(tell())
    return []


def _parameter(parameter: Any) -> dict[str, Any]:  # noqa: ANN401 - torch's
    optimizers = getattr(parameter, "_optimizer_classes", [])
    return {
        "shape": list(parameter.shape),
        "dtype": str(parameter.dtype),
        "optimizers": [qualified(each) for each in optimizers],
    }
