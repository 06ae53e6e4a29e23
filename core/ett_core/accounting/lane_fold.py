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

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ett_core.accounting.account import nanoseconds
from ett_core.accounting.attempt import Attempt
from ett_core.accounting.attempt_state import NEVER_NS
from ett_core.accounting.held import HeldEvents, Key, packed
from ett_core.accounting.lane_state import LaneMark
from ett_core.accounting.presence import Presence
from ett_core.accounting.settings import Settings
from ett_core.archive import Archive
from ett_core.events import AnyEvent
from ett_core.refusals import GoneError, HeldBackError, Refusals

MARK_EVERY = 24
TRIM_AT = 48
"""Events held before the lane looks for those that it can let go; more after it kept more."""


class LaneFold:
    """The order of the events of one attempt number, its marks, and the attempts found in it."""

    __slots__ = (
        "_archive",
        "_consumed",
        "_cuts",
        "_dropped",
        "_dropped_through",
        "_held",
        "_is_anew",
        "_job_id",
        "_marks",
        "_presence",
        "_refusals",
        "_settings",
        "_splits",
        "_touched",
        "_trim_at",
        "_window_ns",
        "is_at_rest",
        "is_cut",
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
        self._presence = Presence()
        self._is_anew = False
        """Whether attempts were begun anew since somebody asked."""
        self._cuts: list[int | None] = []
        """Of each part, from when on it is silenced."""
        self.is_cut = False
        """Whether the events that it was folded from are deleted: it cannot be folded again from them."""
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
        self._marks: list[LaneMark] = [LaneMark(0, 0, None)]
        self._splits: list[int] = []

    def add(self, at_ns: int, event: AnyEvent) -> None:
        """Put an event in its place and fold it if that is the end.

        Raises:
            GoneError: its place is among events that are deleted.
        """
        if self.is_cut and self._is_before_dropped((at_ns, event.rank, event.writer, event.seq)):
            raise GoneError
        self._put(at_ns, event, self._presence.note(at_ns, event))

    def add_run(self, moments: Sequence[int], run: Sequence[AnyEvent]) -> None:
        """Put events of one writer and rank in their places, as `add` does each; no event is deleted."""
        self._presence.note(min(moments), run[0])
        writer = self._presence.note(max(moments), run[0])
        for at_ns, event in zip(moments, run, strict=True):
            if self.stale:
                return
            try:
                self._put(at_ns, event, writer)
            except Exception as error:  # noqa: BLE001 - one event must not take away all others
                self._refusals.note(event, error)

    def _put(self, at_ns: int, event: AnyEvent, writer: str) -> None:
        rank, seq = event.rank, event.seq
        if self.stale or (self._refusals.known and (writer, seq) in self._refusals.known):
            return
        self._touched = True
        if self._is_before_dropped((at_ns, rank, writer, seq)):
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

    def _is_before_dropped(self, key: Key) -> bool:
        return self._dropped_through is not None and key < self._dropped_through

    def holds(self, at_ns: int, event: AnyEvent) -> bool:
        """Whether this very event is among those still held in order."""
        return self._held.holds((at_ns, event.rank, event.writer, event.seq), event)

    def settle(self) -> None:
        """Fold everything that is in place, but for what cannot be folded."""
        while not self.stale and not self._fold_held():
            pass

    def _fold_held(self) -> bool:
        """Fold what is in place; False where it ends at an event that cannot be folded, now left out."""
        if self._presence.divided or self._splits:
            self._divide()
            if self.stale:
                return True
        first = self._consumed - self._dropped
        due = 0  # until something is folded: nobody is to ask for ranks that lie packed
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
            due = due or self._marks[-1].consumed + self._mark_every()
            if self._consumed >= due:
                last = self.parts[-1]
                self._marks.append(LaneMark(self._consumed, len(self.parts), last.mark()))
                due = self._consumed + self._mark_every()
        return True

    def _mark_every(self) -> int:
        """Events between two marks: a mark costs as much as there are ranks."""
        return MARK_EVERY + (2 * len(self.parts[-1].ranks) if self.parts else 0)

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

        Returns whether that changes what was folded; `settle` then folds it again. What was told before the
        events that are deleted stays as it is.
        """
        before = self._cut_of(part)
        if before == at_ns:
            return False
        self._cuts += [None] * (part + 1 - len(self._cuts))
        self._cuts[part] = at_ns
        moment = min(at for at in (before, at_ns) if at is not None)
        if part >= len(self.parts) or self.parts[part].last_ns <= moment:
            return False
        if self._dropped_through is None or moment > self._dropped_through[0]:
            self._rewind(self._dropped + self._held.place_of((moment, -1, "", -1)))
        elif self.is_cut:
            return False
        else:
            self.stale = True
        return True

    def _divide(self) -> None:
        """Find restarts that forgot to count: the lowest rank begins again after its last event."""
        splits = self._presence.splits()
        if self.is_cut and self._dropped_through is not None:
            through_ns = self._dropped_through[0]
            before, after = (
                (at for at in self._splits if at <= through_ns),
                (at for at in splits if at > through_ns),
            )
            splits = [*before, *after]
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
        self._trim_at = max(TRIM_AT, len(self._held) + max(TRIM_AT // 4, len(self._held) // 16))
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
        self._marks = [LaneMark(self._consumed, len(self.parts), last)]

    def refold(self, placed: Iterable[tuple[int, AnyEvent]]) -> None:
        """Fold the lane anew from all its events, in any order, each once, with their times."""
        ordered = sorted(((at, e.rank, e.writer, e.seq), e) for at, e in placed)
        self._presence = Presence()
        self._is_anew = True
        self._reset()
        for key, event in ordered:
            self._presence.note(key[0], event)
        self._splits = self._presence.splits() if self._presence.divided else []
        for key, event in ordered:
            self.add(key[0], event)
        self.settle()
