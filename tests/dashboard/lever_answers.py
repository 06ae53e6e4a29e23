"""Answers of the API about caches, intervals and what-if, made by hand."""

from __future__ import annotations

from typing import Any

from ett_core.fleet.cache_compare import likely_reasons, side_by_side
from ett_core.fleet.caches import COLD, WARM
from ett_core.process_totals import CacheTotals
from ett_dashboard.caches.rows import CacheRunRow, Comparison
from ett_dashboard.checkpoints.rows import IntervalRow
from ett_dashboard.what_if.rows import LeverRow, Sum, WhatIf

AT = 1_764_000_000.0


def run(name: str, **fields: Any) -> CacheRunRow:
    """A warm run, unless told otherwise."""
    said: dict[str, Any] = {
        "job_name": name,
        "attempt": 0,
        "start": AT,
        "family": "dlrm",
        "cluster": "c1",
        "team": "ads",
        "model": "dlrm",
        "accelerator_type": "H200",
        "world_size": 8,
        "nodes": ["n1"],
        "config_hash": "aa",
        "versions": {"torch": "2.13.0"},
        "caches": {"fx_graph": CacheTotals(hits=95, misses=5), "mega_cache": CacheTotals(hits=1)},
        "hit_ratio": 0.95,
        "bytes": 180 * 2**20,
        "saved_s": 140.0,
        "compile_s": 20.0,
        "hidden_compile_s": 5.0,
        "recompile_s": 0.0,
        "cache_load_s": 4.0,
        "verdict": WARM,
    }
    return CacheRunRow(id=f"{name}~0", job_id=name, **(said | fields))


def cold(name: str, **fields: Any) -> CacheRunRow:
    """A run that compiled everything again, with another torch."""
    said: dict[str, Any] = {
        "caches": {"fx_graph": CacheTotals(hits=0, misses=100, bypasses=2)},
        "hit_ratio": 0.0,
        "bytes": 0,
        "saved_s": 0.0,
        "compile_s": 400.0,
        "versions": {"torch": "2.14.0"},
        "verdict": COLD,
        "expected_warm": True,
        "because": "this job had compiled the same configuration with the same versions before",
        "alike": "warm~0",
    }
    return run(name, **(said | fields))


def comparison(one: CacheRunRow, two: CacheRunRow) -> Comparison:
    return Comparison(
        as_of=AT,
        one=one,
        two=two,
        cold=two.id,
        differences=side_by_side(one, two),
        reasons=likely_reasons(one, two, two.verdict),
    )


def interval(name: str = "j", **fields: Any) -> IntervalRow:
    """Saves every 600 s where every 1,342 s would be best."""
    said: dict[str, Any] = {
        "saves": 600,
        "failures": 20,
        "wall_s": 400_000.0,
        "loop_s": 360_000.0,
        "interval_s": 600.0,
        "blocking_s": 50.0,
        "upload_s": 40.0,
        "blocked_s": 30_000.0,
        "unsaved_s": 6_000.0,
        "recovery_s": 2_400.0,
        "best_s": 1341.64,
        "shortest_s": 1100.0,
        "longest_s": 1660.0,
        "wasted_percent": 10.2,
        "best_percent": 7.7,
        "excess_accelerator_s": 72_000.0,
        "accelerators": 8,
    }
    return IntervalRow(job_id=name, **(said | fields))


def what_if(*levers: str, **fields: Any) -> WhatIf:
    """Of 1,000 accelerator-seconds 700 train; recovery and caches overlap in 20."""
    now = {"training": 700.0, "start.compile": 100.0, "recover.compile": 80.0, "unsaved_training": 120.0}
    then = {"training": 700.0, "start.compile": 50.0, "recover.compile": 20.0, "unsaved_training": 120.0}
    together = then if levers else now
    saved = sum(now.values()) - sum(together.values())
    said: dict[str, Any] = {
        "weight": "accelerator",
        "jobs": 3,
        "levers": levers,
        "now": Sum(total=1000.0, effective_ratio=0.7, components=now),
        "together": Sum(total=1000.0 - saved, effective_ratio=700.0 / (1000.0 - saved), components=together),
        "saved": saved,
        "overlap": 20.0 if levers else 0.0,
        "alone": [
            LeverRow(key="caches", supposes="warm", saved=90.0, effective_ratio=0.769, gain_ratio=0.069),
            LeverRow(key="recovery", saved=40.0, effective_ratio=0.729, gain_ratio=0.029),
            LeverRow(key="failure:gpu_ecc", saved=0.0, effective_ratio=0.7, gain_ratio=0.0),
        ],
        "warm_runs": 4,
        "between_failures_s": 40_000.0,
    }
    return WhatIf(as_of=AT, begin=AT - 604_800.0, end=AT, **(said | fields))
