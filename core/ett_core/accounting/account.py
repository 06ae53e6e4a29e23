"""The answer of the accounting: who owns each second of a job, as known at one moment.

These are values: a fold (`JobFold`) makes them, every view reads them. Times are Unix seconds,
durations seconds. Inside, amounts are whole nanoseconds, so that parts add up exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_core.components import BETWEEN_ATTEMPTS, COMPONENTS, TRAINING, UNOBSERVED, group_seconds

NS = 1_000_000_000
FAILED = "failed"
"""The outcome of an attempt that ended in a failure."""


class Stretch(msgspec.Struct, frozen=True, gc=False):
    """Time from `start_ns` to `end_ns` whose components are spread evenly over it.

    `shares` holds (component, nanoseconds); they add up to the length of the stretch.
    """

    start_ns: int
    end_ns: int
    attempt: int
    shares: tuple[tuple[str, int], ...]

    def until(self, at_ns: int) -> dict[str, int]:
        """Nanoseconds of each component between the start of the stretch and `at_ns`.

        >>> Stretch(0, 10, 0, (("data_wait", 4), ("training", 6))).until(5)
        {'data_wait': 2, 'training': 3}
        """
        length = self.end_ns - self.start_ns
        passed = min(max(at_ns - self.start_ns, 0), length)
        amounts: dict[str, int] = {}
        shared, given = 0, 0
        for component, share in self.shares:
            shared += share
            upto = shared * passed // length if length else 0
            amounts[component] = upto - given
            given = upto
        return amounts

    def cut(self, low_ns: int, high_ns: int) -> Stretch:
        """The part of the stretch between two moments.

        >>> Stretch(0, 10, 0, (("data_wait", 4), ("training", 6))).cut(5, 20)
        Stretch(start_ns=5, end_ns=10, attempt=0, shares=(('data_wait', 2), ('training', 3)))
        """
        if low_ns <= self.start_ns and high_ns >= self.end_ns:
            return self
        before, after = self.until(low_ns), self.until(high_ns)
        shares = tuple((c, after[c] - before[c]) for c in after if after[c] != before[c])
        return Stretch(max(low_ns, self.start_ns), min(high_ns, self.end_ns), self.attempt, shares)


class FailureAccount(msgspec.Struct, frozen=True):
    """One failed attempt: when, who said so, what it cost.

    `ttr_s` is None until a loop begins again. `fallback_step` is the step that the job fell
    back to, None where unknown; `resume_evidence` says how it is known: `reported` by the next
    attempt, `durable` from the checkpoints, or `unknown`.
    """

    attempt: int
    time: float
    rank: int | None
    node: str
    exception: str | None
    message: str | None
    exit_code: int | None
    signal: int | None
    status: str | None
    """The status of the `attempt_end` that told of it; None where a `failure` or silence did."""
    silent: bool
    """True where nobody reported it: the attempt fell silent or another one replaced it."""
    ttr_s: float | None
    unsaved_s: float
    fallback_step: int | None
    resume_evidence: str


class AttemptAccount(msgspec.Struct, frozen=True):
    """One attempt of a job. `outcome`: running, succeeded, failed, cancelled or timed_out."""

    attempt: int
    start: float
    end: float
    loop_start: float | None
    outcome: str
    observed: bool
    critical_rank: int | None
    leader: int | None
    world_size: int
    accelerators: int
    accelerator_type: str
    resumed_step: int | None
    last_step: int | None
    first_batch_at: Mapping[int, float]
    """First batch by rank: who was last to start."""
    hidden: Mapping[str, float]
    """Seconds of initialisation that another track hid, by phase: the gain of overlapping."""
    components: Mapping[str, float]
    after: Mapping[str, float] = {}
    """Seconds by component from its end to the start of the next attempt, or to the end of the job."""


class JobAccount(msgspec.Struct, frozen=True):
    """Everything that is known of where a job's time went, as of `as_of`.

    `components` holds seconds by component, without those that are zero; together they are
    `wall_s`. `state` is one of the states of `ett_job_state`.
    """

    job_id: str
    as_of: float
    start: float
    end: float
    wall_s: float
    """Wall time of the job in seconds: the sum of its components."""
    finished: bool
    state: str
    state_since: float
    components: Mapping[str, float]
    tts_s: float | None
    ttr_s: Sequence[float | None]
    failures: Sequence[FailureAccount]
    attempts: Sequence[AttemptAccount]
    resume_evidence: str | None
    """The weakest evidence of any fallback (`unknown`, `durable`, `reported`); None without one."""
    not_saved: bool
    """True where a job ended by decision and training after its last checkpoint was kept."""
    unsaved_exposure_s: float | None
    """Training that would be lost if the job died at `as_of`; None where no checkpoint was spoken of."""
    last_progress_at: float | None
    last_event_at: float
    step: int | None
    survived_failures: int
    """Failures of single ranks that training outlived."""
    final: Mapping[str, float] = {}
    """Seconds by component that only a fallback or a late event takes back: training whose steps are
    durable (all that is left of it once the job is over), of the rest what a later event has closed."""

    @property
    def groups(self) -> dict[str, float]:
        """Seconds by group: effective, idleness, failure, unknown."""
        return group_seconds(self.components)

    @property
    def loop_failures(self) -> int:
        """Failures that struck in a loop; one before it took no training, however seldom the job saves."""
        return sum(each.outcome == FAILED and each.loop_start is not None for each in self.attempts)

    @property
    def ett_percent(self) -> float | None:
        """Share of the wall time spent training, in percent; None where nobody observed it."""
        return ett_percent(self.components)


def ett_percent(components: Mapping[str, float]) -> float | None:
    """ETT% of seconds by component; None where no attempt was observed, or there is no time.

    >>> ett_percent({"training": 30.0, "data_wait": 10.0})
    75.0
    >>> ett_percent({"unobserved": 5.0, "recover.restart": 1.0}) is None
    True
    """
    total = sum(components.values())
    if total <= 0 or (UNOBSERVED in components and components.keys() <= _NOT_OBSERVED):
        return None
    return 100.0 * components.get(TRAINING, 0.0) / total


_NOT_OBSERVED = BETWEEN_ATTEMPTS | {UNOBSERVED}


def in_seconds(amounts_ns: Mapping[str, int]) -> dict[str, float]:
    """Seconds by component in display order, from nanoseconds, without those that are zero."""
    return {c: seconds(amounts_ns[c]) for c in COMPONENTS if amounts_ns.get(c)}


def in_nanoseconds(amounts: Mapping[str, float]) -> dict[str, int]:
    """Whole nanoseconds by component, from seconds."""
    return {component: nanoseconds(amount) for component, amount in amounts.items()}


def seconds(amount_ns: int) -> float:
    """Seconds of an amount of nanoseconds."""
    return amount_ns / NS


def nanoseconds(moment: float) -> int:
    """Whole nanoseconds of seconds."""
    return round(moment * NS)
