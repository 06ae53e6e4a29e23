"""One job at one moment: values that readers share, read from its folds. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from ett_core.accounting import FailureAccount, JobAccount, Stretch
from ett_core.checkpoint_log import NONE, CheckpointDetail, Durable
from ett_core.compile_log import Compilations
from ett_core.components import RECOVER_QUEUE
from ett_core.decision_log import DecisionLine
from ett_core.details import JobDetails
from ett_core.evidence_log import EvidenceLine
from ett_core.failures import Diagnosis
from ett_core.fleet.endings import cause_words
from ett_core.growing import Distribution, highest
from ett_core.paces import Pace
from ett_core.process_totals import CacheTotals
from ett_core.purposes import purpose_of
from ett_core.save_costs import SaveInterference
from ett_core.starts import Start
from ett_core.step_lengths import StepTimes
from ett_core.throughput import Throughput

WINDOWS_S: Mapping[str, float] = MappingProxyType({"1h": 3600.0, "24h": 86_400.0, "7d": 604_800.0})


class DetailsView(msgspec.Struct, frozen=True):
    """What is known of a job beside its time, at one moment."""

    labels: Mapping[str, str]
    versions: Mapping[str, str]
    config_hash: str
    world_size: int
    accelerators: int
    accelerator_type: str
    samples: float
    checkpoint_count: int
    checkpoint_blocking_s: float
    checkpoint_durable_count: int
    checkpoint_failed_count: int
    last_durable: Durable | None
    caches: Mapping[str, CacheTotals]
    compile_s: Mapping[str, float]
    counters: Mapping[str, float]
    step_times: StepTimes | None
    starts: Mapping[int, Start] = {}
    """What each of the latest attempts runs on, by its number."""
    remote_requests: int = 0
    """Requests to remote compile caches."""
    checkpoint_interval_s: float | None = None
    """Median time between the latest checkpoints."""
    checkpoint_blocking: Distribution = NONE
    """How long checkpoints blocked, of those of which nothing more is expected."""
    checkpoint_upload_s: float | None = None
    """Median time from a save to its durability, of the latest checkpoints."""
    checkpoint_slowed_s: float | None = None
    """By how much one save in the background slows the steps beside it; None where nobody can tell."""
    run_caches: Mapping[int, Mapping[str, CacheTotals]] = {}
    """Totals by cache of each of the latest attempts."""
    checkpoint_failures: int = 0
    """Failed checkpoints whose failure has lasted, as far as one can tell at `account`'s last event."""


class Counts(msgspec.Struct, frozen=True):
    """What a job counts, for counters: no number ever falls."""

    failures: Mapping[str, int] = {}
    """Failures whose cause has settled, by domain."""
    recovered: int = 0
    """Failures after which a loop began again."""
    recovered_s: float = 0.0
    checkpoints_failed: int = 0
    """Checkpoints whose failure has lasted."""

    def or_more(self, others: Counts) -> Counts:
        """Of each number the larger one."""
        return Counts(
            highest(self.failures, others.failures),
            max(self.recovered, others.recovered),
            max(self.recovered_s, others.recovered_s),
            max(self.checkpoints_failed, others.checkpoints_failed),
        )


class JobView(msgspec.Struct, frozen=True, weakref=True):
    """One job at one moment: its account, its details, its trailing windows."""

    account: JobAccount
    details: DetailsView
    windows: Mapping[str, Mapping[str, float]]
    """Seconds by component in the trailing windows `1h`, `24h`, `7d`."""
    diagnoses: Sequence[Diagnosis] = ()
    """Why each of the account's failures happened, in its order."""
    causes: Mapping[int, str] = {}
    """By place among the failures the causes in short words to which a launcher adds something."""
    counts: Counts = Counts()

    def label(self, name: str) -> str:
        """A label of the job, empty where it has none."""
        return self.details.labels.get(name, "")

    @property
    def purpose(self) -> str:
        """What the job is there for: training, unless it says otherwise."""
        return purpose_of(self.details.labels)

    def cause(self, place: int, failure: FailureAccount, diagnosis: Diagnosis) -> str:
        """What ended the attempt of the failure at a place, in short words."""
        return self.causes.get(place) or cause_words(failure, diagnosis)

    @property
    def accelerator_weight(self) -> int:
        """Accelerators the job holds; where it says none, its ranks; at least 1."""
        return self.details.accelerators or self.details.world_size or 1


class JobPage(msgspec.Struct, frozen=True):
    """One job at one moment with everything that its own page shows."""

    view: JobView
    timeline: Sequence[Stretch]
    checkpoints: Sequence[CheckpointDetail]
    evidence: Mapping[int, Sequence[EvidenceLine]]
    """By place among the failures what was told of the attempt of each."""
    nodes: Mapping[int, str]
    stalls: Sequence[Mapping[str, Any]]
    stragglers: Sequence[Mapping[str, Any]]
    step_spread: float | None
    async_saves: Sequence[SaveInterference]
    heard_at: Mapping[int, float] = {}
    """When each rank of the latest attempt was last heard of."""
    paces: Mapping[int, Pace] = {}
    """The latest step times of the ranks of the latest attempt."""
    throughput: Throughput | None = None
    compilations: Compilations | None = None
    decisions: Sequence[DecisionLine] = ()
    """The latest, in order."""


SETTLED_AFTER_S = 120.0
"""A failure counts once its job trains again, or this long after it; so does what a checkpoint cost."""


def has_settled(failure: FailureAccount, as_of: float) -> bool:
    """Whether the cause of a failure is not expected to change any more."""
    return failure.ttr_s is not None or as_of - failure.time >= SETTLED_AFTER_S


def can_rest(view: JobView, now: float) -> bool:
    """Whether a job is over and no trailing window begins within it."""
    account = view.account
    if not account.finished or now < account.as_of:
        return False
    return not any(account.start < now - length_s < account.end for length_s in WINDOWS_S.values())


def counts_of(
    account: JobAccount, diagnoses: Sequence[Diagnosis], details: DetailsView, before: Counts
) -> Counts:
    """What the job counts, at least what it counted `before`."""
    settled = [
        why.domain
        for failure, why in zip(account.failures, diagnoses, strict=True)
        if has_settled(failure, account.as_of)
    ]
    recovered = [ttr_s for ttr_s in account.ttr_s if ttr_s is not None]
    now = Counts(Counter(settled), len(recovered), sum(recovered), details.checkpoint_failures)
    return before.or_more(now)


def details_view(details: JobDetails, account: JobAccount | None = None) -> DetailsView:
    """A copy of the details that no later event changes; `account` says up to when they are settled."""
    heard = -math.inf
    if account is not None:
        heard = math.inf if account.finished else account.last_event_at
    starts, checkpoints, processes = details.starts, details.checkpoints, details.processes
    return DetailsView(
        labels=starts.labels,
        versions=starts.versions,
        config_hash=starts.config_hash,
        world_size=starts.world_size,
        accelerators=starts.accelerators,
        accelerator_type=starts.accelerator_type,
        samples=details.samples,
        checkpoint_count=checkpoints.count,
        checkpoint_blocking_s=checkpoints.blocking_s,
        checkpoint_durable_count=checkpoints.durable_count,
        checkpoint_failed_count=checkpoints.failed_count,
        checkpoint_failures=checkpoints.failures(heard),
        last_durable=checkpoints.last_durable,
        caches=processes.caches,
        compile_s=dict(details.compile_s),
        counters=processes.counters,
        step_times=details.steps.read(),
        starts=starts.by_attempt,
        remote_requests=details.remote_requests,
        checkpoint_interval_s=checkpoints.usual().interval_s,
        checkpoint_blocking=checkpoints.blocking(heard - SETTLED_AFTER_S),
        checkpoint_upload_s=checkpoints.usual().upload_s,
        checkpoint_slowed_s=details.async_saves.slowed_s,
        run_caches=processes.run_caches,
    )


def held_seconds(components: Mapping[str, float]) -> float:
    """Seconds in which the hardware was held: all but the queueing after a failure.

    >>> held_seconds({"training": 10.0, "recover.queue": 5.0})
    10.0
    """
    return sum(components.values()) - components.get(RECOVER_QUEUE, 0.0)
