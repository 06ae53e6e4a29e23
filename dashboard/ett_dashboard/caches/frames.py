"""Runs and their caches, side by side. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ett_dashboard.caches.rows import CacheRunRow, Comparison
from ett_dashboard.caches.words import cache_title
from ett_dashboard.words import duration, plain, ratio, size, whole


def cache_names(runs: Sequence[CacheRunRow]) -> list[str]:
    """The kinds of caches that any of the runs asked."""
    return sorted({name for run in runs for name in run.caches})


def cache_ratio(run: CacheRunRow, cache: str) -> float | None:
    """The hit ratio of one cache of a run, None without a request."""
    total = run.caches.get(cache)
    asked = 0 if total is None else total.hits + total.misses
    return total.hits / asked if total is not None and asked else None


def comparison_rows(found: Comparison) -> list[tuple[str, str, str]]:
    """Figures and facts of two runs, row by row, as words: what, the first, the second."""
    one, two = found.one, found.two
    bypasses = [whole(sum(total.bypasses for total in run.caches.values())) for run in (one, two)]
    return [
        ("verdict", one.verdict, two.verdict),
        ("hit rate", ratio(one.hit_ratio), ratio(two.hit_ratio)),
        *(
            (f"{cache_title(name)} hit rate", ratio(cache_ratio(one, name)), ratio(cache_ratio(two, name)))
            for name in cache_names([one, two])
        ),
        ("waited for compilation", duration(one.compile_s), duration(two.compile_s)),
        ("hidden compilation", duration(one.hidden_compile_s), duration(two.hidden_compile_s)),
        ("recompiled in the loop", duration(one.recompile_s), duration(two.recompile_s)),
        ("loading caches", duration(one.cache_load_s), duration(two.cache_load_s)),
        ("bypasses", bypasses[0], bypasses[1]),
        ("saved by hits", duration(one.saved_s), duration(two.saved_s)),
        ("bytes", size(one.bytes), size(two.bytes)),
        *((row.what, plain(row.one, 80), plain(row.two, 80)) for row in found.differences),
    ]
