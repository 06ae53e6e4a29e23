"""Compile caches by series of jobs and of rules. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from ett_dashboard.prometheus.jobs import COMPILE, SAVED, Figures
from ett_dashboard.prometheus.promql import Series, among
from ett_dashboard.prometheus.ranking import chosen, of
from ett_dashboard.prometheus.rows import CacheTotals
from ett_dashboard.rows import CacheRow, Job

REQUESTS = "ett:compile_cache_requests:increase1h"
SECONDS = "ett:compile_seconds:increase1h"
SAVED_BY_RULE = "ett:compile_cache_saved_seconds:increase1h"
RECORDED_BY = ("cluster", "model")
"""Labels that the recorded series have."""


def recorded(series: Series, asked: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Requests, compile seconds and seconds saved of the last hour, as rules record them.

    None where jobs are chosen as they do not record.
    """
    if any(asked.get(name) for name in ("team", "scheduler", "purpose", "text")):
        return None
    given = [among(name, words.split(",")) for name in RECORDED_BY if (words := asked.get(name))]
    return (
        f"sum by (cache, result) ({series.of(REQUESTS, *given)})",
        f"sum by (stage) ({series.of(SECONDS, *given)})",
        f"sum ({series.of(SAVED_BY_RULE, *given)})",
    )


def compiled_most(series: Series, asked: Mapping[str, str], most: int) -> str:
    """Jobs whose ranks compiled longest, all of them together."""
    each = f"max by (job_id, stage) ({series.of(COMPILE)})"
    return f"topk({most}, {of(f'sum by (job_id) ({each})', chosen(series, asked))})"


def of_all(
    rows: Sequence[tuple[Job, Figures]],
    as_of: float,
    *,
    requests: Mapping[str, CacheRow],
    stages: Mapping[str, float],
    saved_s: float,
) -> CacheTotals:
    """Totals of all jobs in the last hour, beside some jobs."""
    return CacheTotals(
        as_of=as_of,
        is_recorded=True,
        caches=requests,
        compile=stages,
        saved_s=saved_s,
        jobs=[job for job, _ in rows],
        compile_of_jobs={job.job_id: sum(_stages(known).values()) for job, known in rows},
    )


def of_some(rows: Sequence[tuple[Job, Figures]], as_of: float) -> CacheTotals:
    """Totals of some jobs since they began."""
    stages: Counter[str] = Counter()
    for _, known in rows:
        stages.update(_stages(known))
    jobs = [job for job, _ in rows]
    saved_s = sum(known.of(SAVED) or 0.0 for _, known in rows)
    found = of_all(rows, as_of, requests=together(jobs), stages=stages, saved_s=saved_s)
    return msgspec.structs.replace(found, is_recorded=False)


def together(jobs: Sequence[Job]) -> dict[str, CacheRow]:
    """The requests of some jobs so far, added up."""
    totals: dict[str, Counter[str]] = {}
    for job in jobs:
        for name, row in job.caches.items():
            found = {"hits": row.hits, "misses": row.misses, "bypasses": row.bypasses}
            totals.setdefault(name, Counter()).update(found)
    return {name: CacheRow(**found) for name, found in totals.items()}


def _stages(figures: Figures) -> dict[str, float]:
    return figures.by(COMPILE, "stage")
