"""What the query API answers about caches by run, checkpoint intervals and what-if questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_core.fleet.cache_compare import Difference
from ett_exporter.answer_types import Answer, AnswerOfMany
from ett_exporter.cache_types import CacheRow


class CacheRunRow(msgspec.Struct, frozen=True, kw_only=True):
    """The compile caches of one run (one attempt), and what was compiled all the same.

    `compile_s`, `cache_load_s`: wall seconds that its start or recovery waited; `hidden_compile_s`:
    compiled on another track meanwhile; `recompile_s`: in the loop. `verdict`: warm, partly, cold,
    hollow (hits, yet compiled), silent (no cache told anything) or nothing (compiled nothing).
    `because` says why it was expected to be warm; `alike` is the latest warm run of its family before.
    """

    id: str
    job_id: str
    job_name: str
    attempt: int
    start: float
    family: str
    cluster: str
    team: str
    model: str
    accelerator_type: str
    world_size: int
    nodes: Sequence[str]
    config_hash: str
    versions: Mapping[str, str]
    caches: Mapping[str, CacheRow]
    hit_ratio: float | None
    bytes: int
    saved_s: float
    compile_s: float
    hidden_compile_s: float
    recompile_s: float
    cache_load_s: float
    verdict: str
    expected_warm: bool
    because: str
    alike: str


class CacheRuns(AnswerOfMany, frozen=True, kw_only=True):
    """Runs, the latest first; `verdicts` and `surprises` count all that match, not those of the page."""

    runs: Sequence[CacheRunRow]
    total: int
    next_offset: int | None
    verdicts: Mapping[str, int]
    surprises: int


class CacheComparison(Answer, frozen=True, kw_only=True):
    """Two runs side by side; `reasons` say why the colder one, `cold`, was not as warm as the other."""

    one: CacheRunRow
    two: CacheRunRow
    cold: str
    differences: Sequence[Difference]
    reasons: Sequence[str]


class IntervalRow(msgspec.Struct, frozen=True, kw_only=True):
    """How one job saves, and how it should.

    `interval_s`: median seconds between its latest saves (of its only save: `loop_s`);
    `failures`: those that struck in its loop; `blocking_s`: of one save; `slowed_s`: by how much one in
    the background slows the steps beside it (null: nobody can tell, and blocking alone counts); `best_s`
    from these, null without a failure;
    `shortest_s` and `longest_s` hold the best with 90 % confidence (null: no longest).
    `blocked_s`, `unsaved_s`, `recovery_s`: what saves blocked, what failures took, and the way back, in
    all. `loop_s`: seconds in which its loop went on, stalls aside. Of these `wasted_percent` is blocked,
    slowed by all saves, and unsaved as measured, `best_percent` what the best interval would waste by the
    model; `excess_accelerator_s` the difference, times accelerators.
    """

    job_id: str
    job_name: str
    team: str
    model: str
    cluster: str
    state: str
    finished: bool
    accelerators: int
    saves: int
    failures: int
    wall_s: float
    loop_s: float
    interval_s: float
    blocking_s: float
    slowed_s: float | None
    upload_s: float | None
    blocked_s: float
    unsaved_s: float
    recovery_s: float
    best_s: float | None
    shortest_s: float
    longest_s: float | None
    wasted_percent: float
    best_percent: float | None
    excess_accelerator_s: float


class Intervals(AnswerOfMany, frozen=True, kw_only=True):
    """Jobs that save, those first whose interval costs most beyond the best."""

    jobs: Sequence[IntervalRow]
    total: int
    next_offset: int | None


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    """Weighted time of all jobs: by component and group, each adding up to `total`."""

    total: float
    effective_ratio: float | None
    components: Mapping[str, float]
    groups: Mapping[str, float]


class LeverRow(msgspec.Struct, frozen=True, kw_only=True):
    """One lever alone: `saved` time of the `total`, and by how much the effective ratio rises."""

    key: str
    supposes: str
    saved: float
    effective_ratio: float | None
    gain_ratio: float | None


class WhatIf(AnswerOfMany, frozen=True, kw_only=True):
    """The time of all jobs without some of its losses, the useful training being the same.

    Seconds (weight `job`), held accelerator-seconds (`accelerator`) or money (`cost`). `together` is
    with all `levers`; `overlap` is how much less they save together than each alone added up.
    `warm_runs`: runs that tell how long a warm start compiles; `between_failures_s`: training seconds
    of one job between two failures, null without one.
    """

    begin: float
    end: float
    weight: str
    jobs: int
    levers: Sequence[str]
    now: Sum
    together: Sum
    saved: float
    overlap: float
    alone: Sequence[LeverRow]
    warm_runs: int
    between_failures_s: float | None
