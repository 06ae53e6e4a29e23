"""What the query API answers, as immutable rows.

Fields that this version does not know are ignored; those that an older exporter leaves out take
their default. Times are Unix seconds, durations seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_core.accounting.account import AttemptAccount, FailureAccount
from ett_core.failures import Diagnosis
from ett_core.purposes import TRAINING
from ett_core.throughput import Throughput


class CacheRow(msgspec.Struct, frozen=True):
    """Requests of one kind of compile cache so far."""

    hits: int = 0
    misses: int = 0
    bypasses: int = 0

    @property
    def hit_percent(self) -> float | None:
        """Hits in hits and misses; None where nothing was asked."""
        asked = self.hits + self.misses
        return 100.0 * self.hits / asked if asked else None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One job as the fleet list tells of it."""

    job_id: str
    state: str
    job_name: str | None = None
    team: str | None = None
    model: str | None = None
    cluster: str | None = None
    scheduler: str | None = None
    purpose: str = TRAINING
    accelerator_type: str | None = None
    accelerators: int | None = None
    world_size: int | None = None
    state_since: float | None = None
    finished: bool = False
    start: float
    end: float
    wall_s: float
    components: dict[str, float]
    ett_percent: float | None = None
    tts_s: float | None = None
    ttr_s: list[float | None] = []
    failures: int = 0
    attempts: int = 0
    attempt: int | None = None
    step: int | None = None
    samples: float | None = None
    last_progress_at: float | None = None
    last_event_at: float | None = None
    unsaved_exposure_s: float | None = None
    checkpoint_blocking_s: float | None = None
    checkpoint_count: int | None = None
    last_durable_at: float | None = None
    last_durable_step: int | None = None
    caches: dict[str, CacheRow] = {}

    @property
    def title(self) -> str:
        """The name that people gave the job, else its identity."""
        return self.job_name or self.job_id


class JobsTogether(msgspec.Struct, frozen=True):
    """All jobs that match a question, whichever of them are shown."""

    states: Mapping[str, int] = {}
    live: int = 0
    in_trouble: int = 0
    unsaved_exposure_s: float = 0.0


class FleetAnswer(msgspec.Struct, frozen=True):
    """The answer of `GET /api/v1/jobs`: some rows, and what all `total` that match are together."""

    as_of: float
    jobs: list[Job]
    total: int = 0
    together: JobsTogether = JobsTogether()

    @property
    def lasts(self) -> bool:
        """Whether the answer stays as it is until something new comes of any job."""
        return bool(self.together.states) and not self.together.live


class Group(msgspec.Struct, frozen=True):
    """Jobs that share a label; `key` is its word, empty where they have none."""

    key: str


class Groups(msgspec.Struct, frozen=True):
    """The groups of the answer of `GET /api/v1/fleet`."""

    fleet: list[Group]


class EvidenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line or fact that may explain a failure."""

    time: float
    rank: int | None = None
    node: str | None = None
    source: str | None = None
    text: str = ""


class FailureRow(FailureAccount, frozen=True, kw_only=True):
    """One failed attempt with its cause in words and the lines that tell of it."""

    id: str = ""
    cause: str = ""
    evidence: Sequence[EvidenceRow] = ()
    diagnosis: Diagnosis | None = None

    @property
    def first_rank(self) -> int | None:
        """The rank that it began with, as far as it was diagnosed; None where no rank is known."""
        rank = None if self.diagnosis is None else self.diagnosis.rank
        return None if rank is None or rank < 0 else rank

    @property
    def first_node(self) -> str:
        """The node that it began on; empty where it is not known."""
        return "" if self.diagnosis is None else self.diagnosis.node


class StretchRow(msgspec.Struct, frozen=True, kw_only=True):
    """Time between two moments, shared evenly by `components` (seconds)."""

    start: float
    end: float
    attempt: int
    components: dict[str, float]


class Stretches(msgspec.Struct, frozen=True):
    """The answer of `GET /api/v1/jobs/{job_id}/timeline`."""

    stretches: Sequence[StretchRow]


class CheckpointRow(msgspec.Struct, frozen=True, kw_only=True):
    """One save: what it blocked, and since when it would survive."""

    time: float
    step: int
    mode: str | None = None
    blocking_s: float | None = None
    bytes: int | None = None
    durable_at: float | None = None
    failed: bool | str | None = None

    @property
    def durable_after_s(self) -> float | None:
        """How long after it was made it would survive a failure; None where it does not so far."""
        return None if self.durable_at is None else max(self.durable_at - self.time, 0.0)


class StepTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long steps took without data wait, over all ranks and attempts."""

    timed: int = 0
    p50_s: float | None = None
    p99_s: float | None = None
    max_s: float | None = None


class JobDetail(Job, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/jobs/{job_id}`."""

    as_of: float | None = None
    ett_percent_within: dict[str, float | None] = {}
    attempt_list: list[AttemptAccount] = []
    failure_list: Sequence[FailureRow] = ()
    timeline: list[StretchRow] = []
    checkpoints: list[CheckpointRow] = []
    compile: dict[str, float] = {}
    counters: dict[str, float] = {}
    step_times: StepTimes | None = None
    throughput: Throughput | None = None
    versions: dict[str, str] = {}
    labels: dict[str, str] = {}
    areas: dict[str, float] = {}
    resume_evidence: str | None = None
    not_saved: bool = False

    @property
    def lasts(self) -> bool:
        """Whether the answer stays as it is until something new comes of the job."""
        return self.finished

    @property
    def known_at(self) -> float:
        """The moment for which the answer stands."""
        return self.end if self.as_of is None else self.as_of
