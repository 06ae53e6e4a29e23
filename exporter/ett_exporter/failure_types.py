"""What the query API answers across jobs: failures and their groups, nodes, runs, what became worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_core.accounting import FailureAccount
from ett_core.failures import Diagnosis
from ett_core.fleet.families import Family
from ett_core.fleet.losses import Losses
from ett_core.fleet.nodes import Node
from ett_core.fleet.outbreaks import Outbreak
from ett_core.fleet.recurrence import Recurrence
from ett_core.fleet.regressions import Regression
from ett_exporter.answer_types import AnswerOfMany
from ett_exporter.job_types import EvidenceRow


class FailureOfJob(FailureAccount, frozen=True, kw_only=True):
    """One failure of the fleet, with the job that had it.

    `lost_accelerator_s`: unsaved, stalled and recovery seconds without queueing, times accelerators.
    `cost`: the same in money; null where no prices are set.
    """

    id: str
    ending: str
    retry: str
    recurrence: Recurrence
    losses: Losses
    lost_accelerator_s: float
    cost: float | None
    accelerator_type: str
    job_id: str
    job_name: str
    cluster: str
    team: str
    model: str
    accelerators: int
    cause: str
    diagnosis: Diagnosis


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Some failures together: their number and what they cost, and their shares of all.

    `cumulative_ratio` is the share of this group and those before it, by the order asked for.
    """

    key: str
    count: int
    jobs: int
    count_ratio: float
    lost_ratio: float | None
    cumulative_ratio: float | None
    unsaved_s: float
    stalled_s: float
    recovery_s: float
    lost_accelerator_s: float
    cost: float | None
    ttr_median_s: float | None
    first: float
    last: float


class FailureBucket(msgspec.Struct, frozen=True, kw_only=True):
    """Failures between two moments, by the key of their group: how many, and what they cost."""

    begin: float
    end: float
    counts: Mapping[str, int]
    lost_accelerator_s: Mapping[str, float]


class Failures(AnswerOfMany, frozen=True, kw_only=True):
    """Failures of many jobs, the latest first.

    `over_time`: equal parts of the time asked for, where `buckets` asks for so many.
    """

    failures: Sequence[FailureOfJob]
    total: int
    next_offset: int | None
    lost_accelerator_s: float
    cost: float | None
    group_by: str | None
    groups: Sequence[FailureGroup]
    over_time: Sequence[FailureBucket]


class FailureDetail(FailureOfJob, frozen=True, kw_only=True):
    """One failure with the lines that tell of it; `alike`: those before it in its row of equal ones."""

    as_of: float
    evidence: Sequence[EvidenceRow]
    alike: Sequence[str]


class Nodes(AnswerOfMany, frozen=True, kw_only=True):
    """The nodes at which failures between two moments point, the most suspicious first."""

    begin: float
    end: float
    nodes: Sequence[Node]
    total: int
    next_offset: int | None


class Regressions(AnswerOfMany, frozen=True, kw_only=True):
    """What became worse between two moments: components of runs, and failures that strike many."""

    begin: float
    end: float
    runs: int
    failures: int
    components: Sequence[Regression]
    outbreaks: Sequence[Outbreak]


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt whose loop began, as regressions see it.

    `figures` are seconds, and for `data_wait`, `checkpoint_blocking` and `recompile` shares of the
    loop (0 to 1). `family`: what it is compared with.
    """

    job_id: str
    attempt: int
    start: float
    family: str
    cluster: str
    owner: str
    accelerator_type: str
    world_size: int
    config_hash: str
    versions: Mapping[str, str]
    figures: Mapping[str, float]


class Runs(AnswerOfMany, frozen=True, kw_only=True):
    """Attempts that began between two moments, the latest first."""

    begin: float
    end: float
    runs: Sequence[RunRow]
    total: int
    next_offset: int | None


class Families(AnswerOfMany, frozen=True, kw_only=True):
    """Families of jobs with runs between two moments, the one with most jobs first."""

    begin: float
    end: float
    families: Sequence[Family]
