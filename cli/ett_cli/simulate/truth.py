"""The truth of a simulated job, as it is written beside its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class FailureTruth(msgspec.Struct):
    """A failure as it was meant: what, when, where, what it cost. Times in Unix seconds."""

    attempt: int
    time: float
    failure_class: str
    domain: str
    rank: int | None
    node: str
    unsaved_s: float = 0.0
    ttr_s: float | None = None


class SlowTruth(msgspec.Struct):
    """A rank that became slower than the others. Times in Unix seconds."""

    attempt: int
    rank: int
    begin: float
    cause: str
    """`data_wait`: it waited for its data; `step`: its steps took longer."""
    factor: float


class SavesTruth(msgspec.Struct):
    """Checkpoints of a job."""

    saved: int = 0
    durable: int = 0
    failed: int = 0
    blocking_s: float = 0.0
    slowed_s: float = 0.0
    """By how much reported steps took longer beside all of them together."""


class JobTruth(msgspec.Struct, kw_only=True):
    """Everything that is true of a job at a moment. Seconds by component add up to `wall_s`."""

    job_id: str
    labels: Mapping[str, str]
    accelerators: int
    start: float
    end: float
    wall_s: float
    finished: bool
    outcome: str
    """running, lost, recovering, succeeded, failed, cancelled or timed_out."""
    components: Mapping[str, float]
    ett_percent: float | None
    tts_s: float | None
    ttr_s: Sequence[float | None]
    unsaved_exposure_s: float | None
    failures: Sequence[FailureTruth]
    incidents: Mapping[str, int]
    """What was seen and ended nothing, by class."""
    slow_ranks: Sequence[SlowTruth]
    attempts: int
    uncounted: int
    """Attempts that say the number of the attempt before."""
    step: int
    samples: float
    saves: SavesTruth
    caches: Mapping[str, Mapping[str, int]]
    compile_s: Mapping[str, float]
    """Seconds by stage, summed over the ranks that report."""
    events: int
