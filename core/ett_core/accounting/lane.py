"""The events of one attempt number, put in order and folded as they come.

Events usually come in order and are folded at once. One that comes late takes the fold back to
the nearest mark before its place and folds again from there; marks reach back for the late
window. What comes later still is folded again from the history of the job. Events that are
folded are held packed; a lane to which nothing came for longer than the late window is at rest:
it holds no events, and its attempts put away what they rarely need. A restart that
forgot to count its attempt shows as a second writer of the lowest rank; the lane then holds two
attempts, divided at that writer's first event.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ett_core.accounting.account import nanoseconds
from ett_core.accounting.attempt import NEVER_NS, Attempt
from ett_core.accounting.attempt_state import AttemptMark, AttemptState
from ett_core.accounting.held import HeldEvents, Key, packed
from ett_core.accounting.settings import Settings
from ett_core.archive import Archive
from ett_core.events import AnyEvent
from ett_core.refusals import HeldBackError, Refusals

MARK_EVERY = 24
TRIM_AT = 48
"""Events held before the lane looks for those that it can let go; more after it kept more."""


class _Presence:
    """First and last event of a writer of a rank."""

    __slots__ = ("first_ns", "last_ns", "writer")

    def __init__(self, first_ns: int, last_ns: int, writer: str) -> None:
        self.first_ns, self.last_ns, self.writer = first_ns, last_ns, writer


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
    cuts: list[int | None]
    splits: list[int]
    dropped: int
    dropped_through: Key | None
    at_rest: bool
    parts: list[AttemptState]
    keys: list[Key]
    events: list[bytes]


class Lane:
    """One attempt number: its order, its marks and the attempts found in it."""

    __slots__ = (
        "_archive",
        "_consumed",
        "_cuts",
        "_divided",
        "_dropped",
        "_dropped_through",
        "_held",
        "_is_anew",
        "_job_id",
        "_marks",
        "_packed_presence",
        "_presence",
        "_refusals",
        "_settings",
        "_splits",
        "_touched",
        "_trim_at",
        "_window_ns",
        "is_at_rest",
        "number",
        "parts",
        "stale",
    )

    def __init__(
        self,
        number: int,
        job_id: str,
        settings: Settings,
        archive: Archive,
        refusals: Refusals,
    ) -> None:
        """Start empty; `refusals` learn of the events that cannot be folded."""
        self.number = number
        self._job_id = job_id
        self._refusals = refusals
        self._settings = settings
        self._archive = archive
        self._window_ns = nanoseconds(settings.late_window_s)
        self._presence: dict[tuple[int, str], _Presence] = {}
        """First and last event of each writer of each rank."""
        self._packed_presence = b""
        """The same while the lane is at rest."""
        self._divided = False
        self._is_anew = False
        """Whether attempts were begun anew since somebody asked."""
        self._cuts: list[int | None] = []
        """Of each part, from when on it is silenced."""
        self._reset()

    def _reset(self) -> None:
        self.stale = False
        """Whether the lane must be folded again from the history."""
        self.parts: list[Attempt] = []
        self._held = HeldEvents(self._job_id, self.number, self._archive)
        self._dropped = 0
        self._dropped_through: Key | None = None
        self.is_at_rest = False
        self._touched = True
        self._consumed = 0
        self._trim_at = TRIM_AT
        self._marks: list[_Mark] = [_Mark(0, 0, None)]
        self._splits: list[int] = []

    def add(self, at_ns: int, event: AnyEvent) -> None:
        """Put an event in its place and fold it if that is the end."""
        writer = self._note_presence(at_ns, event)
        rank, seq = event.rank, event.seq
        if self.stale or (self._refusals.known and (writer, seq) in self._refusals.known):
            return
        self._touched = True
        if self._dropped_through is not None and (at_ns, rank, writer, seq) < self._dropped_through:
            self.stale = True
            return
        if self.is_at_rest:
            self._wake()
        held = self._held
        place = self._dropped + held.put(at_ns, event, rank, writer, seq)
        if place < self._consumed:
            self._rewind(place)
        if place + 1 - self._dropped >= self._trim_at:
            self.settle()
            self._trim()

    def _note_presence(self, at_ns: int, event: AnyEvent) -> str:
        """Learn when a writer spoke; gives its name as one object for all its events."""
        if self._packed_presence:
            self._unpack_presence()
        seen = self._presence.get((event.rank, event.writer))
        if seen is None:
            writer = sys.intern(event.writer)
            seen = self._presence[event.rank, writer] = _Presence(at_ns, at_ns, writer)
            self._divided = self._several_lowest_writers()
        elif at_ns > seen.last_ns:
            seen.last_ns = at_ns
        elif at_ns < seen.first_ns:
            seen.first_ns = at_ns
        return seen.writer

    def _unpack_presence(self) -> None:
        for rank, writer, first, last in _presence_decoder.decode(self._packed_presence):
            name = sys.intern(writer)
            self._presence[rank, name] = _Presence(first, last, name)
        self._packed_presence = b""

    def _told_presence(self) -> list[tuple[int, str, int, int]]:
        if self._packed_presence:
            return _presence_decoder.decode(self._packed_presence)
        return [
            (rank, writer, seen.first_ns, seen.last_ns) for (rank, writer), seen in self._presence.items()
        ]

    def _writers(self) -> dict[int, list[tuple[int, int]]]:
        """By rank, the first and last event of each of its writers, in the order of the first."""
        found: dict[int, list[tuple[int, int]]] = {}
        for rank, _, first, last in self._told_presence():
            found.setdefault(rank, []).append((first, last))
        return {rank: sorted(writers) for rank, writers in found.items()}

    def _several_lowest_writers(self) -> bool:
        ranks = [rank for rank, _ in self._presence if rank >= 0]
        return bool(ranks) and ranks.count(min(ranks)) > 1

    def writers(self) -> set[str]:
        """Who sent events of this attempt."""
        return {row[1] for row in self._told_presence()}

    def has_writer(self, writer: str) -> bool:
        """Whether a writer sent events of this attempt."""
        return writer in self.writers()

    def holds(self, at_ns: int, event: AnyEvent) -> bool:
        """Whether this very event is among those still held in order."""
        return self._held.holds((at_ns, event.rank, event.writer, event.seq), event)

    def settle(self) -> None:
        """Fold everything that is in place, but for what cannot be folded."""
        while not self.stale and not self._fold_held():
            pass

    def _fold_held(self) -> bool:
        """Fold what is in place; False where it ends at an event that cannot be folded, now left out."""
        if self._divided or self._splits:
            self._divide()
            if self.stale:
                return True
        first = self._consumed - self._dropped
        due = self._marks[-1].consumed + MARK_EVERY
        plain = not self._splits and not self._cuts
        if plain and not self.parts and len(self._held):
            self.parts.append(self._attempt())
        consume = self.parts[0].consume if plain and self.parts else self._consume
        at_hand, moments, events = self._held.from_place(first)
        put_away = first - at_hand
        for place in range(at_hand, len(events)):
            at_ns, event = moments[place], events[place]
            is_new = not isinstance(event, bytes)
            if isinstance(event, bytes):
                event = self._held.at(put_away + place)[1]
            try:
                consume(at_ns, event)
                if is_new:
                    events[place] = packed(event)
            except HeldBackError as error:
                self._leave_out(error.at_ns, error.event, error.__cause__ or error)
                return False
            except Exception as error:  # noqa: BLE001 - one event must not take away all others
                self._leave_out(at_ns, event, error)
                return False
            self._consumed += 1
            if self._consumed >= due:
                last = self.parts[-1]
                self._marks.append(_Mark(self._consumed, len(self.parts), last.mark()))
                due = self._consumed + MARK_EVERY + 2 * len(last.ranks)
        return True

    def _leave_out(self, at_ns: int, event: AnyEvent, error: BaseException) -> None:
        """Let go of an event that cannot be folded, and take back what came of trying."""
        self._refusals.note(event, error)
        key = (at_ns, event.rank, event.writer, event.seq)
        if not self._held.holds(key, event):
            self.stale = True
            return
        place = self._held.place_of(key)
        self._held.remove(place)
        self._consumed += 1
        self._rewind(min(self._dropped + place, self._consumed - 1))

    def _attempt(self) -> Attempt:
        return Attempt(self.number, self._settings, self._archive)

    def _consume(self, at_ns: int, event: AnyEvent) -> None:
        part = bisect_right(self._splits, at_ns) if self._splits else 0
        while len(self.parts) <= part:
            self.parts.append(self._attempt())
        cut_ns = self._cut_of(part)
        if cut_ns is None or at_ns <= cut_ns:
            self.parts[part].consume(at_ns, event)
        else:
            self.parts[part].consume_late(at_ns, event)

    def _cut_of(self, part: int) -> int | None:
        return self._cuts[part] if part < len(self._cuts) else None

    def cut(self, part: int, at_ns: int | None) -> bool:
        """Set from when on the next attempt, or the end of the job, has silenced a part.

        Returns whether that changes what was folded; `settle` then folds it again.
        """
        before = self._cut_of(part)
        if before == at_ns:
            return False
        self._cuts += [None] * (part + 1 - len(self._cuts))
        self._cuts[part] = at_ns
        moment = min(at for at in (before, at_ns) if at is not None)
        if part >= len(self.parts) or self.parts[part].last_ns <= moment:
            return False
        if self._dropped_through is not None and moment <= self._dropped_through[0]:
            self.stale = True
        else:
            self._rewind(self._dropped + self._held.place_of((moment, -1, "", -1)))
        return True

    def _divide(self) -> None:
        """Find restarts that forgot to count: the lowest rank begins again after its last event."""
        splits = division_moments(self._writers())
        if splits == self._splits:
            return
        changed = min(set(splits) ^ set(self._splits))
        place = self._held.place_of((changed, -1, "", -1))
        if self._dropped_through is not None and changed <= self._dropped_through[0]:
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
        self._is_anew = self._is_anew or len(self.parts) > mark.parts
        del self.parts[mark.parts :]
        if mark.last is not None:
            self.parts[-1].restore(mark.last)
        self._consumed = mark.consumed

    def take_revised_ns(self) -> int:
        """From when on what was told was told anew since the last call; `NEVER_NS` where nothing was."""
        since_ns = 0 if self._is_anew else min((part.revised_ns for part in self.parts), default=NEVER_NS)
        self._is_anew = False
        for part in self.parts:
            part.revised_ns = NEVER_NS
        return since_ns

    def _trim(self) -> None:
        """Let go of events before the late window, and of the marks that they needed."""
        last_ns = self._held.last_ns
        if last_ns is None:
            return
        settled = self._dropped + self._held.before(last_ns - self._window_ns)
        keep = max((i for i, m in enumerate(self._marks) if m.consumed <= settled), default=0)
        self._let_go(self._marks[keep].consumed - self._dropped)
        del self._marks[:keep]
        self._trim_at = max(TRIM_AT, len(self._held) + TRIM_AT // 2)
        for mark in self._marks[:1]:
            loop = None if mark.last is None else mark.last.loop
            if loop is not None and loop[0] is self.parts[mark.parts - 1].loop:
                loop[0].close(loop[1].rows)
        self._held.put_away_before(mark.consumed - self._dropped for mark in self._marks)
        if keep:
            self._pack_ranks()

    def _pack_ranks(self) -> None:
        """Pack the ranks that no mark leads back to another state of."""
        marks = [m.last for m in self._marks if m.last is not None and m.parts == len(self.parts)]
        self.parts[-1].pack_ranks(marks)

    def _let_go(self, count: int) -> None:
        if count:
            self._dropped_through = self._held.key(count - 1)
            self._dropped += count
            self._held.drop(count)

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
        self._packed_presence = _encoder.encode(self._told_presence())
        self._presence = {}
        for part in self.parts:
            part.rest()

    @property
    def newest_ns(self) -> int:
        """When the last event happened, as far as they are in place; 0 without one."""
        newest_ns = self._held.last_ns
        if newest_ns is None and self._dropped_through is not None:
            newest_ns = self._dropped_through[0]
        return newest_ns or 0

    def _wake(self) -> None:
        """Go on after rest: the only mark is where the lane stands."""
        self.is_at_rest, self._held = False, HeldEvents(self._job_id, self.number, self._archive)
        last = self.parts[-1].mark() if self.parts else None
        self._marks = [_Mark(self._consumed, len(self.parts), last)]

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
            self._told_presence(),
            self._divided,
            list(self._cuts),
            splits=list(self._splits) if is_whole else [],
            dropped=self._dropped if is_whole else 0,
            dropped_through=self._dropped_through if is_whole else None,
            at_rest=self.is_at_rest and is_whole,
            parts=parts,
            keys=keys,
            events=events,
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
        lane._packed_presence = _encoder.encode(state.presence)
        lane._divided, lane._cuts = state.divided, list(state.cuts)
        lane.stale, lane._splits = state.stale, list(state.splits)
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
            lane._marks = [_Mark(state.dropped, len(lane.parts), last)]
            if lane.parts:
                lane._pack_ranks()
        return lane

    def refold(self, placed: Iterable[tuple[int, AnyEvent]]) -> None:
        """Fold the lane anew from all its events, in any order, each once, with their times."""
        ordered = sorted(((at, e.rank, e.writer, e.seq), e) for at, e in placed)
        self._presence, self._packed_presence = {}, b""
        self._is_anew = True
        self._reset()
        for key, event in ordered:
            self._note_presence(key[0], event)
        self._splits = division_moments(self._writers()) if self._divided else []
        for key, event in ordered:
            self.add(key[0], event)
        self.settle()


_NO_MARKS = [_Mark(0, 0, None)]
_NOTHING_HELD = HeldEvents("", 0)
"""Of lanes at rest, all of them: nothing is added to it before they wake."""
_encoder = msgspec.msgpack.Encoder()
_presence_decoder = msgspec.msgpack.Decoder(list[tuple[int, str, int, int]])


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
