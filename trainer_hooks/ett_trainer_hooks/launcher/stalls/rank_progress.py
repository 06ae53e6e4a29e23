"""How far one rank is, by its journal: pure, from events to what it does and how long that may take.

Used by the launcher's main thread. Heartbeats are no progress: they come from a thread beside the
training, which may hang all the while.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from ett_core.events import AnyEvent, AttemptEnd, Counters, FirstBatch, PhaseBegin, PhaseEnd, Progress
from ett_trainer_hooks.launcher.stalls.settings import StallLimits
from ett_trainer_hooks.recording.facts import BATCHES_SEEN
from ett_trainer_hooks.recording.spans import MAIN_TRACK

STEPS_LONG = 10.0
"""A step that takes this many times its usual length is no usual step."""
REPORTS_LONG = 3.0
"""The same for the time between two reports."""
SELDOM_S = 60.0
"""Ranks other than the first one report once in this many seconds."""
REPORTS_KEPT = 5


class RankProgress:
    """The fold of one journal: `take` its events in order, then ask."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.ended = False
        """It said that its attempt is over."""
        self.step: int | None = None
        """The last step that it reported, None before the first."""
        self._open: dict[str, list[str]] = {}
        self._first_batch = False
        self._batches = 0.0
        self._step_s: deque[float] = deque(maxlen=REPORTS_KEPT)
        self._gaps_s: deque[float] = deque(maxlen=REPORTS_KEPT)
        self._reported_at: float | None = None

    def take(self, events: Iterable[AnyEvent]) -> bool:
        """Take in new events; True where any of them is progress."""
        moves = [self._take(event) for event in events]
        return any(moves)

    @property
    def place(self) -> str:
        """What it does: the innermost phase of its main track, else `start`, `first_batch` or `loop`."""
        phases = self._open.get(MAIN_TRACK)
        if phases:
            return phases[-1]
        if self.step is None:
            return "first_batch" if self._first_batch else "start"
        return "loop"

    @property
    def in_words(self) -> str:
        """What it does, for a person."""
        if self.step is None:
            words = {"start": "before its first batch", "first_batch": "in its first step"}
            return words.get(self.place, f"in {self.place}, before its first step")
        where = "in the loop" if self.place == "loop" else f"in {self.place}"
        return f"{where} (last report: step {self.step})"

    def limit_s(self, limits: StallLimits) -> float:
        """Seconds without progress that are too long where it is; infinite where that is off."""
        if self.step is None:
            limit_s = limits.first_batch_s
        elif self.place == "loop":
            limit_s = max(limits.after_s, self._usual_s) if limits.after_s else 0.0
        else:
            named = {
                "evaluation": limits.evaluation_s,
                "checkpoint": limits.checkpoint_s,
                "compile": limits.compile_s,
            }
            limit_s = named.get(self.place, limits.other_s)
        return limit_s or float("inf")

    @property
    def _usual_s(self) -> float:
        """No silence of this length is unusual in the loop, by the latest reports."""
        seldom_s = 0.0 if self.rank == 0 else SELDOM_S
        gap_s = max(self._gaps_s, default=seldom_s)
        return max(REPORTS_LONG * gap_s, STEPS_LONG * max(self._step_s, default=0.0))

    def _take(self, event: AnyEvent) -> bool:
        match event:
            case Progress():
                self._take_report(event)
                return event.steps > 0
            case PhaseBegin() | PhaseEnd():
                self._take_phase(event)
                return self._counts(event.track)
            case Counters():
                return self._goes_on(event.values.get(BATCHES_SEEN, 0.0))
            case FirstBatch():
                self._first_batch = True
                return True
            case AttemptEnd():
                self.ended = True
                return True
            case _:
                return False

    def _take_phase(self, event: PhaseBegin | PhaseEnd) -> None:
        phases = self._open.setdefault(event.track, [])
        if isinstance(event, PhaseBegin):
            phases.append(event.phase)
        else:
            _close(phases, event.phase)

    def _goes_on(self, batches: float) -> bool:
        more, self._batches = batches > self._batches, max(batches, self._batches)
        return more

    def _counts(self, track: str) -> bool:
        """Work beside the main track is progress at the start, where it is what all wait for."""
        return track == MAIN_TRACK or self.step is None

    def _take_report(self, event: Progress) -> None:
        if event.steps <= 0:
            return
        if self._reported_at is not None:
            self._gaps_s.append(max(event.time - self._reported_at, 0.0))
        self._reported_at = event.time
        self.step = event.step
        if event.step_seconds is not None and event.step_seconds.count:
            self._step_s.append((event.step_seconds.sum + event.data_wait_s) / event.step_seconds.count)


def _close(phases: list[str], name: str) -> None:
    """Close the innermost phase of a name, with what was left open inside it."""
    if name in phases:
        del phases[len(phases) - 1 - phases[::-1].index(name) :]


def where_they_are(ranks: Mapping[int, str]) -> str:
    """Ranks by what they do, in words; neighbours are written as a span.

    >>> where_they_are({0: "in checkpoint", 1: "in the loop", 2: "in the loop", 5: "in the loop"})
    'rank 0 in checkpoint; ranks 1-2, 5 in the loop'
    """
    groups: dict[str, list[int]] = {}
    for rank, words in sorted(ranks.items()):
        groups.setdefault(words, []).append(rank)
    return "; ".join(
        f"{'rank' if len(members) == 1 else 'ranks'} {_spans(members)} {words}"
        for words, members in groups.items()
    )


def _spans(numbers: Iterable[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
