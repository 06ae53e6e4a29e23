"""What torch.compile does, told to the recorder: phases, stage seconds, cache hits.

The only module that reads torch's private counters and callbacks; each is looked up with a
guard, so a torch without it costs a figure, never the training. Callbacks run on the thread
that compiles, in this trainer the main one: a compilation is a `compile` phase on its track.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import ExitStack
from types import ModuleType

from ett_trainer_hooks import Recorder

CACHE_COUNTERS: Mapping[str, tuple[str, str]] = {
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


class CompileWatch:
    """Follows the compilations of this process; `report` tells what is new since the last."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open = ExitStack()
        self._graph = ""
        self._before: dict[str, float] = {}
        callback = _optional("torch._dynamo.callback")
        if callback is not None:
            callback.on_compile_start(self._begin)
            callback.on_compile_end(self._end)

    def _begin(self, arguments: object) -> None:
        self._graph = str(getattr(arguments, "compile_id", ""))
        self._before = stage_seconds()
        self._open.enter_context(self._recorder.phase("compile"))

    def _end(self, _arguments: object) -> None:
        self._open.close()
        after = stage_seconds()
        spent = {stage: after[stage] - self._before.get(stage, 0.0) for stage in after}
        self._recorder.compile(
            graph=self._graph,
            stage_seconds={stage: seconds for stage, seconds in spent.items() if seconds > 0},
            native_compile_s=spent.get("native", 0.0),
        )
        for cache, (hits, misses, bypasses) in cache_totals().items():
            self._recorder.cache(cache, hits=hits, misses=misses, bypasses=bypasses)


def cache_totals() -> dict[str, tuple[int, int, int]]:
    """Hits, misses and bypasses of each cache in this process so far."""
    counters = getattr(_optional("torch._dynamo.utils"), "counters", {})
    totals = {}
    for cache, (group, prefix) in CACHE_COUNTERS.items():
        seen = counters.get(group, {})
        hits, misses, bypasses = (int(seen.get(f"{prefix}_{end}", 0)) for end in ("hit", "miss", "bypass"))
        totals[cache] = (hits, misses, bypasses)
    return totals


def stage_seconds() -> dict[str, float]:
    """Seconds that each stage of compilation took in this process so far."""
    table = getattr(_optional("torch._dynamo.utils"), "compilation_time_metrics", {})
    return {stage: float(sum(table.get(entry, ()))) for stage, entry in STAGES.items() if entry in table}


def _optional(module: str) -> ModuleType | None:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None
