"""Every read of what torch does not promise to keep: one adapter, each attribute looked up with a guard.

A torch without an attribute costs a figure, never the training. Nothing here imports torch: the
modules are taken from those that the program has loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import msgspec

CACHES: Mapping[str, tuple[str, str]] = {
    "fx_graph": ("inductor", "fxgraph_cache"),
    "aot_autograd": ("aot_autograd", "autograd_cache"),
}
"""Name of a cache to the group and the prefix of its counters in torch."""

STAGES: Mapping[str, str] = {
    "dynamo": "bytecode_tracing",
    "aot_autograd": "aot_dispatch",
    "inductor": "GraphLowering.codegen",
    "native": "compile_file",
}
"""Stage to the entry of torch's table of compile times that holds its seconds."""

Modules = Mapping[str, ModuleType]


class Totals(msgspec.Struct, frozen=True):
    """What a cache has answered so far."""

    hits: int = 0
    misses: int = 0
    bypasses: int = 0


def follow_compilations(
    module: Any,  # noqa: ANN401 - torch._dynamo.callback
    begin: Callable[[object], None],
    end: Callable[[object], None],
) -> bool:
    """Have both called around every outermost compilation; False where this torch offers no such thing."""
    on_start, on_end = getattr(module, "on_compile_start", None), getattr(module, "on_compile_end", None)
    if not callable(on_start) or not callable(on_end):
        return False
    on_start(begin)
    on_end(end)
    return True


def compile_id(arguments: object) -> str:
    """What torch calls the compilation that a callback is about."""
    return str(getattr(arguments, "compile_id", ""))


def cache_totals(modules: Modules = sys.modules) -> dict[str, Totals]:
    """Answers of each cache in this process so far; caches that this torch does not count are left out."""
    counters = getattr(modules.get("torch._dynamo.utils"), "counters", None)
    if not isinstance(counters, Mapping):
        return {}
    return {cache: _totals(counters.get(group, {}), prefix) for cache, (group, prefix) in CACHES.items()}


def _totals(seen: Mapping[str, int], prefix: str) -> Totals:
    hits, misses, bypasses = (int(seen.get(f"{prefix}_{end}", 0)) for end in ("hit", "miss", "bypass"))
    return Totals(hits, misses, bypasses)


def stage_seconds(modules: Modules = sys.modules) -> dict[str, float]:
    """Seconds that each stage of compilation took in this process so far."""
    table = getattr(modules.get("torch._dynamo.utils"), "compilation_time_metrics", {})
    return {stage: float(sum(table.get(entry, ()))) for stage, entry in STAGES.items() if entry in table}


def recompile_reason(modules: Modules = sys.modules) -> str | None:
    """Why the graph that is being compiled now was not there already; None for a first one."""
    context = getattr(modules.get("torch._dynamo.utils"), "get_metrics_context", None)
    noted = getattr(context(), "_metrics", None) if callable(context) else None
    reason = noted.get("recompile_reason") if isinstance(noted, Mapping) else None
    return str(reason) if reason else None


def iterator_class(module: object) -> Any:  # noqa: ANN401 - of torch.utils.data.dataloader
    """The class of the iterators of a DataLoader, None where this torch has no such class."""
    found = getattr(module, "_BaseDataLoaderIter", None)
    return found if isinstance(found, type) and hasattr(found, "__next__") else None


def gradient_version(gradient: object) -> int:
    """A number that grows with every change in place of a tensor; 0 where nobody counts."""
    return int(getattr(gradient, "_version", 0))
