"""The events of one job: attempt by attempt, each once, on corrected clocks, in any order of arrival.

Part of the accounting (`ett_core.accounting.job`): held by one thread at a time. What is needed to go on is
kept (state a rank, one row a report, the last two minutes of events); where something comes later than
that, the rest is asked of the history.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import NamedTuple

from ett_core.accounting.account import NS, nanoseconds
from ett_core.accounting.attempt_state import NEVER_NS
from ett_core.accounting.earlier import Earlier
from ett_core.accounting.lane import Lane
from ett_core.accounting.lane_state import LaneState
from ett_core.accounting.layout import JobEnded
from ett_core.accounting.partition import Partition
from ett_core.accounting.sealed import Sealed
from ett_core.accounting.settings import Settings
from ett_core.archive import Archive
from ett_core.clocks import CLOCK_TOLERANCE_S, FIRST_MOMENT_S, LAST_MOMENT_S, canonical, order_of
from ett_core.events import AnyEvent, Clock, JobEnd
from ett_core.refusals import Refusals
from ett_core.runs import runs_of
from ett_core.sequences import WriterSequences

FIRST_NS, LAST_NS = nanoseconds(FIRST_MOMENT_S), nanoseconds(LAST_MOMENT_S)
ABOUT_JOB: frozenset[type[AnyEvent]] = frozenset({Clock, JobEnd})
"""Kinds that belong to no attempt."""
REST_EVERY = 256
"""Events after which the fold looks for attempts to which nothing comes any more."""
History = Callable[[], Iterable[AnyEvent]]
"""Gives every event of the job that was ever added, in any order, repeats allowed."""


class FoldState(NamedTuple):
    """A `JobFold` as a value; events that it kept itself are no part of it."""

    job_id: str
    limits: dict[str, float]
    sequences: dict[str, str]
    lanes: list[LaneState]
    job_ends: list[JobEnded]
    clocks: list[Clock]
    offsets: dict[str, int]
    conflict: bool


class JobLanes:
    """The attempts of one job as lanes; what is asked of them is the business of `JobFold`.

    `history` gives all events again; None keeps them in memory. `archive` keeps what is rarely needed again.
    """

    __slots__ = (
        "_archive",
        "_clocks",
        "_conflict",
        "_history",
        "_kept",
        "_offsets",
        "_revised_ns",
        "_sequences",
        "_settings",
        "_until_rest",
        "by_number",
        "earlier",
        "is_cut",
        "job_ends",
        "job_id",
        "refusals",
        "sealed",
    )

    def __init__(self, job_id: str, settings: Settings, history: History | None, archive: Archive) -> None:
        self.job_id = job_id
        self._settings = settings
        self._archive = archive
        self.refusals = Refusals()
        """Events that could not be folded."""
        self._until_rest = REST_EVERY
        self.earlier: Earlier | None = None
        """What is known of all attempts but the last."""
        self.sealed: Sealed | None = None
        """Their lanes, while nothing comes to them; the last lane is then the only one at hand."""
        self._kept: list[AnyEvent] | None = [] if history is None else None
        self._history: History = history if history is not None else self._from_memory
        self._sequences = WriterSequences(archive=archive)
        self.by_number: dict[int, Lane] = {}
        self.job_ends: list[JobEnded] = []
        self._clocks: dict[str, Clock] = {}
        self._offsets: dict[str, int] = {}
        self._conflict = False
        self._revised_ns = NEVER_NS
        """As `take_revised`, of lanes that are put away by now."""
        self.is_cut = False
        """Whether the first events are deleted: what they told stays as it is."""

    def state(self) -> FoldState:
        """The fold as a value."""
        return FoldState(
            self.job_id,
            asdict(self._settings),
            self._sequences.texts(),
            [*self._sealed_states(), *(lane.state() for lane in self.by_number.values())],
            list(self.job_ends),
            list(self._clocks.values()),
            dict(self._offsets),
            self._conflict,
        )

    def load(self, state: FoldState, *, is_cut: bool) -> None:
        """Begin where a fold of that `state` was; where `is_cut`, the history has none of its events.

        Raises:
            ValueError: it was made with other settings.
        """
        if state.limits != asdict(self._settings):
            raise ValueError("a fold was kept with other settings of the accounting")
        self._sequences = WriterSequences(state.sequences, self._archive)
        for lane in state.lanes:
            told = lane._replace(is_cut=lane.is_cut or is_cut)
            self.by_number[lane.number] = self._loaded(told)
        self.is_cut = any(lane.is_cut for lane in self.by_number.values())
        self.job_ends, self._conflict = list(state.job_ends), state.conflict
        self._clocks = {clock.of_writer: clock for clock in state.clocks}
        self._offsets = dict(state.offsets)

    def _loaded(self, state: LaneState) -> Lane:
        return Lane.of_state(self.job_id, self._settings, state, self._archive, self.refusals)

    def _from_memory(self) -> Iterable[AnyEvent]:
        assert self._kept is not None  # noqa: S101 - this is the history only where events are kept
        return self._kept

    def add(self, events: Iterable[AnyEvent]) -> list[AnyEvent]:
        """As `JobFold.add`."""
        repeated: list[AnyEvent] = []
        events = events if isinstance(events, list) else list(events)
        for run in runs_of(events):
            if not self._add_run(run):
                repeated += self._add_each(run)
        self._until_rest -= len(events)
        if self._until_rest <= 0:
            self._rest()
        return repeated

    def _add_run(self, run: Sequence[AnyEvent]) -> bool:
        """Take in events of one writer, attempt and rank together, as is usual; False where it cannot."""
        writer, number = run[0].writer, run[0].attempt
        if self._offsets.get(writer) or not ABOUT_JOB.isdisjoint(map(type, run)):
            return False
        if any(event.job_id != self.job_id for event in run):
            return False
        moments = [round(event.time * NS) for event in run]
        lane = self.by_number.get(number) or self._new_lane(number)
        if lane.is_cut or not self._sequences.add_run(writer, [event.seq for event in run]):
            return False
        if self._kept is not None:
            self._kept += run
        lane.add_run(moments, run)
        return True

    def _add_each(self, run: Iterable[AnyEvent]) -> list[AnyEvent]:
        """Take in events one by one; gives those that came under a key that was known."""
        repeated: list[AnyEvent] = []
        is_new, lanes, offsets = self._sequences.add, self.by_number, self._offsets
        for event in run:
            if event.job_id != self.job_id:
                raise ValueError(f"event of job {event.job_id!r} added to job {self.job_id!r}")
            try:
                if is_new(event.writer, event.seq):
                    if self._kept is not None:
                        self._kept.append(event)
                    kind = type(event)
                    if kind is Clock or kind is JobEnd:
                        self._add_about_job(event)
                        continue
                    lane = lanes.get(event.attempt) or self._new_lane(event.attempt)
                    offset_ns = offsets.get(event.writer, 0)
                    lane.add(self._place(event) if offset_ns else round(event.time * NS), event)
                    continue
                repeated.append(event)
                if not self.is_cut and (self._conflict or not self._is_repeat(event)):
                    if self._kept is not None:
                        self._kept.append(event)
                    self._conflict = True
            except Exception as error:  # noqa: BLE001 - one event must not take away all others
                self.refusals.note(event, error)
        return repeated

    def _sealed_states(self) -> list[LaneState]:
        return [] if self.sealed is None else self.sealed.states()

    def _new_lane(self, attempt: int) -> Lane:
        self.unseal()
        if attempt in self.by_number:
            return self.by_number[attempt]
        lane = self.by_number[attempt] = Lane(
            attempt, self.job_id, self._settings, self._archive, self.refusals
        )
        return lane

    def _rest(self) -> None:
        """Put away what belongs to earlier attempts; what is asked for comes back, and goes here again."""
        self._until_rest = REST_EVERY
        latest_ns = max((lane.newest_ns for lane in self.by_number.values()), default=0)
        last = max(self.by_number, default=0)
        for number, lane in self.by_number.items():
            if number != last:
                lane.rest(latest_ns)
        if self.sealed is not None:
            self._sequences.put_away(but=self.by_number[last].writers())

    def _is_repeat(self, event: AnyEvent) -> bool:
        """Whether a known key came with a content that is known to be the same."""
        lane = self.by_number.get(event.attempt)
        return lane is not None and lane.holds(self._place(event), event)

    def _place(self, event: AnyEvent) -> int:
        """Time of an event on the corrected clock, in nanoseconds."""
        at_ns, offset_ns = nanoseconds(event.time), self._offsets.get(event.writer, 0)
        return min(max(at_ns - offset_ns, FIRST_NS), LAST_NS) if offset_ns else at_ns

    def _add_about_job(self, event: AnyEvent) -> None:
        if isinstance(event, JobEnd):
            place = (self._place(event), event.attempt, event.rank, event.writer, event.seq)
            self.job_ends.append(JobEnded(*place, event.status))
        elif isinstance(event, Clock):
            before = self._clocks.get(event.of_writer)
            if before is None or order_of(before) < order_of(event):
                self._clocks[event.of_writer] = event
                self._correct(event)

    def _correct(self, clock: Clock) -> None:
        """A writer's offset became known or changed: its events have other places now."""
        offset_ns = nanoseconds(clock.offset_s) if abs(clock.offset_s) > CLOCK_TOLERANCE_S else 0
        if offset_ns == self._offsets.get(clock.of_writer, 0):
            return
        self._offsets[clock.of_writer] = offset_ns
        self.unseal()
        for lane in self.by_number.values():
            lane.stale = lane.stale or (not lane.is_cut and lane.has_writer(clock.of_writer))
        if not self.is_cut and any(end.writer == clock.of_writer for end in self.job_ends):
            self._conflict = True

    @property
    def is_stale(self) -> bool:
        """Whether there are events that can only be folded again from the history."""
        return self._conflict or any(lane.stale for lane in list(self.by_number.values()))

    def settle(self) -> None:
        """Fold what is still to be folded, again where that is needed."""
        if self._conflict:
            self._fold_anew()
        stale = {number: lane for number, lane in self.by_number.items() if lane.stale}
        if stale:
            self._refold(stale, canonical(self._history()))
        for lane in self.by_number.values():
            lane.settle()
            if lane.stale:
                self._refold({lane.number: lane}, canonical(self._history()))

    def _refold(self, lanes: dict[int, Lane], events: Iterable[AnyEvent]) -> None:
        placed: dict[int, list[tuple[int, AnyEvent]]] = {number: [] for number in lanes}
        for event in events:
            if event.attempt in placed and not isinstance(event, (Clock, JobEnd)):
                self._sequences.add(event.writer, event.seq)
                placed[event.attempt].append((self._place(event), event))
        for number, members in placed.items():
            lanes[number].refold(members)

    def _fold_anew(self) -> None:
        """Fold everything again from the history, with one event a key."""
        events = canonical(self._history())
        self._conflict = False
        self.by_number, self.job_ends, self._clocks, self._offsets = {}, [], {}, {}
        self.sealed = self.earlier = None
        self._revised_ns = 0
        for event in events:
            if isinstance(event, Clock):
                self._add_about_job(event)
        for event in events:
            if isinstance(event, JobEnd):
                self._add_about_job(event)
            elif not isinstance(event, Clock) and event.attempt not in self.by_number:
                self._new_lane(event.attempt)
        self._refold(self.by_number, events)

    def unseal(self) -> None:
        """Bring back the lanes that were put away."""
        if self.sealed is not None:
            lanes = self.sealed.lanes(self.job_id, self.refusals)
            self.by_number.update((lane.number, lane) for lane in lanes)
            self.sealed = self.earlier = None

    def parts(self) -> list[tuple[Lane, int]]:
        """The attempts in the order of their numbers: lane and place in it."""
        lanes = [self.by_number[number] for number in sorted(self.by_number)]
        return [(lane, part) for lane in lanes for part in range(len(lane.parts))]

    def may_seal(self) -> bool:
        """Whether there are lanes before the last one, to which nothing comes any more."""
        last = self.by_number[max(self.by_number)]
        others = [lane for lane in self.by_number.values() if lane is not last]
        return bool(others) and len(last.parts) == 1 and all(lane.is_at_rest for lane in others)

    def seal(self, partitions: Sequence[Partition]) -> Sealed:
        """Put the lanes before the last one away, with the partitions of their attempts."""
        lanes = [self.by_number.pop(number) for number in sorted(self.by_number)[:-1]]
        self._revised_ns = min(self._revised_ns, *(lane.take_revised_ns() for lane in lanes))
        self.sealed = Sealed(lanes, partitions, self._settings, self._archive)
        (last,) = self.by_number.values()
        self._sequences.put_away(but=last.writers())
        return self.sealed

    def take_revised(self) -> float:
        """As `JobFold.take_revised`."""
        self.settle()
        since_ns = min([self._revised_ns, *(lane.take_revised_ns() for lane in self.by_number.values())])
        self._revised_ns = NEVER_NS
        return math.inf if since_ns == NEVER_NS else since_ns / NS
