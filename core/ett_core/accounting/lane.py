"""The events of one attempt number, put in order and folded as they come.

Events usually come in order and are folded at once. One that comes late takes the fold back to
the nearest mark before its place and folds again from there; marks reach back for the late
window. What comes later still is folded again from the history of the job. A restart that
forgot to count its attempt shows as a second writer of the lowest rank; the lane then holds two
attempts, divided at that writer's first event.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ett_core.accounting.account import nanoseconds
from ett_core.accounting.attempt import Attempt, AttemptMark, AttemptState
from ett_core.accounting.settings import Settings
from ett_core.events import AnyEvent

MARK_EVERY = 64
TRIM_AT = 4096


Key: TypeAlias = tuple[int, int, str, int]
"""The place of an event among those of its attempt: time in ns, rank, writer, sequence number."""


class _Mark(NamedTuple):
    consumed: int
    parts: int
    last: AttemptMark | None


class LaneState(NamedTuple):
    """A `Lane` as a value: its attempts as of its first mark, and what came after that.

    A stale lane has neither: it is folded again from the history.
    """

    number: int
    stale: bool
    presence: list[tuple[int, str, int, int]]
    divided: bool
    cuts: dict[int, int | None]
    splits: list[int]
    dropped: int
    parts: list[AttemptState]
    events: list[tuple[int, AnyEvent]]


class Lane:
    """One attempt number: its order, its marks and the attempts found in it."""

    def __init__(self, number: int, settings: Settings) -> None:
        self.number = number
        self._settings = settings
        self._window_ns = nanoseconds(settings.late_window_s)
        self._presence: dict[tuple[int, str], list[int]] = {}
        self._divided = False
        self._cuts: dict[int, int | None] = {}
        self._reset()

    def _reset(self) -> None:
        self.stale = False
        """Whether the lane must be folded again from the history."""
        self.parts: list[Attempt] = []
        self._keys: list[Key] = []
        self._events: list[AnyEvent] = []
        self._dropped = 0
        self._consumed = 0
        self._trim_at = TRIM_AT
        self._marks: list[_Mark] = [_Mark(0, 0, None)]
        self._splits: list[int] = []

    def add(self, at_ns: int, event: AnyEvent) -> None:
        """Put an event in its place and fold it if that is the end."""
        key = (at_ns, event.rank, event.writer, event.seq)
        self._note_presence(at_ns, event)
        if self.stale:
            return
        keys = self._keys
        if not keys or key > keys[-1]:
            keys.append(key)
            self._events.append(event)
        elif self._dropped and key < keys[0]:
            self.stale = True
            return
        else:
            place = bisect_left(keys, key)
            keys.insert(place, key)
            self._events.insert(place, event)
            self._rewind(self._dropped + place)
        if len(keys) >= self._trim_at:
            self.settle()
            self._trim()

    def _note_presence(self, at_ns: int, event: AnyEvent) -> None:
        seen = self._presence.get((event.rank, event.writer))
        if seen is None:
            self._presence[event.rank, event.writer] = [at_ns, at_ns]
            self._divided = self._several_lowest_writers()
        elif at_ns > seen[1]:
            seen[1] = at_ns
        elif at_ns < seen[0]:
            seen[0] = at_ns

    def _writers(self) -> dict[int, list[tuple[int, int]]]:
        """By rank, the first and last event of each of its writers, in the order of the first."""
        found: dict[int, list[tuple[int, int]]] = {}
        for (rank, _), (first, last) in self._presence.items():
            found.setdefault(rank, []).append((first, last))
        return {rank: sorted(writers) for rank, writers in found.items()}

    def _several_lowest_writers(self) -> bool:
        ranks = [rank for rank, _ in self._presence if rank >= 0]
        return bool(ranks) and ranks.count(min(ranks)) > 1

    def has_writer(self, writer: str) -> bool:
        """Whether a writer sent events of this attempt."""
        return any(name == writer for _, name in self._presence)

    def holds(self, at_ns: int, event: AnyEvent) -> bool:
        """Whether this very event is among those still held in order."""
        place = bisect_left(self._keys, (at_ns, event.rank, event.writer, event.seq))
        return place < len(self._events) and self._events[place] == event

    def settle(self) -> None:
        """Fold everything that is in place."""
        if self.stale:
            return
        if self._divided or self._splits:
            self._divide()
            if self.stale:
                return
        first = self._consumed - self._dropped
        due = self._marks[-1].consumed + MARK_EVERY
        plain = not self._splits and not self._cuts
        if plain and not self.parts and self._keys:
            self.parts.append(Attempt(self.number, self._settings))
        consume = self.parts[0].consume if plain and self.parts else self._consume
        for key, event in zip(self._keys[first:], self._events[first:], strict=True):
            consume(key[0], event)
            self._consumed += 1
            if self._consumed >= due:
                last = self.parts[-1]
                self._marks.append(_Mark(self._consumed, len(self.parts), last.mark()))
                due = self._consumed + MARK_EVERY + 4 * len(last.ranks)

    def _consume(self, at_ns: int, event: AnyEvent) -> None:
        part = bisect_right(self._splits, at_ns) if self._splits else 0
        while len(self.parts) <= part:
            self.parts.append(Attempt(self.number, self._settings))
        cut_ns = self._cuts.get(part)
        if cut_ns is None or at_ns <= cut_ns:
            self.parts[part].consume(at_ns, event)
        else:
            self.parts[part].consume_late(at_ns, event)

    def cut(self, part: int, at_ns: int | None) -> bool:
        """Set from when on the next attempt, or the end of the job, has silenced a part.

        Returns whether that changes what was folded; `settle` then folds it again.
        """
        before = self._cuts.get(part)
        if before == at_ns:
            return False
        self._cuts[part] = at_ns
        moment = min(at for at in (before, at_ns) if at is not None)
        if part >= len(self.parts) or self.parts[part].last_ns <= moment:
            return False
        if self._dropped and moment < self._keys[0][0]:
            self.stale = True
        else:
            self._rewind(self._dropped + bisect_left(self._keys, (moment, -1, "", -1)))
        return True

    def _divide(self) -> None:
        """Find restarts that forgot to count: the lowest rank begins again after its last event."""
        splits = division_moments(self._writers())
        if splits == self._splits:
            return
        changed = min(set(splits) ^ set(self._splits))
        place = bisect_left(self._keys, (changed, -1, "", -1))
        if place == 0 and self._dropped:
            self.stale = True
            return
        self._splits = splits
        self._rewind(self._dropped + place)

    def _rewind(self, consumed: int) -> None:
        """Take the fold back to the nearest mark that had consumed no more than this."""
        if consumed >= self._consumed:
            return
        while self._marks[-1].consumed > consumed:
            self._marks.pop()
        mark = self._marks[-1]
        del self.parts[mark.parts :]
        if mark.last is not None:
            self.parts[-1].restore(mark.last)
        self._consumed = mark.consumed

    def _trim(self) -> None:
        """Let go of events before the late window, and of the marks that they needed."""
        horizon = (self._keys[-1][0] - self._window_ns, -1, "", -1)
        settled = self._dropped + bisect_left(self._keys, horizon)
        keep = max((i for i, m in enumerate(self._marks) if m.consumed <= settled), default=0)
        drop = self._marks[keep].consumed - self._dropped
        del self._marks[:keep], self._keys[:drop], self._events[:drop]
        self._dropped += drop
        self._trim_at = max(TRIM_AT, 2 * len(self._keys))

    def state(self) -> LaneState:
        """The lane as a value; whatever is in place is folded before."""
        self.settle()
        presence = [(rank, writer, seen[0], seen[1]) for (rank, writer), seen in self._presence.items()]
        bare = LaneState(self.number, self.stale, presence, self._divided, dict(self._cuts), [], 0, [], [])
        if self.stale:
            return bare
        self._trim()
        self._rewind(self._dropped)
        parts = [part.state() for part in self.parts]
        events = [(key[0], event) for key, event in zip(self._keys, self._events, strict=True)]
        self.settle()
        return bare._replace(splits=list(self._splits), dropped=self._dropped, parts=parts, events=events)

    @classmethod
    def of_state(cls, settings: Settings, state: LaneState) -> Lane:
        """The lane that gave `state`."""
        lane = cls(state.number, settings)
        lane._presence = {(rank, writer): [first, last] for rank, writer, first, last in state.presence}
        lane._divided, lane._cuts = state.divided, dict(state.cuts)
        lane.stale, lane._splits = state.stale, list(state.splits)
        lane.parts = [Attempt.of_state(state.number, settings, part) for part in state.parts]
        lane._keys = [(at, e.rank, e.writer, e.seq) for at, e in state.events]
        lane._events = [event for _, event in state.events]
        lane._dropped = lane._consumed = state.dropped
        last = lane.parts[-1].mark() if lane.parts else None
        lane._marks = [_Mark(state.dropped, len(lane.parts), last)]
        return lane

    def refold(self, placed: Iterable[tuple[int, AnyEvent]]) -> None:
        """Fold the lane anew from all its events, in any order, each once, with their times."""
        ordered = sorted(((at, e.rank, e.writer, e.seq), e) for at, e in placed)
        self._presence = {}
        self._reset()
        for key, event in ordered:
            self._note_presence(key[0], event)
        self._splits = division_moments(self._writers()) if self._divided else []
        for key, event in ordered:
            self.add(key[0], event)
        self.settle()


def division_moments(writers: Mapping[int, Sequence[tuple[int, int]]]) -> list[int]:
    """When a job was started again under the same attempt number.

    The lowest rank (not the launcher) shows it: it begins again. Where another rank or the
    launcher began again before that, but after the lowest had fallen silent, that is the moment.

    >>> division_moments({-1: [(0, 70), (78, 90)], 0: [(0, 20), (80, 90)]})
    [78]
    """
    ranks = [rank for rank in writers if rank >= 0]
    if not ranks:
        return []
    lowest = min(ranks)
    others = [at for rank in writers if rank != lowest for _, at in begun_again(writers[rank])]
    return [
        min([moment, *(at for at in others if silent_ns < at < moment)])
        for silent_ns, moment in begun_again(writers[lowest])
    ]


def begun_again(writers: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """When one rank had fallen silent, and when a new writer of it then began.

    `writers` holds the first and last event of each writer, in the order of the first.

    >>> begun_again([(0, 20), (10, 30), (80, 90)])
    [(30, 80)]
    """
    found: list[tuple[int, int]] = []
    silent_ns = None
    for first, last in writers:
        if silent_ns is not None and first > silent_ns:
            found.append((silent_ns, first))
        silent_ns = last if silent_ns is None else max(silent_ns, last)
    return found
