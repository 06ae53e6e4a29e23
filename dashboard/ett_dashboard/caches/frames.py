"""Runs and their caches to tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

import pandas as pd

from ett_dashboard.caches.rows import CacheRunRow, Comparison
from ett_dashboard.caches.words import cache_title, ratio, run_name, size
from ett_dashboard.frames import moment
from ett_dashboard.words import duration, plain, whole

RUN_COLUMNS = (
    "Run",
    "Started",
    "Family",
    "Verdict",
    "Hit rate",
    "Waited for compilation",
    "Hidden compilation",
    "Recompiled",
    "Loaded caches",
    "Saved",
    "Bytes",
)


def runs_frame(runs: Sequence[CacheRunRow], zone: tzinfo) -> pd.DataFrame:
    """Runs in the order given; durations in seconds, hit rates in percent."""
    rows = [
        (
            run_name(run),
            moment(run.start, zone),
            plain(run.family, 48),
            run.verdict,
            None if run.hit_ratio is None else 100 * run.hit_ratio,
            run.compile_s,
            run.hidden_compile_s,
            run.recompile_s,
            run.cache_load_s,
            run.saved_s,
            run.bytes,
        )
        for run in runs
    ]
    return pd.DataFrame(rows, columns=list(RUN_COLUMNS)).astype({"Hit rate": "float64"})


def runs_csv(runs: Sequence[CacheRunRow], zone: tzinfo) -> pd.DataFrame:
    """The same to take away, with ids and the requests of each cache."""
    frame = runs_frame(runs, zone)
    frame.insert(0, "Id", [run.id for run in runs])
    for name in cache_names(runs):
        for field in ("hits", "misses", "bypasses"):
            frame[f"{name} {field}"] = [getattr(run.caches.get(name), field, None) for run in runs]
    return frame


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
