"""The watchdog of a launcher: notices that no rank of this node makes progress, and says so once.

`StallWatch.look` is an observer of the launcher's main thread: it reads the journals of the ranks
and decides. What takes time (stacks, a dump of the flight recorder) is done by one thread a stall.
Silence is counted by looks: what passes while the launcher itself stands still, or while nothing
can be written to the disk of the journals, is nobody's silence.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from ett_trainer_hooks.guard import type_and_text
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.launcher.orphans import end_all
from ett_trainer_hooks.launcher.ranks import RankProcess, RankWatch
from ett_trainer_hooks.launcher.senders import Senders
from ett_trainer_hooks.launcher.stalls.followed import Followed, QuietClock
from ett_trainer_hooks.launcher.stalls.rank_progress import where_they_are
from ett_trainer_hooks.launcher.stalls.settings import StallSettings
from ett_trainer_hooks.launcher.stalls.stacks import py_spy_path, snapshot
from ett_trainer_hooks.procfs import Process

LOOK_EVERY_S = 1.0
CAPTURE_S = 120.0
"""Stacks that took longer are not waited for before a stalled command is ended."""
CAPTURED_PER_ATTEMPT = 3
"""Stalls of one attempt of which stacks are recorded, so that they leave room for other evidence."""
TOLD_PER_ATTEMPT = 20
"""Stalls of one attempt that are told at all."""
JOURNAL_S = 1.0
"""Seconds to wait for the launcher's own journal, to know whether journals can be written."""


class Reporter(Protocol):
    """Speaks for the launcher; may be called from any thread."""

    def fact(self, source: str, text: str, at: float | None = None) -> None:
        """Evidence."""

    def decision(self, what: str, why: str, values: Mapping[str, float]) -> None:
        """Something was decided."""

    def failed(self, message: str) -> None:
        """The attempt has failed."""


class Stall(msgspec.Struct):
    """A stall that goes on, the `number`th of its attempt; moments are those of the quiet clock."""

    since_s: float
    number: int
    capture: threading.Thread | None = None
    opened_s: float = 0.0
    asked_to_end_s: float | None = None
    targets: Sequence[Process] = ()
    killed: bool = False


class StallWatch:
    """The observer. `alive` are the processes of the ranks at this moment.

    Args:
        settings: what counts as a stall, and what to do.
        alive: the rank processes that live.
        reporter: speaks for the launcher.
        snapshot: what a process is doing, as text (of pid and rank).
        journals_written: False where nothing can be written beside the journals.
        processes: the command and all that descends from it.
        send: sends a signal to processes.
        grace_s: seconds between SIGTERM and SIGKILL for a command that is ended.
        monotonic: the clock that silence is measured with.
        wall: Unix seconds.
    """

    def __init__(  # noqa: PLR0913 - the world is injected
        self,
        settings: StallSettings,
        *,
        alive: Callable[[], Sequence[RankProcess]],
        reporter: Reporter,
        snapshot: Callable[[int, int], str],
        journals_written: Callable[[], bool],
        processes: Callable[[], Sequence[Process]],
        send: Callable[[Sequence[Process], int], None],
        grace_s: float,
        monotonic: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._alive = alive
        self._reporter = reporter
        self._snapshot = snapshot
        self._journals_written = journals_written
        self._processes = processes
        self._send = send
        self._grace_s = grace_s
        self._monotonic = monotonic
        self._wall = wall
        self._clock = QuietClock(monotonic())
        self._looked_s = -LOOK_EVERY_S
        self._followed: dict[Path, Followed] = {}
        self._stalls: Counter[int] = Counter()
        self.stall: Stall | None = None
        """The stall that goes on; None while there is progress."""

    def look(self) -> None:
        """One look, at most one in `LOOK_EVERY_S` seconds while nothing is stalled."""
        now_s = self._clock.tick(self._monotonic())
        if self.stall is None and now_s - self._looked_s < LOOK_EVERY_S:
            return
        self._looked_s = now_s
        moved = self._follow(now_s)
        live = [each for each in self._followed.values() if not each.progress.ended]
        live.sort(key=lambda each: each.progress.rank)
        if self.stall is not None:
            self._go_on(self.stall, now_s, moved=moved, gone=not live)
        elif live and all(self._is_overdue(each, now_s) for each in live):
            self._begin(live, now_s)

    def _follow(self, now_s: float) -> bool:
        """Read on in the journals, to the ends of those that are gone; True where any made progress."""
        processes = {process.journal: process for process in self._alive()}
        fresh = processes.keys() - self._followed.keys()
        for journal in fresh:
            self._followed[journal] = Followed(processes[journal], now_s)
        moved = bool(fresh)
        for each in self._followed.values():
            if each.moves():
                each.moved_s = now_s
                moved = True
        for journal in self._followed.keys() - processes.keys():
            del self._followed[journal]
        return moved

    def _is_overdue(self, each: Followed, now_s: float) -> bool:
        return now_s - each.moved_s > each.progress.limit_s(self._settings.limits)

    def _begin(self, live: Sequence[Followed], now_s: float) -> None:
        if any(each.skips() for each in live) or not self._journals_written():
            for each in live:
                each.moved_s = now_s
            return
        since_s = max(each.moved_s for each in live)
        attempt = max(each.process.attempt for each in live)
        self._stalls[attempt] += 1
        stall = self.stall = Stall(since_s, self._stalls[attempt], opened_s=now_s)
        quiet_s = now_s - since_s
        where = where_they_are({each.progress.rank: each.progress.in_words for each in live})
        text = f"no progress for {quiet_s:.0f} s on this node: {where}"
        self._tell(stall, text, self._wall() - quiet_s)
        if self._settings.action == "kill" or (
            self._settings.action == "dump" and stall.number <= CAPTURED_PER_ATTEMPT
        ):
            targets = [(each.process, f"rank {each.progress.rank} {each.progress.in_words}") for each in live]
            stall.capture = threading.Thread(
                target=self._capture, args=(targets,), name="ett-stacks", daemon=True
            )
            stall.capture.start()

    def _tell(self, stall: Stall, text: str, at: float | None = None) -> None:
        if stall.number <= TOLD_PER_ATTEMPT:
            more = stall.number == TOLD_PER_ATTEMPT
            self._reporter.fact("stall", f"{text} (further stalls are not told)" if more else text, at)

    def _capture(self, targets: Sequence[tuple[RankProcess, str]]) -> None:
        """Record what each rank is doing; runs in a thread of its own."""
        for process, words in targets:
            try:
                seen = self._snapshot(process.pid, process.rank)
            except Exception as error:  # noqa: BLE001 - one rank that cannot be looked into hides no other
                seen = f"nothing could be seen ({type_and_text(error)})"
            self._reporter.fact("stack", f"{words} (pid {process.pid})\n{seen}")

    def _go_on(self, stall: Stall, now_s: float, *, moved: bool, gone: bool) -> None:
        if stall.asked_to_end_s is not None:
            self._see_to_the_end(stall, now_s, stall.asked_to_end_s)
        elif moved or gone:
            lasted_s = now_s - stall.since_s
            what = "there is progress again" if moved else "its ranks are gone"
            self._tell(stall, f"the stall is over after {lasted_s:.0f} s: {what}")
            self.stall = None
        elif self._settings.action == "kill":
            self._ask_to_end(stall, now_s)

    def _ask_to_end(self, stall: Stall, now_s: float) -> None:
        """SIGTERM to the command and its ranks, once what can be seen was recorded."""
        captured = stall.capture is None or not stall.capture.is_alive()
        if not captured and now_s - stall.opened_s <= CAPTURE_S:
            return
        stall.asked_to_end_s = now_s
        stall.targets = self._processes()
        quiet_s = now_s - stall.since_s
        self._reporter.failed(f"stalled: no progress for {quiet_s:.0f} s; ended by the launcher")
        why = "no rank made progress and the stall action is kill"
        self._reporter.decision("end the stalled command", why, {"quiet_s": quiet_s})
        self._send(stall.targets, signal.SIGTERM)

    def _see_to_the_end(self, stall: Stall, now_s: float, asked_s: float) -> None:
        """SIGKILL to those that are left after the grace time; what was started since is none of them."""
        living = self._processes()
        left = [process for process in stall.targets if process_key(process) in map(process_key, living)]
        if not left:
            self.stall = None
        elif not stall.killed and now_s - asked_s >= self._grace_s:
            stall.killed = True
            self._reporter.decision("kill the stalled command", "it did not end when asked to", {})
            self._send(left, signal.SIGKILL)


def process_key(process: Process) -> tuple[int, int]:
    """What tells a process from a later one with its pid."""
    return process.pid, process.started_ticks


def watch_for_stalls(  # noqa: PLR0913 - the world is injected
    settings: StallSettings,
    *,
    watch: RankWatch,
    reporter: Reporter,
    journal: Journal,
    processes: Callable[[], Sequence[Process]],
    grace_s: float,
    senders: Senders,
) -> StallWatch:
    """The watchdog over the ranks of this node; `journal` is the launcher's own, beside theirs."""

    def send(targets: Sequence[Process], number: int) -> None:
        senders.sent(number, "the launcher, as no rank made progress", [each.pid for each in targets])
        end_all(targets, number)

    return StallWatch(
        settings,
        alive=lambda: watch.alive,
        reporter=reporter,
        snapshot=partial(snapshot, py_spy=py_spy_path()),
        journals_written=lambda: journal.flush(JOURNAL_S),
        processes=processes,
        send=send,
        grace_s=grace_s,
        monotonic=time.monotonic,
        wall=time.time,
    )
