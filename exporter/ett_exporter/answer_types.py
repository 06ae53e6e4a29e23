"""What the query API answers: immutable types, from which its description is generated.

Times are Unix seconds, names that end in `_s` hold seconds, in `_ratio` 0 to 1, in `_percent` 0
to 100.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ett_core.accounting import AttemptAccount, FailureAccount
from ett_core.checkpoint_log import CheckpointDetail
from ett_core.compile_log import CompileLine
from ett_core.decision_log import DecisionLine
from ett_core.failures import Diagnosis
from ett_core.fleet.losses import Losses
from ett_core.fleet.recurrence import Recurrence
from ett_core.step_lengths import StepTimes
from ett_core.throughput import Throughput


class Problem(msgspec.Struct, frozen=True):
    """Something did not work; `error` is a sentence that says what."""

    error: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Every answer tells its moment."""

    as_of: float


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


class Jobs(Answer, frozen=True, kw_only=True):
    """Jobs: `total` of them match, `next_offset` begins the next page (null at the end)."""

    jobs: Sequence[JobRow]
    total: int
    next_offset: int | None
    together: JobsTogether


class EvidenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line or fact that may explain a failure."""

    time: float
    rank: int
    node: str
    source: str
    text: str


class FailureRow(FailureAccount, frozen=True, kw_only=True):
    """One failed attempt: what it cost, why, and what was seen of it.

    `id` is its name in the API; `ending` one of failed, preempted, cancelled, timed_out; `retry`
    whether to try again, with what repeats taken into account.
    """

    id: str
    ending: str
    retry: str
    recurrence: Recurrence
    losses: Losses
    cause: str
    diagnosis: Diagnosis
    evidence: Sequence[EvidenceRow]


class StretchRow(msgspec.Struct, frozen=True, kw_only=True):
    """Time from `start` to `end`, shared evenly by `components` (seconds)."""

    start: float
    end: float
    attempt: int
    components: Mapping[str, float]


class Job(JobRow, frozen=True, kw_only=True):
    """One job in full."""

    as_of: float
    attempt_list: Sequence[AttemptAccount]
    failure_list: Sequence[FailureRow]
    timeline: Sequence[StretchRow]
    checkpoints: Sequence[CheckpointDetail]
    compile: Mapping[str, float]
    hidden: Mapping[str, float]
    counters: Mapping[str, float]
    step_times: StepTimes | None
    throughput: Throughput | None
    stalls: Sequence[Mapping[str, Any]]
    stragglers: Sequence[Mapping[str, Any]]
    step_spread: float | None
    async_saves: Mapping[str, Any]
    versions: Mapping[str, str]
    labels: Mapping[str, str]
    config_hash: str
    nodes: Mapping[int, str]
    areas: Mapping[str, float]
    resume_evidence: str | None
    not_saved: bool


class Compilations(Answer, frozen=True, kw_only=True):
    """What a job compiled: rows of the lowest rank of its latest attempts, in order; counts are of all ranks.

    `again`: compilations for which torch gave a reason why the graphs there were did not fit. `torch`: the
    version of torch, empty where the job did not tell it.
    """

    job_id: str
    torch: str
    count: int
    again: int
    compilations: Sequence[CompileLine]
    total: int
    next_offset: int | None


class Decisions(Answer, frozen=True, kw_only=True):
    """What the pipeline of a job decided, the latest first."""

    job_id: str
    decisions: Sequence[DecisionLine]
    total: int
    next_offset: int | None


class Timeline(Answer, frozen=True, kw_only=True):
    """Where the time of a job went, in order; neighbours are joined where `is_joined`."""

    job_id: str
    is_joined: bool
    stretches: Sequence[StretchRow]


class Attempts(Answer, frozen=True, kw_only=True):
    """The attempts of a job, in order."""

    job_id: str
    attempts: Sequence[AttemptAccount]


class RankRow(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of the latest attempt.

    `last_event_at`: its latest event of this attempt that names its node. `step_s` and `data_wait_s`
    are means over the latest minute that it reported steps in, a step each.
    """

    rank: int
    node: str
    first_batch_at: float | None
    last_event_at: float | None
    step_s: float | None
    data_wait_s: float | None
    is_straggler: bool


class Ranks(Answer, frozen=True, kw_only=True):
    """The ranks of the latest attempt, and the stragglers of all of them."""

    job_id: str
    attempt: int | None
    critical_rank: int | None
    step_spread: float | None
    ranks: Sequence[RankRow]
    stragglers: Sequence[Mapping[str, Any]]


class JobFailures(Answer, frozen=True, kw_only=True):
    """The failures of a job, in order."""

    job_id: str
    failures: Sequence[FailureRow]


class Checkpoints(Answer, frozen=True, kw_only=True):
    """The latest checkpoints of a job, and the totals over all of them."""

    job_id: str
    count: int
    durable_count: int
    failed_count: int
    blocking_s: float
    last_durable_at: float | None
    last_durable_step: int | None
    checkpoints: Sequence[CheckpointDetail]
    async_saves: Mapping[str, Any]


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


class Caches(Answer, frozen=True, kw_only=True):
    """The compile caches of many jobs, the latest to start first."""

    jobs: Sequence[CachesOfJob]
    total: int
    next_offset: int | None


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


class Fleet(Answer, frozen=True, kw_only=True):
    """Where the time of all jobs went between `begin` and `end`: all of it, and by group.

    `over_time`: equal parts of that time, where `buckets` asks for so many. `left_out`: jobs with time in
    it that are there for something else than `purpose`, by default for something else than training.
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
