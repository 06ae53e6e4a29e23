"""One attempt, folded in the order of its events.

The events of an attempt are consumed once each, by ascending time; the fold can be marked and
taken back to a mark, which is how late events find their place. After something that may have
ended the attempt, events are held back: if the leader then goes on training (or, after a success,
another rank ends), it was the end of a single rank and they are consumed after all; else they
are what its processes said after the end, and count for nothing but the teardown.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ett_core.accounting.account import nanoseconds
from ett_core.accounting.attempt_state import (
    AttemptMark,
    AttemptRest,
    AttemptState,
    AttemptValues,
    Begun,
    Ender,
    Hardware,
)
from ett_core.accounting.durables import Durables
from ett_core.accounting.loop import Loop
from ett_core.accounting.phases import MAIN, Phase
from ett_core.accounting.rank import Rank
from ett_core.accounting.ranks import Entered, Ranks
from ett_core.accounting.settings import Settings
from ett_core.archive import IN_MEMORY, Archive, Bytes, Parcel
from ett_core.events import (
    AnyEvent,
    AttemptEnd,
    AttemptStart,
    Checkpoint,
    CheckpointDurable,
    CheckpointFailed,
    Event,
    Failure,
    FirstBatch,
    PhaseBegin,
    PhaseEnd,
    Progress,
)
from ett_core.refusals import HeldBackError

COMPRESSION_LEVEL = 2
NEVER_NS = 1 << 62
"""Later than any moment."""
SUCCEEDED = "succeeded"
BY_DECISION = ("cancelled", "timed_out")


class Attempt:
    """State of the fold of one attempt. Times are nanoseconds, corrected for clock offsets."""

    _VALUES = (
        "first_ns",
        "last_ns",
        "start_ns",
        "allocated_ns",
        "leader",
        "reached_step",
        "checkpoint_spoken_ns",
        "succeeded_ns",
        "ender",
        "teardown_ns",
        "survived",
        "observed",
        "rank_started",
        "info",
        "last_progress_ns",
        "_first_bad_ns",
        "_over_ns",
        "_late_leader",
        "_late_report_ns",
    )

    __slots__ = (
        *_VALUES,
        "_archive",
        "_begun",
        "_blocks",
        "_held_back",
        "_is_away",
        "_parcel",
        "_parcel_of",
        "_settings",
        "durable",
        "kept",
        "loop",
        "number",
        "ranks",
        "resumed",
        "revised_ns",
        "version",
    )
    _REST = ("_held_back", "resumed", "durable", "loop", "ranks")

    def __init__(self, number: int, settings: Settings, archive: Archive = IN_MEMORY) -> None:
        self.number = number
        self.version = 0
        """Grows with every change; what was computed of an older version may be wrong."""
        self.revised_ns = NEVER_NS
        """From when on what reports and phases had told was told anew, since somebody last set this."""
        self.kept: tuple[Any, Any] | None = None
        """What was computed of one version in one place, for whoever asks again."""
        self._settings = settings
        self._archive = archive
        self._parcel: Bytes | None = None
        """What was put away, as of a version."""
        self._blocks: Bytes | None = None
        """The closed blocks of the loop at that time."""
        self._parcel_of = -1
        self._is_away = False
        self._begun: tuple[int, Begun] | None = None
        self.first_ns: int | None = None
        self.last_ns = 0
        self.start_ns: int | None = None
        self.allocated_ns: int | None = None
        self.ranks = Ranks()
        self.leader: int | None = None
        self.loop: Loop | None = None
        self.resumed: tuple[int, int] | None = None
        """The lowest rank that said which step it continues from, and the step."""
        self.durable = Durables(archive=archive)
        self.reached_step: int | None = None
        self.checkpoint_spoken_ns: int | None = None
        self.succeeded_ns: int | None = None
        self.ender: Ender | None = None
        self.teardown_ns: int | None = None
        self.survived = 0
        self.observed = False
        self.rank_started = False
        self.info: Hardware | None = None
        self.last_progress_ns: int | None = None
        self._first_bad_ns: int | None = None
        self._over_ns: int | None = None
        """The moment that, as it looks, ended the attempt; what comes later is held back."""
        self._held_back: list[tuple[int, AnyEvent]] = []
        self._late_leader: int | None = None
        self._late_report_ns = 0

    @property
    def stall_floor_ns(self) -> int:
        """How long a silence may be while nothing is known of the length of a step."""
        return nanoseconds(self._settings.stall_after_s)

    # -- consuming ---------------------------------------------------------------------------

    def consume(self, at_ns: int, event: AnyEvent) -> None:
        """Fold the next event, which is not earlier than any before it."""
        self.version += 1
        self.last_ns = at_ns
        if self.first_ns is None or type(event) in _FRAMING:
            self._frame(at_ns, event)
        if self._over_ns is not None and at_ns > self._over_ns:
            self._hold_back(at_ns, event)
        else:
            self._take(at_ns, event)

    def consume_late(self, at_ns: int, event: AnyEvent) -> None:
        """Fold an event that came after the next attempt had started, or the job had ended.

        It can tell when the attempt started and how it ended, and nothing else.
        """
        self.version += 1
        self.last_ns = at_ns
        self._frame(at_ns, event)
        if not isinstance(event, (AttemptEnd, Failure)):
            return
        if self._over_ns is not None and at_ns > self._over_ns:
            self._hold_back(at_ns, event)
        else:
            _HANDLERS[type(event)](self, at_ns, event)

    def _frame(self, at_ns: int, event: Event) -> None:
        """Learn when the attempt began and when, at the earliest, it ended.

        Its start counts only from what came before its first end, survived or not.
        """
        if self.first_ns is None:
            self.first_ns = at_ns
        if isinstance(event, AttemptStart):
            if self._first_bad_ns is None or at_ns <= self._first_bad_ns:
                self._started(at_ns, event)
        elif isinstance(event, Failure) or (isinstance(event, AttemptEnd) and event.status != SUCCEEDED):
            self._first_bad_ns = at_ns if self._first_bad_ns is None else self._first_bad_ns

    def _take(self, at_ns: int, event: Event) -> None:
        if event.rank >= 0:
            self.ranks.spoke(event.rank)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, at_ns, event)

    def _hold_back(self, at_ns: int, event: AnyEvent) -> None:
        """Something came after what may have been the end."""
        if type(event) not in _HANDLERS:
            return
        self._held_back.append((at_ns, event))
        if isinstance(event, (AttemptEnd, Failure)):
            if self.ender is None:
                self._go_on()
            elif isinstance(event, AttemptEnd):
                self.teardown_ns = at_ns
        elif isinstance(event, Progress) and event.rank >= 0 and self._trained_since(at_ns, event):
            self._go_on()

    def _trained_since(self, at_ns: int, report: Progress) -> bool:
        """Whether this is a report of the leader with new steps, all of them after the end."""
        leader = min((r for r in (self.leader, self._late_leader) if r is not None), default=None)
        if leader is not None and report.rank > leader:
            return False
        if report.rank == self._late_leader:
            begin_ns = self._late_report_ns
        elif report.rank == self.leader and self.loop is not None:
            begin_ns = self.loop.prev_ns
        else:
            begin_ns = self._loop_begin_if_taken(at_ns)
        self._late_leader, self._late_report_ns = report.rank, at_ns
        return report.steps > 0 and self._over_ns is not None and begin_ns >= self._over_ns

    def _loop_begin_if_taken(self, at_ns: int) -> int:
        """When the loop would begin if what was held back had been taken, the ends apart."""
        mark = self.mark()
        for held_ns, event in self._held_back:
            if not isinstance(event, (AttemptEnd, Failure)):
                _fold_held(self._take, held_ns, event)
        begin_ns = self.entered().loop_ns
        self.restore(mark)
        return at_ns if begin_ns is None else begin_ns

    def _go_on(self) -> None:
        """It was not the end: take what was held back."""
        held_back, self._held_back = self._held_back, []
        if self.ender is not None:
            self.survived += 1
        self.ender = self.succeeded_ns = self.teardown_ns = self._over_ns = None
        self._late_leader, self._late_report_ns = None, 0
        for at_ns, event in held_back:
            _fold_held(self.consume, at_ns, event)

    def _started(self, at_ns: int, event: AttemptStart) -> None:
        """An attempt starts with the earliest of its processes."""
        started_ns = at_ns if event.process_started_at is None else self._corrected(at_ns, event)
        self.start_ns = started_ns if self.start_ns is None else min(self.start_ns, started_ns)

    def _on_start(self, at_ns: int, event: AttemptStart) -> None:
        del at_ns
        if event.allocated_at is not None:
            allocated_ns = nanoseconds(event.allocated_at)
            known = self.allocated_ns
            self.allocated_ns = allocated_ns if known is None else min(known, allocated_ns)
        if event.resumed_step is not None:
            self._resumed_at(event.rank, event.resumed_step)
        if event.rank >= 0:
            self.rank_started = True
        kind = sys.intern(event.accelerator_type)
        self.info = Hardware(event.world_size, event.accelerators, kind)

    @staticmethod
    def _corrected(at_ns: int, event: AttemptStart) -> int:
        """Start of the process on the corrected clock; nobody starts after speaking."""
        before_ns = nanoseconds(event.time) - nanoseconds(event.process_started_at or event.time)
        return at_ns - max(before_ns, 0)

    def _on_phase_begin(self, at_ns: int, event: PhaseBegin) -> None:
        if event.rank < 0:
            return
        self.observed = True
        self.ranks.begin_phase(event.rank, at_ns, event.phase, event.track)
        if event.phase == "checkpoint":
            self._checkpoint_spoken(at_ns)

    def _on_phase_end(self, at_ns: int, event: PhaseEnd) -> None:
        if event.resumed_step is not None:
            self._resumed_at(event.rank, event.resumed_step)
        if event.rank < 0:
            return
        self.observed = True
        reached_back = self.ranks.end_phase(event.rank, at_ns, event.phase, event.track)
        if reached_back and event.rank == self.leader:
            self._claim(self.ranks.at_hand(event.rank), reached_back)

    def _resumed_at(self, rank: int, step: int) -> None:
        if self.resumed is None or rank <= self.resumed[0]:
            self.resumed = (rank, step)

    def _claim(self, rank: Rank, phases: Sequence[Phase]) -> None:
        """Phases of the leader end that reports had closed: they own their time after all."""
        loop_ns = self.entered().loop_ns
        in_loop = [p for p in phases if loop_ns is not None and p.begin_ns >= loop_ns]
        if in_loop and self.loop is not None and rank.since_report is not None:
            self._told_anew(self.loop.begin_of_report(min(phase.begin_ns for phase in in_loop)))
            self.loop = self.loop.claimed(in_loop)
            rank.claimed(in_loop)

    def _on_first_batch(self, at_ns: int, event: FirstBatch) -> None:
        if event.rank < 0:
            return
        self.observed = True
        self.ranks.first_batch(event.rank, at_ns, event.step)

    def _on_progress(self, at_ns: int, event: Progress) -> None:
        if event.rank < 0:
            return
        if event.rank == self.leader and self.loop is not None:
            rank = self.ranks.at_hand(event.rank)
            phases = rank.loop_phases()
            self.loop.report(at_ns, event, phases)
            if phases:
                rank.reported(at_ns)
        else:
            self._report_of_another(at_ns, event)
        self.last_progress_ns = at_ns
        if self.reached_step is None or event.step > self.reached_step:
            self.reached_step = event.step

    def _report_of_another(self, at_ns: int, event: Progress) -> None:
        """A report of a rank that does not lead, or leads from here on."""
        if self.leader is None or event.rank < self.leader:
            self._told_anew(0)
            self.leader = event.rank
            self.loop = Loop(self._settings, at_ns, event, self._archive)
            self.observed = True
        self.ranks.reported(event.rank, at_ns)

    def _on_checkpoint(self, at_ns: int, event: Checkpoint | CheckpointFailed) -> None:
        del event
        self._checkpoint_spoken(at_ns)

    def _on_durable(self, at_ns: int, event: CheckpointDurable) -> None:
        self._checkpoint_spoken(at_ns)
        self.durable.add(event.step, at_ns)
        if self.reached_step is None or event.step > self.reached_step:
            self.reached_step = event.step

    def _on_failure(self, at_ns: int, event: Failure) -> None:
        self._may_end(at_ns, event)

    def _on_end(self, at_ns: int, event: AttemptEnd) -> None:
        self.teardown_ns = at_ns
        if event.status != SUCCEEDED:
            self._may_end(at_ns, event)
        elif self.ender is None:
            self.succeeded_ns = self._over_ns = at_ns

    def _may_end(self, at_ns: int, event: Failure | AttemptEnd) -> None:
        if self.ender is None:
            self.ender, self._over_ns = Ender(at_ns, event), at_ns

    def _told_anew(self, since_ns: int) -> None:
        self.revised_ns = min(self.revised_ns, since_ns)

    def _checkpoint_spoken(self, at_ns: int) -> None:
        if self.checkpoint_spoken_ns is None:
            self.checkpoint_spoken_ns = at_ns

    # -- asking ------------------------------------------------------------------------------

    def entered(self) -> Entered:
        """When the loop began, None while it has not, and the rank that decided it."""
        return self.ranks.entered(self.leader, None if self.loop is None else self.loop.first_ns)

    def begun(self) -> Begun:
        """What is told of the way into the loop; asked between events, and kept until the next one."""
        if self._begun is None or self._begun[0] != self.version:
            entered = self.entered()
            last_step = None if self.loop is None else self.loop.step
            durable = (self.durable.highest_step, self.durable.latest_ns)
            self._begun = (
                self.version,
                Begun(entered.loop_ns, entered.critical, self.declared_step(), last_step, *durable),
            )
        return self._begun[1]

    def highest_durable(self, by_ns: int, reached_step: int) -> int:
        """The highest step durable by a moment that is not above another; 0 without one."""
        begun = self.begun()
        if by_ns >= begun.durable_ns and reached_step >= begun.durable_step:
            return max(begun.durable_step, 0)
        return self.durable.highest(by_ns, reached_step) or 0

    def follow_rank(self) -> int | None:
        """The rank whose main track the loop follows: the leader, else the lowest."""
        return self.leader if self.leader is not None else min(self.ranks, default=None)

    def declared_step(self) -> int | None:
        """The step that this attempt says it continues from, by its lowest rank that says one."""
        if self.resumed is not None:
            return self.resumed[1]
        return self.entered().declared_step

    def open_phase(self) -> tuple[str, int] | None:
        """Innermost phase open on the followed main track in the loop, and since when."""
        follow = self.follow_rank()
        if follow is None:
            return None
        opened = [p for p in self.ranks.look(follow).loop_phases() if p.end_ns is None and p.track == MAIN]
        return (opened[-1].phase, opened[-1].begin_ns) if opened else None

    # -- going back --------------------------------------------------------------------------

    def mark(self) -> AttemptMark:
        """What `restore` needs to come back to this point."""
        return AttemptMark(
            self._values(),
            tuple(self._held_back),
            self.resumed,
            len(self.durable),
            None if self.loop is None else (self.loop, self.loop.mark()),
            self.ranks.mark(),
        )

    def restore(self, mark: AttemptMark) -> None:
        """Forget every event consumed after `mark`."""
        self.version += 1
        self._told_anew(0 if mark.loop is None else mark.loop[1].prev_ns)
        self._set_values(mark.values)
        self._held_back = list(mark.held_back)
        self.resumed = mark.resumed
        self.durable.cut(mark.durable)
        self.loop = None
        if mark.loop is not None:
            self.loop, loop_mark = mark.loop
            self.loop.restore(loop_mark)
        self.ranks.restore(mark.ranks)

    def pack_ranks(self, marks: Sequence[AttemptMark]) -> None:
        """Pack the ranks of which nothing is expected; `marks` are all that lead back."""
        self.ranks.pack(self.leader, [mark.ranks for mark in marks])

    def _values(self) -> AttemptValues:
        return AttemptValues(*(getattr(self, name) for name in self._VALUES))

    def state(self) -> AttemptState:
        """The attempt as a value."""
        if self._is_away and self._parcel is not None:
            blocks = b"" if self._blocks is None else self._blocks.read()
            return AttemptState(self._values(), self._parcel.read(), blocks, self.begun())
        blocks = b"" if self.loop is None else self.loop.packed()
        return AttemptState(self._values(), self._state_of_rest(), blocks, None)

    @classmethod
    def of_state(
        cls, number: int, settings: Settings, state: AttemptState, archive: Archive = IN_MEMORY
    ) -> Attempt:
        """The attempt that gave `state`."""
        blocks = Parcel(archive, state.blocks) if state.blocks else None
        if not isinstance(state.rest, AttemptRest):
            return cls.at_rest(number, settings, state, (Parcel(archive, state.rest), blocks), archive)
        attempt = cls(number, settings, archive)
        attempt._set_values(state.values)
        attempt._take_rest(state.rest, blocks)
        return attempt

    @classmethod
    def at_rest(
        cls,
        number: int,
        settings: Settings,
        state: AttemptState,
        parcels: tuple[Bytes, Bytes | None],
        archive: Archive,
    ) -> Attempt:
        """The attempt at rest that gave `state`, bare or not, and has put `parcels` away."""
        attempt = cls(number, settings, archive)
        attempt._set_values(state.values)
        attempt._put_away(*parcels)
        attempt._begun = None if state.begun is None else (attempt.version, state.begun)
        attempt._leave()
        return attempt

    def _set_values(self, values: AttemptValues) -> None:
        for name, value in zip(self._VALUES, values, strict=True):
            setattr(self, name, value)

    # -- at rest -----------------------------------------------------------------------------

    def rest(self) -> None:
        """Put away what is rarely needed; whoever asks for any of it brings it all back."""
        if self._is_away:
            return
        if self._parcel is None or self._parcel_of != self.version:
            self.begun()
            blocks = None if self.loop is None else self.loop.put_together()
            rest = zlib.compress(_encoder.encode(self._state_of_rest()), COMPRESSION_LEVEL)
            self._put_away(Parcel(self._archive, rest), blocks)
        self._leave()

    @property
    def parcels(self) -> tuple[Bytes, Bytes | None]:
        """What was put away: what is rarely needed, and the closed blocks of the loop."""
        assert self._parcel is not None  # noqa: S101 - asked of attempts at rest
        return self._parcel, self._blocks

    def bare_state(self) -> AttemptState:
        """The attempt at rest as a value without what was put away."""
        return AttemptState(self._values(), b"", b"", self.begun())

    def rest_again(self) -> None:
        """Let go of what was brought back, where nothing has changed since it was put away."""
        if not self._is_away and self._parcel_of == self.version:
            self._leave()

    def _put_away(self, rest: Bytes, blocks: Bytes | None) -> None:
        self._parcel, self._blocks, self._parcel_of = rest, blocks, self.version

    def _leave(self) -> None:
        self._is_away = True
        self.kept = None
        for name in self._REST:
            delattr(self, name)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of attributes that are put away
        """Bring back what was put away."""
        if name not in self._REST or self._parcel is None:
            raise AttributeError(name)
        self._is_away = False
        self._take_rest(_decoder.decode(zlib.decompress(self._parcel.read())), self._blocks)
        return getattr(self, name)

    def _state_of_rest(self) -> AttemptRest:
        return AttemptRest(
            list(self._held_back),
            self.resumed,
            list(self.durable),
            None if self.loop is None else self.loop.state(),
            self.ranks.states(),
        )

    def _take_rest(self, rest: AttemptRest, blocks: Bytes | None) -> None:
        self._held_back = list(rest.held_back)
        self.resumed, self.durable = rest.resumed, Durables(rest.durable, self._archive)
        loop = rest.loop
        self.loop = None if loop is None else Loop.of_state(self._settings, loop, blocks, self._archive)
        self.ranks = Ranks(rest.ranks)


def _fold_held(fold: Callable[[int, AnyEvent], None], at_ns: int, event: AnyEvent) -> None:
    """Fold an event that was held back; what goes wrong with it is not laid to the one that came last."""
    try:
        fold(at_ns, event)
    except HeldBackError:
        raise
    except Exception as error:
        raise HeldBackError(at_ns, event) from error


_FRAMING = frozenset({AttemptStart, AttemptEnd, Failure})
_HANDLERS: Mapping[type[Event], Callable[[Any, int, Any], None]] = {
    AttemptStart: Attempt._on_start,  # noqa: SLF001 - the table belongs to the class
    PhaseBegin: Attempt._on_phase_begin,  # noqa: SLF001
    PhaseEnd: Attempt._on_phase_end,  # noqa: SLF001
    FirstBatch: Attempt._on_first_batch,  # noqa: SLF001
    Progress: Attempt._on_progress,  # noqa: SLF001
    Checkpoint: Attempt._on_checkpoint,  # noqa: SLF001
    CheckpointFailed: Attempt._on_checkpoint,  # noqa: SLF001
    CheckpointDurable: Attempt._on_durable,  # noqa: SLF001
    Failure: Attempt._on_failure,  # noqa: SLF001
    AttemptEnd: Attempt._on_end,  # noqa: SLF001
}

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AttemptRest)
