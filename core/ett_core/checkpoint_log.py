"""The checkpoints of a job, joined from what all ranks report of them.

Part of the details fold (`ett_core.details`): held by one thread, in any order of arrival.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from ett_core.archive import IN_MEMORY, Archive
from ett_core.events import Checkpoint, CheckpointDurable, CheckpointFailed
from ett_core.growing import Distribution, bucket_of
from ett_core.metrics import BLOCKING_BOUNDS_S
from ett_core.shelf import Shelf

CHECKPOINTS_SHOWN = 200
CHECKPOINTS_KEPT = CHECKPOINTS_SHOWN
"""Checkpoints that reports are still joined to; reports of older ones are no longer taken in."""
CHECKPOINTS_AT_HAND = 2
"""Of these the latest, to which nearly all reports are joined; the others lie packed."""
EXPECTED_FOR_S = 150.0
"""As long as reports of a checkpoint are likely to come, it is at hand."""
LASTS_AFTER_S = 120.0
"""A checkpoint that a rank calls failed, and none durable within this time, counts as failed for good."""
CHECKPOINTS_USUAL = 16
"""Of these the latest that say what is usual."""

NONE = Distribution((0,) * (len(BLOCKING_BOUNDS_S) + 1))

T = TypeVar("T")
CheckpointEvent: TypeAlias = Checkpoint | CheckpointDurable | CheckpointFailed


class CheckpointDetail(msgspec.Struct, frozen=True, gc=False):
    """One checkpoint of one attempt, joined from the reports of all ranks.

    `blocking_s` is the longest that any rank was blocked (the job waits for the slowest).
    `durable_at` is the earliest report that it is durable, None until then. `failed` where a rank has
    reported that it will never be and none that it is: one that leaves before the others may not know.
    `failed_at` is the earliest report of a failure, whatever another rank knows. `saved` is true once a rank
    has reported the save itself, not only its fate.
    """

    attempt: int
    step: int
    time: float
    mode: str
    blocking_s: float = 0.0
    bytes: int | None = None
    durable_at: float | None = None
    failed: bool = False
    saved: bool = False
    failed_at: float | None = None


class Durable(msgspec.Struct, frozen=True, gc=False):
    """A checkpoint that would survive the death of the whole job, since `time`."""

    time: float
    step: int
    bytes: int | None


class Usual(NamedTuple):
    """Medians over the latest checkpoints, in seconds; None where too few say so."""

    interval_s: float | None
    upload_s: float | None


class CheckpointLogState(NamedTuple):
    """A `CheckpointLog` as a value."""

    last_durable: Durable | None
    kept: list[CheckpointDetail]
    forgotten_through: tuple[int, int]
    forgotten: list[float]
    forgotten_blocking: Distribution


class CheckpointLog:
    """The fold: `add` events, then read."""

    __slots__ = (
        "_forgotten",
        "_forgotten_blocking",
        "_forgotten_through",
        "_kept",
        "_known_totals",
        "_known_usual",
        "_packed",
        "_packed_blocking",
        "_packed_failures",
        "_packed_through",
        "_packed_weights",
        "last_durable",
    )

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing; `archive` keeps what is rarely needed again."""
        self.last_durable: Durable | None = None
        self._kept: dict[tuple[int, int], CheckpointDetail] = {}
        self._packed = Shelf(CheckpointDetail, archive=archive)
        self._packed_through = (-1, -1)
        self._packed_weights: list[float] = [0, 0, 0, 0.0, 0]
        self._packed_failures: list[float] = []
        self._forgotten_through = (-1, -1)
        self._forgotten: list[float] = [0, 0, 0, 0.0, 0]
        self._known_totals: list[float] | None = None
        self._known_usual: Usual | None = None
        self._forgotten_blocking = self._packed_blocking = NONE

    def add(self, event: CheckpointEvent) -> None:
        """Take in one report."""
        key = (event.attempt, event.step)
        if key <= self._forgotten_through:
            return
        self._known_totals = self._known_usual = None
        if key <= self._packed_through:
            self._unpack()
        known = self._kept.get(key)
        if known is None:
            known = CheckpointDetail(event.attempt, event.step, event.time, sys.intern(event.mode))
        self._kept[key] = _join(known, event)
        if isinstance(event, CheckpointDurable):
            self._note_durable(event)
        if len(self._kept) > 2 * CHECKPOINTS_KEPT:
            self._pack()

    def settle(self) -> None:
        """Some reports that came together were taken in: pack all but the latest checkpoints."""
        if len(self._kept) > 2 * CHECKPOINTS_AT_HAND:
            self._pack()

    @property
    def latest(self) -> list[CheckpointDetail]:
        """The latest checkpoints, at most `CHECKPOINTS_SHOWN`, in order of attempt and step."""
        at_hand = [self._kept[key] for key in sorted(self._kept)]
        return [*self._packed.records(), *at_hand][-CHECKPOINTS_SHOWN:]

    @property
    def count(self) -> int:
        """Checkpoints that the trainer saved (one a step and attempt, however many ranks say so)."""
        return int(self._totals()[0])

    @property
    def durable_count(self) -> int:
        """Checkpoints that became durable."""
        return int(self._totals()[1])

    @property
    def failed_count(self) -> int:
        """Checkpoints that will never be durable."""
        return int(self._totals()[2])

    def failures(self, through: float) -> int:
        """Checkpoints whose failure has lasted by a moment (Unix seconds), for a counter: it never falls.

        Unless reports come late: what is known of `LASTS_AFTER_S` after a failure decides.
        """
        told = [*self._packed_failures, *filter(None, map(_lasting, self._kept.values()))]
        return int(self._forgotten[4]) + sum(at + LASTS_AFTER_S <= through for at in told)

    @property
    def blocking_s(self) -> float:
        """Seconds that checkpoints blocked the trainer: of each, the slowest rank."""
        return self._totals()[3]

    def blocking(self, before: float) -> Distribution:
        """How long the checkpoints blocked that were saved before a moment (Unix seconds)."""
        counts, total_s = list(self._packed_blocking.counts), self._packed_blocking.total_s
        for each in self._kept.values():
            if each.saved and each.time < before:
                counts[bucket_of(BLOCKING_BOUNDS_S, each.blocking_s)] += 1
                total_s += each.blocking_s
        return Distribution(tuple(counts), total_s)

    def usual(self) -> Usual:
        """How far apart the latest checkpoints of the latest attempt were saved, and how long uploads took.

        An upload lasts from a save to its durability.
        """
        if self._known_usual is None:
            self._known_usual = _usual([each for each in self.latest if each.saved])
        return self._known_usual

    def state(self) -> CheckpointLogState:
        """The log as a value."""
        kept = [*self._packed.records(), *self._kept.values()]
        return CheckpointLogState(
            self.last_durable, kept, self._forgotten_through, list(self._forgotten), self._forgotten_blocking
        )

    @classmethod
    def of_state(cls, state: CheckpointLogState, archive: Archive = IN_MEMORY) -> CheckpointLog:
        """The log that gave `state`."""
        log = cls(archive)
        log.last_durable, log._forgotten_through = state.last_durable, state.forgotten_through
        log._kept = {(each.attempt, each.step): _with_shared_mode(each) for each in state.kept}
        log._forgotten, log._forgotten_blocking = list(state.forgotten), state.forgotten_blocking
        log._pack()
        return log

    def _totals(self) -> list[float]:
        if self._known_totals is None:
            self._known_totals = _sums(
                [self._forgotten, self._packed_weights, *map(_weights, self._kept.values())]
            )
        return self._known_totals

    def _note_durable(self, event: CheckpointDurable) -> None:
        known = self.last_durable
        if known is None or (known.time, known.step) < (event.time, event.step):
            self.last_durable = Durable(event.time, event.step, event.bytes)

    def _pack(self) -> None:
        """Pack all but the latest, and let go of the oldest."""
        in_order = sorted(self._kept.items())
        count = min(self._settled(each for _, each in in_order), len(in_order) - CHECKPOINTS_AT_HAND)
        if len(in_order) > 2 * CHECKPOINTS_KEPT:
            count = max(count, CHECKPOINTS_KEPT)
        late = [each for _, each in in_order[:count]]
        self._kept = dict(in_order[count:])
        records = [*self._packed.records(), *late]
        gone = records[: max(len(records) - CHECKPOINTS_KEPT, 0)]
        self._forgotten = _sums([self._forgotten, *map(_weights, gone)])
        self._forgotten_blocking = _blocking(self._forgotten_blocking, gone)
        self._put(records[len(gone) :])
        if gone:
            self._forgotten_through = (gone[-1].attempt, gone[-1].step)

    @staticmethod
    def _settled(in_order: Iterable[CheckpointDetail]) -> int:
        """Of how many of the first ones no report is expected."""
        times = [each.time for each in in_order]
        through = max(times, default=0.0) - EXPECTED_FOR_S
        return next((place for place, time in enumerate(times) if time > through), len(times))

    def _unpack(self) -> None:
        self._kept |= {(each.attempt, each.step): _with_shared_mode(each) for each in self._packed.records()}
        self._put([])

    def _put(self, records: Sequence[CheckpointDetail]) -> None:
        self._packed.put(records)
        self._packed_weights = _sums([[0, 0, 0, 0.0, 0], *map(_weights, records)])
        self._packed_failures = [*filter(None, map(_lasting, records))]
        self._packed_blocking = _blocking(self._forgotten_blocking, records)
        self._packed_through = (records[-1].attempt, records[-1].step) if records else (-1, -1)


def _with_shared_mode(checkpoint: CheckpointDetail) -> CheckpointDetail:
    return replace(checkpoint, mode=sys.intern(checkpoint.mode))


def _usual(saved: Sequence[CheckpointDetail]) -> Usual:
    times = [each.time for each in saved if each.attempt == saved[-1].attempt][-CHECKPOINTS_USUAL:]
    uploads = [(each.time, each.durable_at) for each in saved if each.durable_at is not None]
    took_s = [max(at - time, 0.0) for time, at in sorted(uploads)[-CHECKPOINTS_USUAL:]]
    return Usual(
        median(after - at for at, after in pairwise(times)) if len(times) > 1 else None,
        median(took_s) if took_s else None,
    )


def _blocking(known: Distribution, more: Iterable[CheckpointDetail]) -> Distribution:
    counts, total_s = list(known.counts), known.total_s
    for each in more:
        if each.saved:
            counts[bucket_of(BLOCKING_BOUNDS_S, each.blocking_s)] += 1
            total_s += each.blocking_s
    return Distribution(tuple(counts), total_s)


def _sums(rows: Iterable[Sequence[float]]) -> list[float]:
    return [sum(column) for column in zip(*rows, strict=True)]


def _weights(checkpoint: CheckpointDetail) -> tuple[float, ...]:
    """What one checkpoint adds to the sums: saved, durable, failed, seconds of blocking, failed for good."""
    durable = checkpoint.durable_at is not None
    lasting = _lasting(checkpoint) is not None
    return (checkpoint.saved, durable, checkpoint.failed, checkpoint.blocking_s, lasting)


def _lasting(checkpoint: CheckpointDetail) -> float | None:
    """When a checkpoint failed that no rank called durable soon after."""
    failed_at, durable_at = checkpoint.failed_at, checkpoint.durable_at
    if failed_at is None or (durable_at is not None and durable_at <= failed_at + LASTS_AFTER_S):
        return None
    return failed_at


def _join(known: CheckpointDetail, event: CheckpointEvent) -> CheckpointDetail:
    """A checkpoint with one more report of it; time and mode are those of the save, where known."""
    is_save, said = isinstance(event, Checkpoint), sys.intern(event.mode)
    time, mode = known.time, known.mode
    if is_save and not known.saved:
        time, mode = event.time, said
    elif is_save == known.saved:
        time, mode = min(time, event.time), min(mode, said)
    blocking_s, size = known.blocking_s, known.bytes
    durable_at, failed_at = known.durable_at, known.failed_at
    if isinstance(event, Checkpoint):
        blocking_s, size = max(blocking_s, event.blocking_s), _chosen(max, size, event.bytes)
    elif isinstance(event, CheckpointDurable):
        durable_at, size = _chosen(min, durable_at, event.time), _chosen(max, size, event.bytes)
    else:
        failed_at = _chosen(min, failed_at, event.time)
    return CheckpointDetail(
        attempt=known.attempt,
        step=known.step,
        time=time,
        mode=mode,
        blocking_s=blocking_s,
        bytes=size,
        durable_at=durable_at,
        failed=durable_at is None and failed_at is not None,
        saved=known.saved or is_save,
        failed_at=failed_at,
    )


def _chosen(choose: Callable[[T, T], T], one: T | None, other: T | None) -> T | None:
    """The chosen of two values that are not None; None without one."""
    if one is None or other is None:
        return one if other is None else other
    return choose(one, other)
