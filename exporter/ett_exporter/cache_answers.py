"""From views of jobs to what their compile caches did: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ett_core.components import RECOMPILE
from ett_core.fleet.caches import hit_ratio
from ett_core.process_totals import CacheTotals
from ett_exporter.cache_types import CacheRow, CachesOfJob, JobCaches
from ett_exporter.views import JobView

Fields: TypeAlias = dict[str, Any]

COMPILE_COMPONENTS = ("start.compile", "recover.compile", RECOMPILE)
CACHE_LOAD_COMPONENTS = ("start.cache_load", "recover.cache_load")


def caches_of_job(view: JobView) -> CachesOfJob:
    """The compile caches of a job."""
    return CachesOfJob(**_caches(view))


def job_caches_answer(view: JobView) -> JobCaches:
    """The same as an answer of its own."""
    return JobCaches(as_of=view.account.as_of, **_caches(view))


def cache_row(total: CacheTotals) -> CacheRow:
    """The totals of one cache."""
    return CacheRow(
        hits=total.hits,
        misses=total.misses,
        bypasses=total.bypasses,
        saved_s=total.saved_s,
        bytes=total.bytes,
        hit_ratio=hit_ratio([total]),
    )


def _caches(view: JobView) -> Fields:
    account, details = view.account, view.details
    totals = list(details.caches.values())
    return {
        "job_id": account.job_id,
        "job_name": view.label("job_name") or account.job_id,
        **{name: view.label(name) for name in ("cluster", "team", "model")},
        "start": account.start,
        "config_hash": details.config_hash,
        "versions": details.versions,
        "hit_ratio": hit_ratio(totals),
        "caches": {name: cache_row(total) for name, total in details.caches.items()},
        "compile_s": details.compile_s,
        "compile_wall_s": _sum(account.components, COMPILE_COMPONENTS),
        "cache_load_wall_s": _sum(account.components, CACHE_LOAD_COMPONENTS),
    }


def _sum(components: Mapping[str, float], names: Iterable[str]) -> float:
    return sum(components.get(name, 0.0) for name in names)
