"""What the time of a fleet would have been without some of its losses: from stored accounts. Pure.

The same useful training is done, with less around it: a lever takes seconds away, training stays, and
what is left is the new wall time, so the partition adds up as before. Levers overlap (a failure that
never happened has no recovery to halve), hence all of them are applied to each second at once, and
what they save together is not the sum of what each saves alone.

    failure:CLASS   no failure of the class: no unsaved training, stall or recovery charged to it
    recovery        every second of recovery takes half as long
    caches          each start and recovery compiles and loads caches as long as warm runs of its family
    publishing      nobody waits for a model to be published
    intervals       each job saves at its best interval; what its failures take is replayed with those saves

What saves in the background slow the steps beside them counts for the best interval; in the time it stays
as it was, within training.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import msgspec

from ett_core.accounting.account import JobAccount, ett_percent
from ett_core.components import CHECKPOINT_BLOCKING, COMPONENTS, PUBLISH, TRAINING, UNSAVED_TRAINING
from ett_core.fleet.caches import WARM, CacheRun, Verdict
from ett_core.fleet.job_time import Lost, Piece, lost_by_failure, pieces
from ett_core.intervals import Costs, optimal_interval_s

FAILURE_PREFIX = "failure:"
RECOVERY, CACHES, PUBLISHING, INTERVALS = "recovery", "caches", "publishing", "intervals"
LEVERS: Mapping[str, str] = {
    RECOVERY: "every second of recovery, queueing included, takes half as long",
    CACHES: "starts and recoveries compile no longer than the warm runs of their family",
    PUBLISHING: "a separate process publishes, and no accelerator waits for it",
    INTERVALS: "each job saves at the interval that wastes least",
}
"""The levers beside `failure:CLASS`, with what each supposes."""
RECOVERY_LEFT = 0.5
"""Share of a recovery that is left where it is halved."""
_ANY_FAMILY = ""


class Levers(msgspec.Struct, frozen=True):
    """What is supposed: classes of failures that are gone, and the names of other levers."""

    gone: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    @classmethod
    def of(cls, keys: Iterable[str]) -> Levers:
        """The levers of some keys.

        Raises:
            ValueError: there is no such lever.

        >>> Levers.of(["failure:gpu_ecc", "caches"])
        Levers(gone=frozenset({'gpu_ecc'}), others=frozenset({'caches'}))
        """
        gone, others = set(), set()
        for key in keys:
            if key.startswith(FAILURE_PREFIX):
                gone.add(key.removeprefix(FAILURE_PREFIX))
            elif key in LEVERS:
                others.add(key)
            else:
                raise ValueError(
                    f"there is no lever {key[:64]!r}: take {FAILURE_PREFIX}CLASS, {', '.join(LEVERS)}"
                )
        return cls(frozenset(gone), frozenset(others))

    @property
    def keys(self) -> set[str]:
        """The names of the levers."""
        return {f"{FAILURE_PREFIX}{name}" for name in self.gone} | self.others


def all_keys(classes: Iterable[str]) -> list[str]:
    """Every lever where failures of some classes happened."""
    return [*LEVERS, *(f"{FAILURE_PREFIX}{name}" for name in classes)]


def meaning_of_lever(key: str) -> str:
    """What a lever supposes.

    >>> meaning_of_lever("failure:gpu_ecc")
    'no failure of class gpu_ecc: nothing that is charged to one'
    """
    if key in LEVERS:
        return LEVERS[key]
    return f"no failure of class {key.removeprefix(FAILURE_PREFIX)}: nothing that is charged to one"


class Saving(msgspec.Struct, frozen=True, gc=False):
    """How a job saved: saves of its whole life, seconds of blocking and of training in it.

    Of one save `upload_s` until it is durable, and `slowed_s` by which it slows the steps beside it.
    """

    count: int
    blocking_s: float
    upload_s: float
    trained_s: float
    slowed_s: float = 0.0


class JobTime(msgspec.Struct, frozen=True, gc=False):
    """One job in a window: its pieces, the classes of its failures, how it saved, what each second weighs.

    `warm` holds, by place of the attempt, the share of its compile and cache time that is left with
    warm caches; attempts that are not in it keep all.
    """

    pieces: Sequence[Piece]
    classes: Sequence[str]
    lost: Sequence[Lost]
    saving: Saving
    warm: Mapping[int, float]
    weight: float


class Outcome(msgspec.Struct, frozen=True):
    """Weighted time by component with some levers; `saved` is how much less it is than without them."""

    components: Mapping[str, float]
    total: float
    effective_ratio: float | None
    saved: float


class Window(msgspec.Struct, frozen=True, gc=False):
    """A job's seconds by component from `begin` (Unix seconds) to now, and what each second weighs."""

    components: Mapping[str, float]
    begin: float
    weight: float


def job_time(
    account: JobAccount,
    classes: Sequence[str],
    window: Window,
    saving: Saving,
    warm: Mapping[int, float],
) -> JobTime:
    """A job in a window; `classes` are those of its failures, in order."""
    found = pieces(account, window.components, window.begin)
    lost = lost_by_failure(account, found, window.begin)
    return JobTime(found, classes, lost, saving, warm, window.weight)


def saving_of(
    account: JobAccount, count: int, upload_s: float | None, slowed_s: float | None = None
) -> Saving:
    """How a job saved, from its account and its number of saves, and what one usually takes and slows."""
    amounts = account.components
    trained_s = amounts.get(TRAINING, 0.0) + amounts.get(UNSAVED_TRAINING, 0.0)
    blocking_s = amounts.get(CHECKPOINT_BLOCKING, 0.0)
    return Saving(count, blocking_s, upload_s or 0.0, trained_s, slowed_s or 0.0)


def warm_levels(runs: Iterable[CacheRun], verdicts: Mapping[str, Verdict]) -> dict[str, float]:
    """Seconds that warm runs wait for compilation and caches, by family, and of all under the name ''."""
    taken: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        if verdicts[run.id].kind == WARM:
            for family in (run.family, _ANY_FAMILY):
                taken[family].append(run.compile_s + run.cache_load_s)
    return {family: median(seconds) for family, seconds in taken.items()}


def warm_shares(account: JobAccount, family: str, levels: Mapping[str, float]) -> dict[int, float]:
    """By place of the attempt the share of its compile and cache time that warm caches would leave."""
    level_s = levels.get(family, levels.get(_ANY_FAMILY))
    if level_s is None:
        return {}
    shares = {}
    for place, attempt in enumerate(account.attempts):
        waited_s = sum(s for name, s in attempt.components.items() if _is_compile(name))
        if waited_s > level_s:
            shares[place] = level_s / waited_s
    return shares


def _is_compile(component: str) -> bool:
    return component.startswith(("start.", "recover.")) and component.endswith((".compile", ".cache_load"))


class FleetTime:
    """The jobs of a window, added up as far as levers allow: a question costs sums, not jobs."""

    def __init__(self, jobs: Sequence[JobTime], left_out: frozenset[str] = frozenset()) -> None:
        """`left_out` are components that weigh nothing, such as queueing where held time is asked for."""
        self._jobs, self._left_out = jobs, left_out
        self._sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for job in jobs:
            for piece in job.pieces:
                if piece.component not in left_out:
                    self._add(job, piece)
        self.now = self.with_levers(Levers())

    def _add(self, job: JobTime, piece: Piece) -> None:
        charged = "" if piece.failure is None else job.classes[piece.failure]
        amount = piece.seconds * job.weight
        sums = self._sums[piece.component, charged]
        sums[0] += amount
        share = 1.0
        if piece.attempt is not None and _is_compile(piece.component):
            share = job.warm.get(piece.attempt, 1.0)
        sums[1] += amount * share

    @property
    def classes(self) -> list[str]:
        """Classes of failures that anything is charged to."""
        return sorted({charged for (_, charged), (amount, _) in self._sums.items() if charged and amount})

    def with_levers(self, levers: Levers) -> Outcome:
        """The time with levers, all at once."""
        totals: dict[str, float] = dict.fromkeys(COMPONENTS, 0.0)
        for (component, charged), (amount, warm) in self._sums.items():
            if charged not in levers.gone:
                totals[component] += _left(component, warm if CACHES in levers.others else amount, levers)
        if INTERVALS in levers.others:
            self._replace_saves(totals, levers.gone)
        components = {name: amount for name, amount in totals.items() if amount > 0}
        total = math.fsum(components.values())
        before = total if not (levers.gone or levers.others) else self.now.total
        percent = ett_percent(components)
        return Outcome(components, total, None if percent is None else percent / 100, before - total)

    def _replace_saves(self, totals: dict[str, float], gone: frozenset[str]) -> None:
        """Put what saves and failures cost at the best intervals in the place of what they did cost."""
        between_s = mean_between_failures_s(self._jobs, gone)
        if between_s is None:
            return
        for job in self._jobs:
            blocking_s, unsaved_s = saves_at_best(job, between_s, gone)
            totals[CHECKPOINT_BLOCKING] += blocking_s * job.weight
            totals[UNSAVED_TRAINING] += unsaved_s * job.weight


def _left(component: str, amount: float, levers: Levers) -> float:
    if component == PUBLISH and PUBLISHING in levers.others:
        return 0.0
    if component.startswith("recover.") and RECOVERY in levers.others:
        return amount * RECOVERY_LEFT
    return amount


def mean_between_failures_s(jobs: Iterable[JobTime], gone: frozenset[str] = frozenset()) -> float | None:
    """Training seconds of all jobs by failure in a loop that is left; None where none is."""
    trained_s, failures = 0.0, 0
    for job in jobs:
        trained_s += job.saving.trained_s
        told = zip(job.classes, job.lost, strict=True)
        failures += sum(lost.in_loop for name, lost in told if name not in gone)
    return trained_s / failures if failures and trained_s else None


def best_interval_s(saving: Saving, failures: int, fleet_between_s: float) -> float | None:
    """The interval in training seconds that wastes least; None for a job that never saved.

    A job knows little of its own rate of failures: it is estimated as if it had trained for the fleet's
    mean time between failures more, and failed once more. Saves never overlap.
    """
    if not saving.count or not saving.trained_s or not saving.blocking_s:
        return None
    each_s = saving.blocking_s / saving.count
    costs = Costs(
        blocking_s=each_s,
        slowed_s=saving.slowed_s,
        failures=failures + 1,
        train_s=saving.trained_s + fleet_between_s,
    )
    best_s = optimal_interval_s(costs)
    return None if best_s is None else max(best_s, saving.upload_s, each_s)


def saves_at_best(job: JobTime, fleet_between_s: float, gone: frozenset[str]) -> tuple[float, float]:
    """How many more seconds of blocking and of unsaved training a job has in the window at its best."""
    kept = [place for place, name in enumerate(job.classes) if name not in gone]
    interval_s = best_interval_s(job.saving, sum(job.lost[place].in_loop for place in kept), fleet_between_s)
    if interval_s is None:
        return 0.0, 0.0
    used_s = job.saving.trained_s / job.saving.count
    blocked_s = sum(piece.seconds for piece in job.pieces if piece.component == CHECKPOINT_BLOCKING)
    wanted = frozenset(kept)
    took_s = sum(p.seconds for p in job.pieces if p.component == UNSAVED_TRAINING and p.failure in wanted)
    takes_s = sum(
        replayed_loss_s(job.lost[place].trained_s, interval_s, job.saving.upload_s)
        * job.lost[place].in_window
        for place in kept
    )
    return blocked_s * (used_s / interval_s - 1.0), takes_s - took_s


def replayed_loss_s(trained_s: float, interval_s: float, upload_s: float) -> float:
    """Training that a failure takes from an attempt that saves every `interval_s` seconds of training.

    >>> [replayed_loss_s(trained_s, 100.0, 20.0) for trained_s in (350.0, 310.0, 90.0)]
    [50.0, 110.0, 90.0]
    """
    durable = max(math.floor((trained_s - upload_s) / interval_s), 0)
    return trained_s - durable * interval_s
