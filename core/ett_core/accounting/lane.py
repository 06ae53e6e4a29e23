"""The events of one attempt number: their fold, and how it rests and is kept as a value."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ett_core.accounting.attempt import Attempt
from ett_core.accounting.attempt_state import AttemptState
from ett_core.accounting.held import HeldEvents, Key
from ett_core.accounting.lane_fold import LaneFold
from ett_core.accounting.lane_state import LaneMark, LaneState
from ett_core.accounting.presence import Presence
from ett_core.accounting.settings import Settings
from ett_core.archive import Archive
from ett_core.refusals import Refusals


class Lane(LaneFold):
    """A lane that can be put away and kept."""

    __slots__ = ()

    def writers(self) -> set[str]:
        """Who sent events of this attempt."""
        return self._presence.writers()

    def has_writer(self, writer: str) -> bool:
        """Whether a writer sent events of this attempt."""
        return writer in self.writers()

    def rest(self, latest_ns: int) -> None:
        """Put away what the lane holds, if nothing came since the last call, nor up to the late window."""
        if self.stale or self._touched or self.newest_ns > latest_ns - self._window_ns:
            self._touched = False
            return
        self.settle()
        if self.stale:
            return
        self._let_go(len(self._held))
        self._marks, self._held = _NO_MARKS, _NOTHING_HELD
        self.is_at_rest = True
        self._presence.pack()
        for part in self.parts:
            part.rest()

    def state(self) -> LaneState:
        """The lane as a value; whatever is in place is folded before."""
        self.settle()
        if self.stale:
            return self._as_state([], [], [])
        self._trim()
        self._rewind(self._dropped)
        parts = [part.state() for part in self.parts]
        keys, events = self._held.keys(), self._held.as_bytes()
        self.settle()
        return self._as_state(parts, keys, events)

    def bare_state(self) -> LaneState:
        """The lane at rest as a value, without what its attempts have put away."""
        return self._as_state([part.bare_state() for part in self.parts], [], [])

    def _as_state(self, parts: list[AttemptState], keys: list[Key], events: list[bytes]) -> LaneState:
        is_whole = not self.stale
        return LaneState(
            self.number,
            self.stale,
            self._presence.told(),
            self._presence.divided,
            list(self._cuts),
            splits=list(self._splits) if is_whole else [],
            dropped=self._dropped if is_whole else 0,
            dropped_through=self._dropped_through if is_whole else None,
            at_rest=self.is_at_rest and is_whole,
            parts=parts,
            keys=keys,
            events=events,
            is_cut=self.is_cut,
        )

    @classmethod
    def of_state(  # noqa: PLR0913, PLR0917 - what a lane is made of
        cls,
        job_id: str,
        settings: Settings,
        state: LaneState,
        archive: Archive,
        refusals: Refusals,
        attempts: Sequence[Attempt] | None = None,
    ) -> Lane:
        """The lane that gave `state`; one that gave a bare one needs its attempts beside it.

        Raises:
            ValueError: it has not one event a key.
        """
        if len(state.keys) != len(state.events):
            raise ValueError("a lane holds not one event a key")
        lane = cls(state.number, job_id, settings, archive, refusals)
        lane._presence = Presence(state.presence, divided=state.divided)
        lane._cuts = list(state.cuts)
        lane.stale, lane._splits = state.stale, list(state.splits)
        lane.is_cut = state.is_cut
        if attempts is None:
            attempts = [Attempt.of_state(state.number, settings, part, archive) for part in state.parts]
        lane.parts = list(attempts)
        for (at_ns, rank, writer, seq), event in zip(state.keys, state.events, strict=True):
            lane._held.put(at_ns, event, rank, sys.intern(writer), seq)
        lane._dropped, lane._dropped_through = state.dropped, state.dropped_through
        lane._consumed = state.dropped
        lane.is_at_rest, lane._touched = state.at_rest, not state.at_rest
        if state.at_rest:
            lane._marks, lane._held = _NO_MARKS, _NOTHING_HELD
        else:
            last = lane.parts[-1].mark() if lane.parts else None
            lane._marks = [LaneMark(state.dropped, len(lane.parts), last)]
            if lane.parts:
                lane._pack_ranks()
        return lane


_NO_MARKS = [LaneMark(0, 0, None)]
_NOTHING_HELD = HeldEvents("", 0)
"""Of lanes at rest, all of them: nothing is added to it before they wake."""
