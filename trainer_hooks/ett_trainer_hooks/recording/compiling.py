"""Compilations as phases and facts: seconds by stage, answers of the caches, why again, and for what sizes.

Torch calls on the thread that compiles. The outermost compilation of a thread is a `compile` phase:
of the main track where that thread trains (or runs the backward for the one that does), else of a
track of its own, which takes nothing from the steps. What is nested in it is part of it.

An answer of the AOTAutograd cache brings its FX graphs along, which torch counts as hits of the FX
cache too; they are taken off, so that one thing found is one hit. A hit that still compiled shows
in `native_compile_s`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ett_core.tuning import CACHE as TUNED
from ett_trainer_hooks import torch_private
from ett_trainer_hooks.after_import import AfterImport
from ett_trainer_hooks.recording.frames import UNTOLD, frame_in
from ett_trainer_hooks.recording.spans import MAIN_TRACK
from ett_trainer_hooks.recording.tunings import tuned_kernel
from ett_trainer_hooks.torch_private import Modules, Totals

if TYPE_CHECKING:
    from ett_core.events import TunedKernel
    from ett_trainer_hooks.recording.recorder import Recorder


BARE_WORDS = (
    "the next start will not find the sizes that this one sees of a module of torch's own (nn.Sequential) "
    "which is compiled as it is, as torch takes it for other code each time: "
    "wrap it in a class with a forward of its own"
)
"""The warning of `_tell_bare`."""


class Compiling(threading.local):
    """The compilation under way on this thread."""

    def __init__(self) -> None:
        self.depth = 0
        self.graph = ""
        self.open = ExitStack()
        self.times: dict[str, float] = {}
        self.caches: dict[str, Totals] = {}
        self.frame = UNTOLD


class CompileWatch:
    """Tells a recorder about every compilation of this process. No call of torch's ever sees a fault.

    Args:
        recorder: whom to tell.
        thread: identity of the thread that trains, asked at each compilation.
        around: entered during compilations on the main track.
        modules: the modules that are loaded.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        thread: Callable[[], int],
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
        modules: Modules = sys.modules,
    ) -> None:
        self._recorder = recorder
        self._thread = thread
        self._around = around
        self._modules = modules
        self._here = Compiling()
        self._brought_along = 0
        self._told_bare = False
        self.seen = 0
        """Compilations so far."""

    def follow(self) -> None:
        """From now on, or once the program loads torch's compiler."""
        guard = self._recorder.guard

        def attach(_: object) -> None:
            guard.call(self._attach)

        def attach_tunings(_: object) -> None:
            guard.call(torch_private.follow_tunings, self.tuned, self._modules)

        AfterImport({torch_private.COMPILER: attach, torch_private.TUNER: attach_tunings})

    def begin(self, graph: str) -> None:
        """A compilation begins on this thread."""
        self._recorder.guard.call(self._begin, graph)

    def end(self, error: BaseException | None = None) -> None:
        """The innermost compilation of this thread is over."""
        self._recorder.guard.call(self._end, error)

    def frame(self, told: tuple[object, ...]) -> None:
        """The compilation under way on this thread has its graph, in what torch makes guards of."""
        self._recorder.guard.call(self._frame, told)

    def tuned(self, *told: Any) -> None:  # noqa: ANN401 - as `torch_private.follow_tunings` tells
        """A kernel was tuned on this thread."""
        self._recorder.guard.call(self._tuned, *told)

    def _attach(self) -> None:
        if not torch_private.follow_compilations(self.begin, self.end, self._modules):
            self._recorder.guard.say_once("compile", "this torch tells of no compilations")
        torch_private.follow_frames(self.frame, self._modules)

    def _begin(self, graph: str) -> None:
        here = self._here
        here.depth += 1
        if here.depth > 1:
            return
        self.seen += 1
        here.graph, here.frame = graph, UNTOLD
        here.times = torch_private.entry_seconds(self._modules)
        here.caches = torch_private.cache_totals(self._modules)
        track = track_of_this_thread(self._thread())
        if track == MAIN_TRACK:
            here.open.enter_context(self._around())
        here.open.enter_context(self._recorder.phase("compile", track=track))

    def _frame(self, told: tuple[object, ...]) -> None:
        if self._here.depth == 1:
            self._here.frame = frame_in(told)

    def _end(self, error: BaseException | None) -> None:
        here = self._here
        if not here.depth:
            return
        here.depth -= 1
        if here.depth:
            return
        here.open.__exit__(None if error is None else type(error), error, None)
        spent = torch_private.stage_seconds(here.times, torch_private.entry_seconds(self._modules))
        self._recorder.compile(
            graph=here.graph,
            code=here.frame.code,
            stage_seconds=spent,
            native_compile_s=spent.get("native", 0.0),
            recompile_reason=torch_private.recompile_reason(self._modules),
            inputs=here.frame.inputs,
            symbols=here.frame.symbols,
        )
        self._tell_bare(here.frame.code)
        self._tell_caches(here.caches, torch_private.cache_totals(self._modules))

    def _tuned(self, *told: Any) -> None:  # noqa: ANN401 - as `torch_private.follow_tunings` tells
        kernel = tuned_kernel(*told)
        if kernel is not None:
            totals = torch_private.cache_totals(self._modules).get(TUNED, Totals())
            self._tell_cache(TUNED, totals, totals.hits, kernel)

    def _tell_bare(self, code: str) -> None:
        """Tell once where sizes are to be kept for the next start, and cannot be for such a module."""
        if self._told_bare or torch_private.profile_totals(self._modules) is None:
            return
        from ett_core.shapes import is_bare  # noqa: PLC0415 - for those who keep sizes

        if is_bare(code):
            self._told_bare = True
            self._recorder.decision("profile", BARE_WORDS)

    def _tell_caches(self, before: dict[str, Totals], after: dict[str, Totals]) -> None:
        self._brought_along += brought_along(before, after)
        for cache, totals in after.items():
            if cache in self._recorder.caches_told_apart:
                continue
            extra = self._brought_along if cache == "fx_graph" else 0
            self._tell_cache(cache, totals, max(totals.hits - extra, 0))

    def _tell_cache(self, cache: str, totals: Totals, hits: int, tuned: TunedKernel | None = None) -> None:
        self._recorder.cache(
            cache,
            hits=hits,
            misses=totals.misses,
            bypasses=totals.bypasses,
            remote_requests=totals.remote_requests,
            tuned=tuned,
        )


def track_of_this_thread(training: int) -> str:
    """The track of the thread that calls, where the one named trains.

    Threads that Python did not start run the backward of the main one.
    """
    name = threading.current_thread().name
    return MAIN_TRACK if get_ident() == training or name.startswith("Dummy-") else f"thread {name}"


def brought_along(before: dict[str, Totals], after: dict[str, Totals]) -> int:
    """Hits of the FX cache that came with one of the AOTAutograd cache, between two readings.

    Where that cache missed too (a graph that is split into several), an answer of it is taken to
    have brought two graphs, forward and backward.

    >>> none, both = {}, {"fx_graph": Totals(2), "aot_autograd": Totals(1)}
    >>> brought_along(none, both), brought_along(both, both)
    (2, 0)
    >>> brought_along(none, {"fx_graph": Totals(5), "aot_autograd": Totals(1, 1)})
    2
    """
    zero = Totals()
    fx = after.get("fx_graph", zero).hits - before.get("fx_graph", zero).hits
    hits = after.get("aot_autograd", zero).hits - before.get("aot_autograd", zero).hits
    misses = after.get("aot_autograd", zero).misses - before.get("aot_autograd", zero).misses
    if hits <= 0 or fx <= 0:
        return 0
    return min(fx, 2 * hits) if misses else fx
