"""The accounting of one job: events in, in any order; the partition of its time out.

`JobFold` is used by one thread at a time. It keeps what it needs to go on (state a rank, one
row a report, the last two minutes of events), and asks the history for the rest when something
comes later than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

from ett_core.accounting.account import NS, JobAccount, Stretch, in_seconds, nanoseconds
from ett_core.accounting.attempt_state import NEVER_NS
from ett_core.accounting.chain import Chain
from ett_core.accounting.earlier import Earlier
from ett_core.accounting.lane import Lane
from ett_core.accounting.lane_state import LaneState
from ett_core.accounting.layout import JobEnded, Layout, cuts_of, lay_out
from ett_core.accounting.report import account_of, told_until_ns
from ett_core.accounting.sealed import Sealed
from ett_core.accounting.settings import Settings
from ett_core.amounts import Amounts
from ett_core.archive import IN_MEMORY, Archive
from ett_core.clocks import CLOCK_TOLERANCE_S, canonical, order_of
from ett_core.events import AnyEvent, Clock, JobEnd
from ett_core.refusals import Refusals
from ett_core.sequences import WriterSequences

REST_EVERY = 256
"""Events after which the fold looks for attempts to which nothing comes any more."""
DEFAULTS = Settings()
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


class JobFold:
    """The streaming fold of one job."""

    __slots__ = (
        "_archive",
        "_clocks",
        "_conflict",
        "_earlier",
        "_history",
        "_job_ends",
        "_kept",
        "_known_chain",
        "_lanes",
        "_offsets",
        "_revised_ns",
        "_sealed",
        "_sequences",
        "_settings",
        "_until_rest",
        "job_id",
        "refusals",
    )

    def __init__(
        self,
        job_id: str,
        *,
        settings: Settings = DEFAULTS,
        history: History | None = None,
        archive: Archive = IN_MEMORY,
    ) -> None:
        """Start with no events.

        Args:
            job_id: the job whose events will be added.
            settings: limits of the accounting.
            history: where all events can be read again; None keeps them in memory.
            archive: keeps what is rarely needed again.
        """
        self.job_id = job_id
        self._settings = settings
        self._archive = archive
        self.refusals = Refusals()
        """Events that could not be folded."""
        self._until_rest = REST_EVERY
        self._known_chain: tuple[float, Chain | None] | None = None
        """The answer to the latest question, as of one moment, until something comes."""
        self._earlier: Earlier | None = None
        """What is known of all attempts but the last."""
        self._sealed: Sealed | None = None
        """Their lanes, while nothing comes to them; the last lane is then the only one at hand."""
        self._kept: list[AnyEvent] | None = [] if history is None else None
        self._history: History = history if history is not None else self._from_memory
        self._sequences = WriterSequences(archive=archive)
        self._lanes: dict[int, Lane] = {}
        self._job_ends: list[JobEnded] = []
        self._clocks: dict[str, Clock] = {}
        self._offsets: dict[str, int] = {}
        self._conflict = False
        self._revised_ns = NEVER_NS
        """As `take_revised`, of lanes that are put away by now."""

    def state(self) -> FoldState:
        """The fold as a value."""
        self._known_chain = None
        return FoldState(
            self.job_id,
            asdict(self._settings),
            self._sequences.texts(),
            [*self._sealed_states(), *(lane.state() for lane in self._lanes.values())],
            list(self._job_ends),
            list(self._clocks.values()),
            dict(self._offsets),
            self._conflict,
        )

    @classmethod
    def of_state(
        cls, state: FoldState, *, settings: Settings, history: History, archive: Archive = IN_MEMORY
    ) -> JobFold:
        """The fold that gave `state`; `history` holds every event that it was given.

        Raises:
            ValueError: it was made with other settings.
        """
        if state.limits != asdict(settings):
            raise ValueError("a fold was kept with other settings of the accounting")
        fold = cls(state.job_id, settings=settings, history=history, archive=archive)
        fold._sequences = WriterSequences(state.sequences, archive)
        fold._lanes = {
            lane.number: Lane.of_state(state.job_id, settings, lane, archive, fold.refusals)
            for lane in state.lanes
        }
        fold._job_ends, fold._conflict = list(state.job_ends), state.conflict
        fold._clocks = {clock.of_writer: clock for clock in state.clocks}
        fold._offsets = dict(state.offsets)
        return fold

    def _from_memory(self) -> Iterable[AnyEvent]:
        assert self._kept is not None  # noqa: S101 - this is the history only where events are kept
        return self._kept

    def add(self, events: Iterable[AnyEvent]) -> None:
        """Take in events of this job, in any order; repeats change nothing.

        One that the accounting cannot take in is left out and noted in `refusals`, here or when it is
        folded.

        Raises:
            ValueError: an event is of another job.
        """
        self._known_chain = None
        is_new, lanes, offsets = self._sequences.add, self._lanes, self._offsets
        events = events if isinstance(events, list) else list(events)
        for event in events:
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
                    lane.add(round(event.time * NS) - offsets.get(event.writer, 0), event)
                elif self._conflict or not self._is_repeat(event):
                    if self._kept is not None:
                        self._kept.append(event)
                    self._conflict = True
            except Exception as error:  # noqa: BLE001 - one event must not take away all others
                self.refusals.note(event, error)
        self._until_rest -= len(events)
        if self._until_rest <= 0:
            self._rest()

    def _sealed_states(self) -> list[LaneState]:
        return [] if self._sealed is None else self._sealed.states()

    def _new_lane(self, attempt: int) -> Lane:
        self._unseal()
        if attempt in self._lanes:
            return self._lanes[attempt]
        lane = self._lanes[attempt] = Lane(attempt, self.job_id, self._settings, self._archive, self.refusals)
        return lane

    def _rest(self) -> None:
        """Put away what belongs to earlier attempts; what is asked for comes back, and goes here again."""
        self._until_rest = REST_EVERY
        latest_ns = max((lane.newest_ns for lane in self._lanes.values()), default=0)
        last = max(self._lanes, default=0)
        for number, lane in self._lanes.items():
            if number != last:
                lane.rest(latest_ns)
        if self._sealed is not None:
            self._sequences.put_away(but=self._lanes[last].writers())

    def _is_repeat(self, event: AnyEvent) -> bool:
        """Whether a known key came with a content that is known to be the same."""
        lane = self._lanes.get(event.attempt)
        return lane is not None and lane.holds(self._place(event), event)

    def _place(self, event: AnyEvent) -> int:
        """Time of an event on the corrected clock, in nanoseconds."""
        return nanoseconds(event.time) - self._offsets.get(event.writer, 0)

    def _add_about_job(self, event: AnyEvent) -> None:
        if isinstance(event, JobEnd):
            place = (self._place(event), event.attempt, event.rank, event.writer, event.seq)
            self._job_ends.append(JobEnded(*place, event.status))
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
        self._unseal()
        for lane in self._lanes.values():
            lane.stale = lane.stale or lane.has_writer(clock.of_writer)
        self._conflict = self._conflict or any(end.writer == clock.of_writer for end in self._job_ends)

    def _settle(self) -> None:
        if self._conflict:
            self._fold_anew()
        stale = {number: lane for number, lane in self._lanes.items() if lane.stale}
        if stale:
            self._refold(stale, canonical(self._history()))
        for lane in self._lanes.values():
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
        self._lanes, self._job_ends, self._clocks, self._offsets = {}, [], {}, {}
        self._sealed = self._earlier = None
        self._revised_ns = 0
        for event in events:
            if isinstance(event, Clock):
                self._add_about_job(event)
        for event in events:
            if isinstance(event, JobEnd):
                self._add_about_job(event)
            elif not isinstance(event, Clock) and event.attempt not in self._lanes:
                self._new_lane(event.attempt)
        self._refold(self._lanes, events)

    def _layout(self, now: float) -> Layout | None:
        self._settle()
        parts = self._parts()
        if not parts:
            return None
        cuts = cuts_of([lane.parts[part] for lane, part in parts], self._job_ends)
        changed = [lane.cut(part, at_ns) for (lane, part), at_ns in zip(parts, cuts, strict=True)]
        if any(changed):
            self._settle()
        attempts = [lane.parts[part] for lane, part in self._parts()]
        return lay_out(attempts, self._job_ends, nanoseconds(now), self._settings)

    def _parts(self) -> list[tuple[Lane, int]]:
        """The attempts in the order of their numbers: lane and place in it."""
        lanes = [self._lanes[number] for number in sorted(self._lanes)]
        return [(lane, part) for lane in lanes for part in range(len(lane.parts))]

    def _chain(self, now: float) -> Chain | None:
        if self._known_chain is None or self._known_chain[0] != now:
            self._known_chain = (now, self._new_chain(now))
        return self._known_chain[1]

    def _new_chain(self, now: float) -> Chain | None:
        chain = self._chain_after_sealed(now)
        if chain is not None:
            return chain
        self._unseal()
        layout = self._layout(now)
        if layout is None:
            self._earlier = None
            return None
        chain = Chain.of(layout, self._earlier, self._archive)
        self._earlier = chain.earlier
        if not self._may_seal():
            return chain
        self._seal(chain)
        return self._chain_after_sealed(now) or chain

    def _chain_after_sealed(self, now: float) -> Chain | None:
        """The chain, where all lanes but the last are put away and it leaves them as they are."""
        self._settle()
        if self._sealed is None or self._earlier is None:
            return None
        (lane,) = self._lanes.values()
        if len(lane.parts) != 1:
            return None
        before = self._earlier.head.before
        layout = lay_out(lane.parts, self._job_ends, nanoseconds(now), self._settings, before)
        return Chain.after(self._earlier, layout, self._job_ends)

    def _may_seal(self) -> bool:
        last = self._lanes[max(self._lanes)]
        others = [lane for lane in self._lanes.values() if lane is not last]
        return bool(others) and len(last.parts) == 1 and all(lane.is_at_rest for lane in others)

    def _seal(self, chain: Chain) -> None:
        """Put the lanes before the last one away."""
        lanes = [self._lanes.pop(number) for number in sorted(self._lanes)[:-1]]
        self._revised_ns = min(self._revised_ns, *(lane.take_revised_ns() for lane in lanes))
        self._sealed = Sealed(lanes, chain.earlier.partitions, self._settings, self._archive)
        chain.earlier.put_away(self._sealed, chain.seam(self._job_ends))
        (last,) = self._lanes.values()
        self._sequences.put_away(but=last.writers())

    def _unseal(self) -> None:
        """Bring back the lanes that were put away."""
        if self._sealed is not None:
            lanes = self._sealed.lanes(self.job_id, self.refusals)
            self._lanes.update((lane.number, lane) for lane in lanes)
            self._sealed = self._earlier = None

    def forget_answers(self) -> None:
        """Let go of what was computed for the latest questions, where no more are expected."""
        self._known_chain = None
        for lane in self._lanes.values():
            for part in lane.parts:
                part.kept = None

    def take_revised(self) -> float:
        """From when on reports and phases were told anew since the last call (Unix seconds; infinite: never).

        What an account says of attempts and their failures changes besides: neither is it told here, nor
        what time alone makes of the end.
        """
        self._settle()
        since_ns = min([self._revised_ns, *(lane.take_revised_ns() for lane in self._lanes.values())])
        self._revised_ns = NEVER_NS
        return math.inf if since_ns == NEVER_NS else since_ns / NS

    def told_until(self, now: float) -> float | None:
        """Up to when the last attempt has told what it did (Unix seconds); what follows is a guess."""
        chain = self._chain(now)
        return None if chain is None else told_until_ns(chain.last.span) / NS

    def account(self, now: float) -> JobAccount | None:
        """Where the job's time went, as of `now` (Unix seconds); None before its first event."""
        chain = self._chain(now)
        return None if chain is None else account_of(self.job_id, now, chain)

    def timeline(self, now: float, begin: float | None = None, end: float | None = None) -> Sequence[Stretch]:
        """The partition as stretches in time order, between two moments (Unix seconds)."""
        chain = self._chain(now)
        if chain is None:
            return ()
        begin_ns = None if begin is None else nanoseconds(begin)
        return list(chain.stretches(begin_ns, None if end is None else nanoseconds(end)))

    def window(self, begin: float, end: float, now: float) -> Mapping[str, float]:
        """Seconds by component between two moments (Unix seconds), as known at `now`.

        Adjoining windows add up to the window that they span.
        """
        chain = self._chain(now)
        return {} if chain is None else Amounts(chain.window(nanoseconds(begin), nanoseconds(end)))

    def windows(self, edges: Sequence[float], now: float) -> Sequence[dict[str, float]]:
        """Seconds by component in each part between moments that follow each other (Unix seconds)."""
        chain = self._chain(now)
        if chain is None:
            return [{}] * (len(edges) - 1)
        return [in_seconds(totals) for totals in chain.windows([nanoseconds(edge) for edge in edges])]
