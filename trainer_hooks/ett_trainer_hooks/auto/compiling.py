"""Compilations as phases and facts: seconds by stage, answers of the caches, reasons to compile again.

Torch calls on the thread that compiles. An answer of the AOTAutograd cache brings its FX graphs
along, which torch counts as hits of the FX cache too; they are taken off, so that one thing found
is one hit. A hit that still compiled shows in `native_compile_s`.
"""

from __future__ import annotations

from contextlib import ExitStack

from ett_trainer_hooks.auto import torch_private
from ett_trainer_hooks.auto.torch_private import Totals
from ett_trainer_hooks.auto.watch import Watch


class Compilations:
    """Tells the recorder of a watch about every outermost compilation of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._open = ExitStack()
        self._stages: dict[str, float] = {}
        self._caches: dict[str, Totals] = {}
        self._brought_along = 0

    def begin(self, arguments: object) -> None:
        """Called by torch."""
        self._watch.recorder.guard.call(self._begin, arguments)

    def end(self, arguments: object) -> None:
        """Called by torch."""
        self._watch.recorder.guard.call(self._end, arguments)

    def _begin(self, _arguments: object) -> None:
        if not self._watch.on:
            return
        self._stages = torch_private.stage_seconds()
        self._caches = torch_private.cache_totals()
        span = self._watch.phase("compile")
        if span.track == "main":
            self._open.enter_context(self._watch.whole())
        self._open.enter_context(span)

    def _end(self, arguments: object) -> None:
        self._open.close()
        if not self._watch.on:
            return
        spent = self._spent(torch_private.stage_seconds())
        self._watch.recorder.compile(
            graph=torch_private.compile_id(arguments),
            stage_seconds=spent,
            native_compile_s=spent.get("native", 0.0),
            recompile_reason=torch_private.recompile_reason(),
        )
        self._tell_caches(torch_private.cache_totals())

    def _spent(self, after: dict[str, float]) -> dict[str, float]:
        seconds = {stage: after[stage] - self._stages.get(stage, 0.0) for stage in after}
        return {stage: spent for stage, spent in seconds.items() if spent > 0}

    def _tell_caches(self, after: dict[str, Totals]) -> None:
        self._brought_along += brought_along(self._caches, after)
        for cache, totals in after.items():
            extra = self._brought_along if cache == "fx_graph" else 0
            self._watch.recorder.cache(
                cache,
                hits=max(totals.hits - extra, 0),
                misses=totals.misses,
                bypasses=totals.bypasses,
            )


def brought_along(before: dict[str, Totals], after: dict[str, Totals]) -> int:
    """Hits of the FX cache that came with one of the AOTAutograd cache, between two readings.

    >>> none, both = {}, {"fx_graph": Totals(2), "aot_autograd": Totals(1)}
    >>> brought_along(none, both), brought_along(both, both)
    (2, 0)
    """
    fx, aot = (
        after.get(cache, Totals()).hits - before.get(cache, Totals()).hits
        for cache in ("fx_graph", "aot_autograd")
    )
    return fx if aot > 0 else 0
