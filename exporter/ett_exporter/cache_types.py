"""What the query API answers about compile caches: immutable types, as in `answer_types.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_exporter.answer_types import AnswerOfMany


class CacheRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of compile cache; `hit_ratio` of its hits and misses, null without any."""

    hits: int
    misses: int
    bypasses: int
    saved_s: float
    bytes: int
    hit_ratio: float | None


class CachesOfJob(msgspec.Struct, frozen=True, kw_only=True):
    """The compile caches of one job, and what was compiled all the same.

    `compile_s`: seconds by stage, summed over ranks. `compile_wall_s`: wall seconds of the job in
    `start.compile`, `recover.compile` and `recompile`; `cache_load_wall_s` in loading caches.
    """

    job_id: str
    job_name: str
    cluster: str
    team: str
    model: str
    start: float
    config_hash: str
    versions: Mapping[str, str]
    hit_ratio: float | None
    caches: Mapping[str, CacheRow]
    compile_s: Mapping[str, float]
    compile_wall_s: float
    cache_load_wall_s: float


class JobCaches(CachesOfJob, frozen=True, kw_only=True):
    """The compile caches of one job."""

    as_of: float


class Caches(AnswerOfMany, frozen=True, kw_only=True):
    """The compile caches of many jobs, the latest to start first."""

    jobs: Sequence[CachesOfJob]
    total: int
    next_offset: int | None
