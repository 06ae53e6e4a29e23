"""What each event tells of one attempt: its start, its ranks, its loop, its checkpoints, its end.

Events come by ascending time; `ett_core.accounting.attempt_fold` decides which of them count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ett_core.accounting.account import nanoseconds
from ett_core.accounting.attempt_state import NEVER_NS, SUCCEEDED, AttemptValues, Ender, Hardware
from ett_core.accounting.durables import Durables
from ett_core.accounting.loop import Loop
from ett_core.accounting.phases import Phase
from ett_core.accounting.rank import Rank
from ett_core.accounting.ranks import Entered, Ranks
from ett_core.accounting.settings import Settings
from ett_core.archive import IN_MEMORY, Archive
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


class AttemptEvents:
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
        "_held_back",
        "_settings",
        "durable",
        "loop",
        "number",
        "ranks",
        "resumed",
        "revised_ns",
        "version",
    )

    def __init__(self, number: int, settings: Settings, archive: Archive = IN_MEMORY) -> None:
        self.number = number
        self.version = 0
        """Grows with every change; what was computed of an older version may be wrong."""
        self.revised_ns = NEVER_NS
        """From when on what reports and phases had told was told anew, since somebody last set this."""
        self._settings = settings
        self._archive = archive
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

    def entered(self) -> Entered:
        """When the loop began, None while it has not, and the rank that decided it."""
        return self.ranks.entered(self.leader, None if self.loop is None else self.loop.first_ns)

    def _take(self, at_ns: int, event: Event) -> None:
        if event.rank >= 0:
            self.ranks.spoke(event.rank)
        handler = HANDLERS.get(type(event))
        if handler is not None:
            handler(self, at_ns, event)

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

    def _values(self) -> AttemptValues:
        return AttemptValues(*(getattr(self, name) for name in self._VALUES))

    def _set_values(self, values: AttemptValues) -> None:
        for name, value in zip(self._VALUES, values, strict=True):
            setattr(self, name, value)


HANDLERS: Mapping[type[Event], Callable[[Any, int, Any], None]] = {
    AttemptStart: AttemptEvents._on_start,  # noqa: SLF001 - the table belongs to the class
    PhaseBegin: AttemptEvents._on_phase_begin,  # noqa: SLF001
    PhaseEnd: AttemptEvents._on_phase_end,  # noqa: SLF001
    FirstBatch: AttemptEvents._on_first_batch,  # noqa: SLF001
    Progress: AttemptEvents._on_progress,  # noqa: SLF001
    Checkpoint: AttemptEvents._on_checkpoint,  # noqa: SLF001
    CheckpointFailed: AttemptEvents._on_checkpoint,  # noqa: SLF001
    CheckpointDurable: AttemptEvents._on_durable,  # noqa: SLF001
    Failure: AttemptEvents._on_failure,  # noqa: SLF001
    AttemptEnd: AttemptEvents._on_end,  # noqa: SLF001
}
