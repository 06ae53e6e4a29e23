"""Queries of the board of compile caches: hit rates beside the seconds that compiling takes."""

from __future__ import annotations

from ett_core.components import COMPONENTS, area_of
from ett_grafana.queries.parts import JOB, MODEL, any_of, grown_in_range, latest

_REQUESTS = "ett:compile_cache_requests:increase1h"
_OF_JOB = "ett_job_compile_cache_requests_total"


def _hit_rate(by: str, hits: str, asked: str) -> str:
    total = f"sum{by} ({asked})"
    return f"(sum{by} ({hits}) or 0 * {total}) / ({total} > 0)"


_HITS = f'{_REQUESTS}{{{MODEL}, result="hit"}}'
_ASKED = f'{_REQUESTS}{{{MODEL}, result=~"hit|miss"}}'
HIT_RATE = _hit_rate(" by (cache)", _HITS, _ASKED)
HIT_RATE_BY_MODEL = _hit_rate(" by (model)", _HITS, _ASKED)
HIT_RATE_NOW = _hit_rate("", _HITS, _ASKED)
REQUESTS = f"sum by (result) ({_REQUESTS}{{{MODEL}}})"
SECONDS = f"sum by (stage) (ett:compile_seconds:increase1h{{{MODEL}}})"
SECONDS_BY_MODEL = f"sort_desc(sum by (model) (ett:compile_seconds:increase1h{{{MODEL}}}))"
SAVED = f"sum (ett:compile_cache_saved_seconds:increase1h{{{MODEL}}})"
COMPILING = f"sum (ett:compile_seconds:increase1h{{{MODEL}}})"
JOB_HIT_RATE = _hit_rate(
    " by (job_id, cache)",
    grown_in_range(f'{_OF_JOB}{{{JOB}, result="hit"}}'),
    grown_in_range(f'{_OF_JOB}{{{JOB}, result=~"hit|miss"}}'),
)
JOB_SECONDS = f"sum by (job_id, stage) ({grown_in_range(f'ett_job_compile_seconds_total{{{JOB}}}')})"
JOB_REQUESTS = f"sum by (job_id, cache, result) ({grown_in_range(f'{_OF_JOB}{{{JOB}}}')})"
JOB_SAVED = grown_in_range(f"ett_job_compile_cache_saved_seconds_total{{{JOB}}}")
JOB_REMOTE = grown_in_range(f"ett_job_compile_remote_requests_total{{{JOB}}}")
_COMPILING = any_of(tuple(c for c in COMPONENTS if area_of(c) == "PT2 compilation"))
_COMPILE_TIME = latest(f'ett_job_component_seconds{{{JOB}, component=~"{_COMPILING}"}}')
JOB_COMPILE_TIME = f"sum by (job_id, component) ({_COMPILE_TIME})"
