"""Every read of what torch does not promise to keep: one adapter, torch 2.6 and newer.

`SEAMS` names all of it. A torch without one of them costs the figure that it says, never the
training. Only `load` imports: all else takes the modules from those that the program has loaded.
Reads are safe from any thread; totals are of the process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from time import perf_counter
from types import ModuleType, TracebackType
from typing import Any

import msgspec

Modules = Mapping[str, ModuleType]

COMPILER = "torch._dynamo"
"""The module after whose import compilations can be followed."""

TUNER = "torch._inductor.runtime.triton_heuristics"
"""The module after whose import tunings of kernels can be."""


class Seam(msgspec.Struct, frozen=True):
    """A private part of torch: its module, its path from there, and what is lost without it."""

    module: str
    path: str
    lost: str


SEAMS: Mapping[str, Seam] = {
    "around": Seam(
        "torch._dynamo.callback",
        "callback_handler.install_callbacks",
        "compilations on two threads at once, and those after a reset of dynamo",
    ),
    "on_start": Seam("torch._dynamo.callback", "on_compile_start", "all compilations, without `around`"),
    "on_end": Seam("torch._dynamo.callback", "on_compile_end", "all compilations, without `around`"),
    "counters": Seam("torch._dynamo.utils", "counters", "answers of the caches but autotune"),
    "times": Seam("torch._dynamo.utils", "compilation_time_metrics", "seconds by stage and native seconds"),
    "context": Seam("torch._dynamo.utils", "get_metrics_context", "reasons to compile again"),
    "guards": Seam(
        "torch._dynamo.guards", "CheckFunctionManager", "which code was compiled, and for what sizes"
    ),
    "remote": Seam(
        "torch._inductor.remote_cache", "cache_stats._stats", "answers of autotune, remote requests"
    ),
    "tuned": Seam(
        TUNER, "CachingAutotuner.autotune_to_one_config", "which kernels were tuned, for how long, what won"
    ),
    "searched": Seam(
        TUNER, "CachingAutotuner.coordinate_descent_tuning", "the same, of searches beyond the lists"
    ),
    "searched_together": Seam(
        TUNER, "CachingAutotuner._combo_sequential_autotune", "the same, of several kernels in one"
    ),
    "profile": Seam("torch._dynamo.pgo", "_CODE_STATE", "answers of pgo"),
    "profile_found": Seam("torch._dynamo.pgo", "_INIT_CODE_STATE", "hits of pgo"),
    "profile_key": Seam("torch._dynamo.pgo", "get_cache_key", "misses of pgo"),
    "precompile_headers": Seam(
        "torch._inductor.config",
        "cpp_cache_precompile_headers",
        "that no header is compiled ahead of the first compilation where torch was told to do without",
    ),
    "header_maker": Seam(
        "torch._inductor.codecache",
        "_precompile_header",
        "a header that need not be compiled where a bundle has all code",
    ),
    "instructions_ok": Seam(
        "torch._inductor.config", "cpp.vec_isa_ok", "trials of the processor that need not be, likewise"
    ),
    "artifact_list": Seam(
        "torch.utils._appending_byte_serializer",
        "AppendingByteSerializer",
        "in a bundle, the graphs of all saves of a process but its last",
    ),
    "artifact_reader": Seam("torch.compiler._cache", "_deserialize_single_cache", "the same"),
    "artifact_writer": Seam("torch.compiler._cache", "_serialize_single_cache", "the same"),
    "kernel_builder": Seam(
        "torch._inductor.codecache",
        "CppPythonBindingsCodeCache.load_pybinding",
        "the native compiler made ready before the first compilation",
    ),
    "any_size": Seam("torch._dynamo", "maybe_mark_dynamic", "made-up batches whose sizes may change"),
    "iterators": Seam("torch.utils.data.dataloader", "_BaseDataLoaderIter", "waits for data"),
}

FIELDS = (
    "__name__",
    "_is_param",
    "_metrics",
    "_version",
    "autotune_time_taken_ns",
    "compile_id",
    "config",
    "custom_kernel",
    "fake",
    "fn",
    "found_by_combo_autotune",
    "found_by_coordesc",
    "hint",
    "hit",
    "is_empty_graph",
    "kwargs",
    "launchers",
    "maxnreg",
    "miss",
    "name",
    "node",
    "num_ctas",
    "num_stages",
    "num_warps",
    "put",
    "source",
    "tracked_fakes",
)
"""Names that are read of objects which come from a seam, or are handed over by torch."""


TUNINGS = ("tuned", "searched", "searched_together")
"""Seams of what the tuner of a kernel does; the first leaves it with what won, the others give that back."""


class Answers(msgspec.Struct, frozen=True):
    """The counters of torch, in one of their groups, that add up to what a cache has answered."""

    group: str
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    bypasses: tuple[str, ...] = ()


ANSWERS: Mapping[str, Answers] = {
    "fx_graph": Answers(
        "inductor", ("fxgraph_cache_hit",), ("fxgraph_cache_miss",), ("fxgraph_cache_bypass",)
    ),
    "aot_autograd": Answers(
        "aot_autograd", ("autograd_cache_hit",), ("autograd_cache_miss",), ("autograd_cache_bypass",)
    ),
    "triton_bundle": Answers(
        "inductor",
        ("triton_bundler_read_and_emit_kernel", "triton_bundler_load_static_autotuner"),
        ("triton_bundler_save_kernel", "triton_bundler_save_static_autotuner"),
    ),
    "mega_cache": Answers("inductor", ("fxgraph_lookup_write_file",)),
}
"""Cache to its counters. A kernel that is put into a bundle had to be compiled: a miss. A graph that
is found, and whose code has to be written to disk first, was compiled elsewhere: its entry came with
artifacts that the program loaded (or from a remote cache)."""

REMOTE_ANSWERS: Mapping[str, tuple[str, ...]] = {
    "fx_graph": ("RemoteFxGraphCache", "FbRemoteFxGraphCache"),
    "aot_autograd": ("RemoteAOTAutogradCache", "FbRemoteAOTAutogradCache"),
    "pgo": ("RemoteDynamoPGOCache", "FbRemoteDynamoPGOCache"),
    "autotune": ("RemoteAutotuneCache", "FbRemoteAutotuneCache", "RemoteBundledAutotuneCache"),
}
"""Cache to the classes of torch that ask for its entries elsewhere."""

AUTOTUNE_KINDS = ("LocalAutotuneCache", *REMOTE_ANSWERS["autotune"])
"""Classes of torch that look for the best configuration of a kernel."""

STAGES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "dynamo": (("bytecode_tracing", "build_guards"), ()),
    "aot_autograd": (("create_aot_dispatcher_function",), ("compile_fx_inner",)),
    "inductor": (("compile_fx_inner",), ()),
    "cache_load": (("AOTAutogradCache.inductor_load",), ()),
    "native": (("compile_file",), ()),
}
"""Stage to the entries of torch's table of times that make it up, and those within them that do not."""


class Totals(msgspec.Struct, frozen=True):
    """What a cache has answered so far."""

    hits: int = 0
    misses: int = 0
    bypasses: int = 0
    remote_requests: int | None = None


def part(name: str, modules: Modules = sys.modules) -> Any:  # noqa: ANN401 - of torch
    """What torch has at a seam; None where this torch, or what the program has loaded of it, lacks it."""
    seam = SEAMS[name]
    found: Any = modules.get(seam.module)
    for attribute in seam.path.split("."):
        found = getattr(found, attribute, None)
    return found


def load(name: str) -> Any:  # noqa: ANN401 - of torch
    """What torch has at a seam, whose module is imported for it; None where this torch lacks it."""
    try:
        import_module(SEAMS[name].module)
    except ImportError:
        return None
    return part(name)


def put(name: str, value: object, modules: Modules = sys.modules) -> bool:
    """Set what torch has at a seam (a setting: for the calling thread); False where this torch lacks it."""
    *way, last = SEAMS[name].path.split(".")
    holder: Any = modules.get(SEAMS[name].module)
    for attribute in way:
        holder = getattr(holder, attribute, None)
    if not hasattr(holder, last):
        return False
    setattr(holder, last, value)
    return True


def field(thing: object, name: str, default: Any = None) -> Any:  # noqa: ANN401 - of torch
    """A field of an object of torch's; `default` where it lacks it."""
    if name not in FIELDS:
        raise KeyError(name)
    return getattr(thing, name, default)


def follow_compilations(
    begin: Callable[[str], None], end: Callable[[BaseException | None], None], modules: Modules = sys.modules
) -> bool:
    """Have both called around every compilation, on its thread; False where this torch offers no such thing.

    `begin` gets the compilation's name, empty where torch does not tell it. Calls nest where
    compilations do. Through `on_start` and `on_end` only those torch tells of are seen, and the
    end may come from another thread.
    """
    install, on_start, on_end = (part(name, modules) for name in ("around", "on_start", "on_end"))
    if callable(install):
        handler = modules[SEAMS["around"].module].callback_handler
        handler.install_callbacks = around(install, begin, end)
        return True
    if not callable(on_start) or not callable(on_end):
        return False
    on_start(lambda *told: begin(compilation_name(told)))
    on_end(lambda *_: end(None))
    return True


def around(
    install: Callable[..., Any],
    begin: Callable[[str], None],
    end: Callable[[BaseException | None], None],
) -> Callable[..., Any]:
    """`install_callbacks` with both calls around what it does around a compilation."""
    hidden = hider()

    class Observed:
        """One use of the manager that `install` makes."""

        def __init__(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            self.told = (*arguments, *named.values())
            self.inner = install(*arguments, **named)

        @hidden
        def __enter__(self) -> Any:  # noqa: ANN401 - as torch's
            begin(compilation_name(self.told))
            try:
                return self.inner.__enter__()
            except BaseException as error:
                end(error)
                raise

        @hidden
        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> Any:  # noqa: ANN401 - as torch's
            try:
                return self.inner.__exit__(kind, error, trace)
            finally:
                end(error)

    return hidden(lambda *arguments, **named: Observed(arguments, named))


def follow_frames(heard: Callable[[tuple[object, ...]], None], modules: Modules = sys.modules) -> bool:
    """Have it called within every compilation that has a graph, on its thread; False where torch has no such.

    It gets what torch makes guards of (the code, what was traced of it), and must not raise.
    """
    manager = part("guards", modules)
    if manager is None:
        return False
    make = manager.__init__

    def observed(self: object, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as torch's
        heard((*arguments, *named.values()))
        make(self, *arguments, **named)

    manager.__init__ = observed
    return True


def follow_tunings(
    heard: Callable[[str, object, float, tuple[object, ...], object], None], modules: Modules = sys.modules
) -> list[str]:
    """Have it called after each tuning of a kernel, on its thread; the seams that this torch has for it.

    It gets the seam, the tuner, the seconds, what that could launch before and what it launches now, and
    must not raise. A tuning that raised is not told.
    """
    return [
        name
        for name in TUNINGS
        if callable(tune := part(name, modules)) and put(name, _heard_by(heard, name, tune), modules)
    ]


def _heard_by(
    heard: Callable[[str, object, float, tuple[object, ...], object], None],
    name: str,
    tune: Callable[..., Any],
) -> Callable[..., Any]:
    @wraps(tune)
    def observed(tuner: object, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as torch's
        before, began_s = tuple(field(tuner, "launchers") or ()), perf_counter()
        result = tune(tuner, *arguments, **named)
        took_s = perf_counter() - began_s
        winner = next(iter(field(tuner, "launchers") or ()), None) if result is None else result
        heard(name, tuner, took_s, before, winner)
        return result

    return observed


def hider(modules: Modules = sys.modules) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that keeps the compiler from tracing a function of ours."""
    disable = getattr(modules.get("torch.compiler"), "disable", None)
    return disable if callable(disable) and COMPILER in modules else lambda function: function


def compilation_name(told: tuple[object, ...]) -> str:
    """What torch calls a compilation: its second argument, or a field of its only one.

    >>> compilation_name(()), compilation_name(("DYNAMO", "0/1"))
    ('', '0/1')
    """
    if len(told) > 1:
        return str(told[1])
    return str(field(told[0], "compile_id", "")) if told else ""


def cache_totals(modules: Modules = sys.modules) -> dict[str, Totals]:
    """Answers of each cache in this process so far; caches that nobody asked, or counts, are left out."""
    totals = counted_totals(modules)
    if profile := profile_totals(modules):
        totals["pgo"] = profile
    stats = part("remote", modules)
    for cache, kinds in REMOTE_ANSWERS.items():
        if each := [answers for kind in kinds if (answers := _stat(stats, kind))]:
            totals[cache] = msgspec.structs.replace(
                totals.get(cache, Totals()), remote_requests=sum(map(sum, each))
            )
    if each := [answers for kind in AUTOTUNE_KINDS if (answers := _stat(stats, kind))]:
        hits, misses = (sum(answers[place] for answers in each) for place in (0, 1))
        totals["autotune"] = msgspec.structs.replace(
            totals.get("autotune", Totals()), hits=hits, misses=misses
        )
    return totals


def counted_totals(modules: Modules = sys.modules) -> dict[str, Totals]:
    """Answers of the caches that torch counts itself."""
    counters = part("counters", modules)
    if not isinstance(counters, Mapping):
        return {}
    totals = {}
    for cache, answers in ANSWERS.items():
        seen = counters.get(answers.group, {})
        ends = (answers.hits, answers.misses, answers.bypasses)
        found = Totals(*(sum(int(seen.get(name, 0)) for name in names) for names in ends))
        if found != Totals():
            totals[cache] = found
    return totals


def profile_totals(modules: Modules = sys.modules) -> Totals | None:
    """Whether this process found the sizes that earlier ones had seen; None where it did not look."""
    if part("profile", modules) is None:
        return None
    if part("profile_found", modules) is not None:
        return Totals(hits=1)
    key = part("profile_key", modules)
    return Totals(misses=1) if callable(key) and key() is not None else None


def entry_seconds(modules: Modules = sys.modules) -> dict[str, float]:
    """Seconds of the entries of torch's table of times that make up the stages, in this process so far."""
    table = part("times", modules)
    if not isinstance(table, Mapping):
        return {}
    wanted = {entry for entries in STAGES.values() for some in entries for entry in some}
    return {entry: float(sum(table[entry])) for entry in wanted if entry in table}


def stage_seconds(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Seconds of each stage between two readings of the table; stages without any are left out.

    `inductor` holds the wait for native code; `native` adds up over compilers that run at the same
    time, so it may be longer than the compilation.

    >>> stage_seconds({}, {"create_aot_dispatcher_function": 3.0, "compile_fx_inner": 2.5})
    {'aot_autograd': 0.5, 'inductor': 2.5}
    """
    spent = {entry: after[entry] - before.get(entry, 0.0) for entry in after}
    stages = {
        stage: sum(spent.get(entry, 0.0) for entry in entries)
        - sum(spent.get(entry, 0.0) for entry in within)
        for stage, (entries, within) in STAGES.items()
    }
    return {stage: seconds for stage, seconds in stages.items() if seconds > 0}


def merged_artifacts(data: bytes, modules: Modules = sys.modules) -> bytes:
    """Artifacts that a process has saved several times, in a form of which all is loaded.

    Torch appends what is new to what it saved before, as another list of the same kind; when it
    loads them, the last list of a kind takes the place of those before.
    """
    names = ("artifact_list", "artifact_reader", "artifact_writer")
    serializer, reader, writer = (part(name, modules) for name in names)
    if serializer is None or reader is None or writer is None:
        return data
    lists: dict[str, list[Any]] = {}
    for kind, artifacts in serializer.to_list(data, deserialize_fn=reader):
        lists.setdefault(kind, []).extend(artifacts)
    whole = serializer(serialize_fn=writer)
    whole.extend(lists.items())
    return bytes(whole.to_bytes())


def recompile_reason(modules: Modules = sys.modules) -> str | None:
    """Why the graph that is being compiled on this thread was not there already; None for a first one."""
    context = part("context", modules)
    noted = field(context(), "_metrics") if callable(context) else None
    reason = noted.get("recompile_reason") if isinstance(noted, Mapping) else None
    return str(reason) if reason else None


def iterator_class(modules: Modules = sys.modules) -> Any:  # noqa: ANN401 - of torch
    """The class of the iterators of a DataLoader, None where this torch has no such class."""
    found = part("iterators", modules)
    return found if isinstance(found, type) and hasattr(found, "__next__") else None


def tensor_version(tensor: object) -> int:
    """A number that grows with every change in place of a tensor; 0 where nobody counts."""
    try:
        return int(field(tensor, "_version", 0))
    except RuntimeError:  # a tensor made for inference only
        return 0


def _stat(stats: object, kind: str) -> tuple[int, int, int] | None:
    found = stats.get(kind) if isinstance(stats, Mapping) else None
    if found is None:
        return None
    hits, misses, puts = (int(field(found, name, 0)) for name in ("hit", "miss", "put"))
    return hits, misses, puts
