"""Ranks whose processes are stopped, by a signal or a debugger: noticed from outside and told.

In synchronous training the step of every rank takes as long as that of the slowest, so no step time names
the one that is late. The kernel does: a process in state T does nothing. An observer of the launcher's
main thread; one small read of `/proc` a rank and look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ett_core.evidence_log import STOPPED
from ett_core.stopped_ranks import begun_words, over_words
from ett_trainer_hooks.launcher.ranks import RankProcess
from ett_trainer_hooks.procfs import process_of

STOPPED_STATES = "Tt"
TOLD_AFTER_S = 2.0
"""A rank that was stopped for so long is told of."""
RUNS_AGAIN_S = 30.0
"""It runs again when it was not found stopped for so long."""
LONGEST_LOOK_S = 1.0
"""No more than this is counted between two looks."""
TOLD_PER_JOB = 40


class Held:
    """A rank that was found stopped: `since` in Unix seconds, the others by the clock of the looks."""

    def __init__(self, since: float, began_s: float) -> None:
        self.since = since
        self.began_s = began_s
        self.last_s = began_s
        self.stopped_s = 0.0
        self.is_told = False


class StoppedWatch:
    """The observer.

    Args:
        alive: the rank processes that live.
        fact: tells evidence: its source, its text, its moment.
        monotonic: the clock of the looks.
        wall: Unix seconds.
        state: the kernel's letter for a process; empty where it is gone.
    """

    def __init__(
        self,
        alive: Callable[[], Sequence[RankProcess]],
        fact: Callable[[str, str, float | None], None],
        *,
        monotonic: Callable[[], float],
        wall: Callable[[], float],
        state: Callable[[int], str] = lambda pid: getattr(process_of(pid), "state", ""),
    ) -> None:
        self._alive = alive
        self._fact = fact
        self._monotonic = monotonic
        self._wall = wall
        self._state = state
        self._looked_s = monotonic()
        self._held: dict[Path, tuple[RankProcess, Held]] = {}
        self._told = 0

    def look(self) -> None:
        """One look at all ranks."""
        now_s = self._monotonic()
        passed_s = min(now_s - self._looked_s, LONGEST_LOOK_S)
        self._looked_s = now_s
        alive = {process.journal: process for process in self._alive()}
        for process in alive.values():
            self._look_at(process, now_s, passed_s)
        for journal in self._held.keys() - alive.keys():
            self._is_over(journal, now_s, is_gone=True)

    def _look_at(self, process: RankProcess, now_s: float, passed_s: float) -> None:
        known = self._held.get(process.journal)
        if self._state(process.pid) in tuple(STOPPED_STATES):
            if known is None:
                known = process, Held(self._wall(), now_s)
                self._held[process.journal] = known
            else:
                known[1].stopped_s += passed_s
            known[1].last_s = now_s
            self._tell(*known, now_s)
        elif known is not None and now_s - known[1].last_s > RUNS_AGAIN_S:
            self._is_over(process.journal, now_s, is_gone=False)

    def _tell(self, process: RankProcess, held: Held, now_s: float) -> None:
        if held.is_told or held.stopped_s < TOLD_AFTER_S or self._told >= TOLD_PER_JOB:
            return
        held.is_told = True
        self._told += 1
        words = begun_words(process.rank, process.pid, held.stopped_s, now_s - held.began_s)
        self._fact(STOPPED, words, held.since)

    def _is_over(self, journal: Path, now_s: float, *, is_gone: bool) -> None:
        process, held = self._held.pop(journal)
        if held.is_told:
            lasted_s = (now_s if is_gone else held.last_s) - held.began_s
            words = over_words(process.rank, process.pid, held.stopped_s, lasted_s, is_gone=is_gone)
            self._fact(STOPPED, words, None)
