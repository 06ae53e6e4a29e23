"""What the query API answers about one job: immutable types, as in `answer_types.py`."""

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
from ett_exporter.answer_types import Answer, JobRow


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
    """One job in full; `ett_percent_within`: ETT of its trailing windows alone."""

    as_of: float
    ett_percent_within: Mapping[str, float | None]
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
