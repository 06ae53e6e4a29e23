"""What the query API answers: immutable types, from which its description is generated.

Times are Unix seconds, names that end in `_s` hold seconds, in `_ratio` 0 to 1, in `_percent` 0
to 100.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """Something did not work; `error` is a sentence that says what."""

    error: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Every answer tells its moment."""

    as_of: float


class AnswerOfMany(Answer, frozen=True, kw_only=True):
    """An answer about many jobs.

    `missing`: jobs that the exporter has not read yet since its start, and of which it says nothing here.
    """

    missing: int = 0


class CacheCounts(msgspec.Struct, frozen=True):
    """Requests of one kind of compile cache, summed over the processes of a job."""

    hits: int
    misses: int
    bypasses: int


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """One job in one row.

    `failures`: attempts that ended before they were through; `infra_failures`: those of them whose
    cause is of domain infrastructure or platform; `purpose`: training, unless the job says otherwise.
    """

    job_id: str
    job_name: str
    team: str
    model: str
    cluster: str
    scheduler: str
    purpose: str
    accelerator_type: str
    accelerators: int
    world_size: int
    state: str
    state_since: float
    finished: bool
    start: float
    end: float
    wall_s: float
    components: Mapping[str, float]
    groups: Mapping[str, float]
    ett_percent: float | None
    tts_s: float | None
    ttr_s: Sequence[float | None]
    failures: int
    infra_failures: int
    attempts: int
    unsaved_exposure_s: float | None
    attempt: int | None
    step: int | None
    samples: float
    last_progress_at: float | None
    last_event_at: float
    caches: Mapping[str, CacheCounts]
    checkpoint_blocking_s: float
    checkpoint_count: int
    last_durable_at: float | None
    last_durable_step: int | None


class JobsTogether(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs that match, whichever of them are shown.

    `states` counts jobs by state; `live` are those that are not over, `in_trouble` those of them that
    somebody should look at; `unsaved_exposure_s` is the training that would be lost if all live ones died.
    """

    states: Mapping[str, int]
    live: int
    in_trouble: int
    unsaved_exposure_s: float


class Jobs(AnswerOfMany, frozen=True, kw_only=True):
    """Jobs: `total` of them match, `next_offset` begins the next page (null at the end).

    `missing`: jobs that the exporter has not read yet since its start, and of which it says nothing here.
    """

    jobs: Sequence[JobRow]
    total: int
    next_offset: int | None
    together: JobsTogether


class Quantiles(msgspec.Struct, frozen=True, kw_only=True):
    """Quantiles of some durations in seconds; null without any."""

    count: int
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    max_s: float | None


class FleetGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The time of some jobs, weighted.

    `components`, `groups` and `areas` hold seconds (weight `job`), accelerator-seconds
    (`accelerator`) or money (`cost`); each adds up to `total`. `effective_ratio` is ETT.
    """

    key: str
    jobs: int
    total: float
    effective_ratio: float | None
    components: Mapping[str, float]
    groups: Mapping[str, float]
    areas: Mapping[str, float]
    failures: int
    tts: Quantiles
    ttr: Quantiles


class FleetPart(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of all jobs went in one part of the time asked for: all of it, and by group."""

    begin: float
    end: float
    all: FleetGroup
    fleet: Sequence[FleetGroup]


class Fleet(AnswerOfMany, frozen=True, kw_only=True):
    """Where the time of all jobs went between `begin` and `end`: all of it, and by group.

    `over_time`: equal parts of that time, where `buckets` asks for so many. `left_out`: jobs with time in
    it that are there for something else than `purpose`, by default for something else than training.
    `missing`: jobs that are in no figure here, as the exporter has not read them yet, since its start or for
    this time: ask again, and there are fewer.
    """

    begin: float
    end: float
    weight: str
    group_by: str | None
    all: FleetGroup
    fleet: Sequence[FleetGroup]
    over_time: Sequence[FleetPart]
    left_out: int


class Changes(Answer, frozen=True, kw_only=True):
    """Jobs that changed since a cursor; `is_all` where that cursor says nothing here.

    `cursor` is for the next request; `more`: there are further changes already. `job_ids` names the jobs
    whose rows `jobs` holds, if rows were asked for.
    """

    cursor: str
    is_all: bool
    more: bool
    job_ids: Sequence[str]
    jobs: Sequence[JobRow]


class Health(Answer, frozen=True, kw_only=True):
    """How the exporter is."""

    status: str
    version: str
    started_at: float
    jobs: int
    events: int
    segments: int
    duplicates: int
    rejected_lines: int
    refused_requests: int
    store_write_mean_s: float | None
