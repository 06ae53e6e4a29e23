"""The recorder of a program that does not know of it: what it sees first, it says afterwards.

Used by the thread that trains. Until `declare` everything is held in memory, so a process that
turns out to be no rank leaves no trace.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from ett_core import events
from ett_core.redaction import redacted
from ett_trainer_hooks.auto import ledger
from ett_trainer_hooks.auto.disks import full_disk
from ett_trainer_hooks.auto.held import HeldJournal
from ett_trainer_hooks.guard import hook
from ett_trainer_hooks.identity import Identity, identity_from_env
from ett_trainer_hooks.journal.place import journal_of
from ett_trainer_hooks.recording import crash
from ett_trainer_hooks.recording.exits import exit_code_of
from ett_trainer_hooks.recording.handover import PROCESS
from ett_trainer_hooks.recording.recorder import OTHERS_REPORT_EVERY_S, Recorder
from ett_trainer_hooks.recording.spans import Entering
from ett_trainer_hooks.recording.versions import installed_versions

EARLY_LIMIT = 1000


class Unsettled(NamedTuple):
    """A save of which it is not known yet whether it is whole; it ended at monotonic seconds `at_s`.

    `file` gives the open file that it went to, as long as the program has that; None of a path. `name` is
    the file's own, to be noted once it is closed.
    """

    step: int
    file: Callable[[], object] | None
    name: object
    size: int | None
    at_s: float

    @property
    def is_whole(self) -> bool:
        """Nothing is written to it any more."""
        file = None if self.file is None else self.file()
        return file is None or bool(getattr(file, "closed", True))


class AutomaticRecorder(Recorder):
    """A recorder that can tell a phase, and the beginning of the loop, when they are past."""

    def __init__(self) -> None:
        self._held = HeldJournal()
        super().__init__(identity=Identity(job_id="-", writer="-"), journal=self._held)
        self.declared = False
        self.failed = False
        place = os.environ.get("ETT_JOURNAL_DIR")
        self._directory = Path(place) if place else None
        self._early: list[tuple[float, float]] = []
        self._unsettled: list[Unsettled] = []

    @property
    def begun(self) -> bool:
        """The loop has begun."""
        return self._begun

    @property
    def away_s(self) -> float:
        """Seconds of this thread in phases of its own so far."""
        return self._meter.away_s

    @property
    def has_compiled(self) -> bool:
        """The program has compiled something."""
        return self._compile_watch is not None and self._compile_watch.seen > 0

    @hook
    def declare(self, environ: Mapping[str, str], *, rank: int | None = None, world_size: int = 0) -> None:
        """This process is a rank; `rank` and `world_size` where the environment does not say them."""
        if self.declared:
            return
        who = identity_from_env(environ)
        if rank is not None:
            who = msgspec.structs.replace(who, rank=rank, world_size=world_size)
        self.declared = True
        self.identity = who
        if who.rank != 0:
            self._every_s = max(self._every_s, OTHERS_REPORT_EVERY_S)
        journal = journal_of(environ, who, self._clock, self.guard)
        self._journal = journal
        self.start(versions=installed_versions())
        self._held.pour(journal)
        crash.install(self)

    @hook
    def saved(self, step: int, target: object, *, size: int | None = None) -> None:
        """State of `step` went to a path, or to an open file; whole once the program goes on."""
        is_path = isinstance(target, str | os.PathLike)
        file, name = (None, None) if is_path else (held_by_program(target), getattr(target, "name", None))
        self._unsettled.append(Unsettled(step, file, name, size, self.monotonic()))
        if is_path:
            self.note_save(step, target)

    @hook
    def save_broke(self, target: object) -> None:
        """A save to a path raised: tell where its file system is full."""
        if words := full_disk(target):
            self._emit(events.Evidence, urgent=True, source="disk", text=redacted(words))

    @hook
    def settle(self) -> None:
        """The program went on after its saves: those whose files are closed are durable."""
        unsettled, self._unsettled = self._unsettled, []
        last = {each.step: each for each in unsettled if each.is_whole}
        for step, each in last.items():
            if each.file is not None:
                self.note_save(step, each.name)
            if self.identity.rank == 0:
                at = self._clock.wall_at(each.at_s)
                self._emit(
                    events.CheckpointDurable, at=at, urgent=True, step=step, mode="sync", bytes=each.size
                )

    @hook
    def note_save(self, step: int, target: object) -> None:
        """Remember which step a file holds, for the attempt that loads it."""
        if self._directory is not None:
            ledger.note(self._directory, target, step)

    @hook
    def loaded(self, target: object) -> None:
        """A checkpoint came from there: before the loop, training resumes from the step that it holds."""
        step = None if self._directory is None else ledger.step_of(self._directory, target)
        if step is not None and not self._begun:
            self.resumed(step)

    def forget(self) -> None:
        """What was held is of the parent of this process."""
        self._held.forget()

    @hook
    def loop_began(self, first_s: float, asked_s: float | None, resumed_step: int | None) -> None:
        """The batch that came at `first_s`, asked for at `asked_s`, was the first of training.

        The times are monotonic; `asked_s` is None where nobody saw the batch come.
        """
        if asked_s is not None:
            self._tell("data_warmup", asked_s, first_s)
        if resumed_step is not None:
            self.resumed(resumed_step)
        self._announce_loop(first_s)
        self._meter.begin(first_s)
        for began_s, ended_s in self._early:
            if began_s >= first_s:
                self._meter.was_away(ended_s - began_s)
        self._early.clear()

    def step_seen(self, wait_s: float) -> None:
        """A step is complete, `wait_s` of it was waiting; called under the guard, many times a second."""
        if self._unsettled:
            self.settle()
        now_s = self.monotonic()
        self._meter.finish(now_s, samples=0.0, wait_s=wait_s)
        if now_s >= self._due_s:
            self._report()

    @hook
    def past_phase(self, name: str, began_s: float, ended_s: float, *, inside_s: float = 0.0) -> None:
        """What this thread did between two moments has a name; `inside_s` of it are told already."""
        self._tell(name, began_s, ended_s)
        own_s = max(ended_s - began_s - inside_s, 0.0)
        self._meter.away(own_s)
        self._went_by(ended_s - own_s, ended_s)

    @hook
    def failure(
        self,
        error: BaseException | None = None,
        *,
        message: str | None = None,
        signal: int | None = None,
        exit_code: int | None = None,
    ) -> None:
        """Something ended this rank; its end is not called a success any more."""
        self.failed = True
        super().failure(error, message=message, signal=signal, exit_code=exit_code)

    @hook
    def leave(self) -> None:
        """The interpreter ends; as long as somebody watches, he says of what is no failure how it ended."""
        if PROCESS.is_taken or (self._exit is not None and exit_code_of(self._exit.status)):
            super().leave()
        else:
            self.flush()

    def _phase_over(self, entering: Entering, now_s: float) -> None:
        """Before the loop, it takes the place of those inside it, which were over before it."""
        super()._phase_over(entering, now_s)
        while self._early and self._early[-1][0] >= entering.began_s:
            self._early.pop()
        self._went_by(entering.began_s, now_s)

    def _went_by(self, began_s: float, ended_s: float) -> None:
        if not self._begun and len(self._early) < EARLY_LIMIT:
            self._early.append((began_s, ended_s))


def held_by_program(thing: object) -> Callable[[], object]:
    """A call that gives a thing as long as the program has it: an open file ends with its last use there.

    One that cannot be watched so is kept.
    """
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing
