"""The recorder: what a training process says about itself, for one rank.

Phases, steps and `close` are called on the training thread; `durable`, `checkpoint_failed` and
other single events from any thread. Steps are added up in memory and reported every few seconds,
before each phase in the loop, and at its end. No method raises, none waits for a disk longer than
a bounded moment, and with the hooks off (see `Recorder.from_env`) the same calls count steps and
do nothing else.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from ett_core import events
from ett_core.redaction import MESSAGE_LIMIT, redacted
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard, hook, is_of_a_signal
from ett_trainer_hooks.identity import Identity, identity_from_env
from ett_trainer_hooks.journal import Journal, NullJournal
from ett_trainer_hooks.journal.place import journal_of
from ett_trainer_hooks.recording import crash
from ett_trainer_hooks.recording.compiling import CompileWatch
from ett_trainer_hooks.recording.exits import Exit, exit_code_of
from ett_trainer_hooks.recording.facts import FactRecorder
from ett_trainer_hooks.recording.handover import PROCESS, is_imported_by_worker
from ett_trainer_hooks.recording.leaving import askers, exit_in_flight, is_left_on_purpose
from ett_trainer_hooks.recording.spans import MAIN_TRACK, Entering, PhaseSpan, SaveSpan, describe
from ett_trainer_hooks.recording.steps import StepMeter
from ett_trainer_hooks.recording.versions import installed_versions

T = TypeVar("T")

REPORT_EVERY_S = 5.0
OTHERS_REPORT_EVERY_S = 60.0
LAST_WORDS_S = 1.0
LARGEST_AMOUNT = 1e11


class Recorder(FactRecorder):
    """Records one rank of one attempt.

    Args:
        identity: who speaks.
        journal: where events go; a `NullJournal` switches the hooks off.
        clock: wall and monotonic time.
        report_every_s: seconds between progress reports of rank 0; other ranks report once a
            minute, or as seldom as rank 0 where that is less often.
        guard: counts the faults of the hooks.

    Raises:
        ValueError: `report_every_s` is not above 0.
    """

    def __init__(
        self,
        *,
        identity: Identity,
        journal: Journal | NullJournal,
        clock: Clock | None = None,
        report_every_s: float = REPORT_EVERY_S,
        guard: Guard | None = None,
    ) -> None:
        if not report_every_s > 0:
            raise ValueError(f"report_every_s={report_every_s!r} is not above 0 seconds")
        super().__init__(identity, journal, clock or Clock(), guard or Guard())
        self.monotonic = self._clock.monotonic
        """Seconds of the clock that phases told afterwards are measured with."""
        self._every_s = report_every_s if identity.rank == 0 else max(report_every_s, OTHERS_REPORT_EVERY_S)
        self._meter = StepMeter()
        self._resumed_step: int | None = None
        self._begun = False
        self._has_reported = False
        self._due_s = -math.inf
        self._closed = False
        self._exit: Exit | None = None
        self._undertakings = 0
        self._compile_watch: CompileWatch | None = None
        self.last_words: Callable[[], None] | None = None
        """Called before a signal ends the process, by whoever has begun what that cuts short."""

    @classmethod
    def from_env(
        cls, environ: Mapping[str, str] = os.environ, *, report_every_s: float = REPORT_EVERY_S
    ) -> Recorder:
        """The recorder of this process, started; off where the environment does not ask for it.

        Off without `ETT_JOB_ID` or `ETT_JOURNAL_DIR`, with `ETT_DISABLED=1`, or (with one
        warning) where a setting cannot be understood. Where this process was observed
        automatically so far, that ends, and its recorder goes on as the program's own. Asked again,
        it is the same recorder until that is closed. Off, too, in a worker that `multiprocessing` starts
        anew, while it imports the program: what asks there stands outside of what the worker does.
        """
        if is_imported_by_worker():
            return cls._off(Guard(), report_every_s)
        if (running := PROCESS.take()) is not None:
            return running
        guard = Guard()
        recorder = None
        if is_wanted(environ):
            recorder = guard.call(cls._started, environ, report_every_s, guard)
        return cls._off(guard, report_every_s) if recorder is None else recorder

    @classmethod
    def _off(cls, guard: Guard, report_every_s: float) -> Recorder:
        nobody = Identity(job_id="-", writer="-")
        return cls(identity=nobody, journal=NullJournal(), report_every_s=report_every_s, guard=guard)

    @classmethod
    def _started(cls, environ: Mapping[str, str], report_every_s: float, guard: Guard) -> Recorder | None:
        try:
            identity = identity_from_env(environ)
        except ValueError as error:
            guard.say_once("setting", f"{error}; the hooks are off, the job goes on")
            return None
        if (switch := environ.get("ETT_DISABLED", "")) not in ("", "0"):
            guard.say_once("switch", f"ETT_DISABLED={switch!r} is ignored: 1 switches the hooks off")
        clock = Clock()
        journal = journal_of(environ, identity, clock, guard)
        recorder = cls(
            identity=identity, journal=journal, clock=clock, report_every_s=report_every_s, guard=guard
        )
        recorder.start(versions=installed_versions())
        crash.install(recorder)
        recorder.watch_compile()
        PROCESS.hold(recorder)
        return recorder

    @property
    def step(self) -> int:
        """The last completed step, counted from the step that the trainer resumed from."""
        return self._meter.step

    @property
    def begun(self) -> bool:
        """The loop has begun: the first batch was told."""
        return self._begun

    def phase(self, name: str, *, track: str = MAIN_TRACK, step: int | None = None) -> PhaseSpan:
        """A named piece of work, as context manager or decorator.

        `track` names the thread of work; give side threads a track of their own.
        """
        return PhaseSpan(self, name, track=track, step=step)

    def checkpoint(self, step: int, mode: str = "sync") -> SaveSpan:
        """The saving of `step` while the trainer waits; set `bytes` and the like on the span."""
        return SaveSpan(self, step, mode)

    @hook
    def watch_compile(self, watch: CompileWatch | None = None) -> None:
        """Tell what torch compiles, from now on or once torch is there; `from_env` has asked for it.

        The thread that calls is taken for the one that trains, unless there is a `watch` of one's own.
        """
        if self._compile_watch is None:
            training = threading.get_ident()
            self._compile_watch = watch or CompileWatch(self, thread=lambda: training)
            self._compile_watch.follow()

    @hook
    def past_phase(self, name: str, began_s: float, ended_s: float) -> None:
        """What the training thread did between two monotonic moments, after its last step, has a name."""
        self._report()
        self._tell(name, began_s, ended_s)
        self._meter.away(ended_s - began_s)

    @hook
    def resumed(self, step: int) -> None:
        """Training continues after `step` (0: from scratch)."""
        self._resumed_step = int(step)
        self._meter.step = int(step)

    def batches(self, loader: Iterable[T], *, samples: float | Callable[[T], float] = 0) -> Iterator[T]:
        """The batches of `loader`; asking for the next one completes a step.

        A loop that is left by `break` or `return` completes its last step too, one that is left by
        an exception does not; nor does one of an iterator that the program keeps in a variable,
        of which that cannot be told. `samples` is the number of samples of a batch, or a function
        that tells it.
        """
        meter, monotonic = self._meter, self._clock.monotonic
        asked_by = self.guard.call(askers, sys._getframe().f_back)  # noqa: SLF001 - as inspect.currentframe
        on_purpose = False
        self._undertakings += 1
        fixed, count = (0.0, samples) if callable(samples) else (self._amount("samples", samples), None)
        asked_s = monotonic()
        try:
            for batch in loader:
                now_s = monotonic()
                meter.begin(now_s, fixed, now_s - asked_s if self._begun else 0.0)
                if count is not None or not self._begun:
                    self._step_begun(now_s, batch, count)
                yield batch
                asked_s = monotonic()
                meter.complete(asked_s)
                if asked_s >= self._due_s:
                    self._report()
        except GeneratorExit:
            closer = sys._getframe().f_back  # noqa: SLF001 - as inspect.currentframe
            on_purpose = bool(self.guard.call(is_left_on_purpose, closer, asked_by or ()))
            raise
        finally:
            self._loop_left(asked_s, on_purpose)

    @hook
    def first_batch(self) -> None:
        """The first step begins now, in a loop that counts its steps with `step_done`."""
        now_s = self._clock.monotonic()
        if not self._begun:
            self._announce_loop(now_s)
        self._meter.begin(now_s)

    @hook
    def step_done(self, samples: float = 0, data_wait_s: float = 0.0) -> None:
        """A step of `samples` samples is complete; `data_wait_s` of it was spent waiting for data."""
        now_s = self._clock.monotonic()
        if not self._begun:
            self._announce_loop(now_s)
        wait_s = self._amount("data_wait_s", data_wait_s)
        self._meter.finish(now_s, samples=self._amount("samples", samples), wait_s=wait_s)
        if now_s >= self._due_s:
            self._report()

    def durable(
        self,
        step: int,
        mode: str = "sync",
        bytes: int | None = None,  # noqa: A002 - the name of the field
        duration_s: float | None = None,
    ) -> None:
        """The checkpoint of `step` would now survive the death of the whole job. From any thread."""
        super().durable(step, mode, bytes, duration_s)
        self._flight_over(mode)

    def checkpoint_failed(self, step: int, message: str, mode: str = "sync") -> None:
        """The checkpoint of `step` will never be durable. From any thread."""
        super().checkpoint_failed(step, message, mode)
        self._flight_over(mode)

    def _flight_over(self, mode: str) -> None:
        """Steps beside an asynchronous save are reported apart: the next step that ends is reported."""
        if mode == "async":
            self._due_s = -math.inf

    @hook
    def failure(
        self,
        error: BaseException | None = None,
        *,
        message: str | None = None,
        signal: int | None = None,
        exit_code: int | None = None,
    ) -> None:
        """Something ended this rank: an exception, a signal or an exit code."""
        self._report()
        name = None if error is None else type(error).__name__
        text = message if error is None else describe(error)
        kept = None if text is None else redacted(text)[:MESSAGE_LIMIT]
        self._emit(
            events.Failure, urgent=True, exception=name, message=kept, signal=signal, exit_code=exit_code
        )

    @hook
    def note_exit(self, status: object) -> None:
        """The main thread is on its way out with a status for `sys.exit`; others only end themselves."""
        if threading.current_thread() is threading.main_thread():
            self._exit = Exit(status, self._undertakings, self._meter.step)

    @hook
    def leave(self) -> None:
        """The interpreter ends; an end is told where the status to exit with is known.

        It is not where the program went on to train, or began a phase, after a `SystemExit`.
        """
        exit_ = self._exit
        if exit_ is None or (exit_.undertakings, exit_.step) != (self._undertakings, self._meter.step):
            self.flush()
            return
        code = exit_code_of(exit_.status)
        if code and not self._closed:
            words = exit_.status if isinstance(exit_.status, str) else f"exited with status {code}"
            self.failure(message=words, exit_code=code)
        self.close("failed" if code else "succeeded", exit_code=code)

    @hook
    def close(self, status: str = "succeeded", exit_code: int | None = None) -> None:
        """This attempt is over for this rank; only the first call counts.

        `status` is `succeeded`, `failed`, `preempted`, `cancelled` or `timed_out`.
        """
        if self._closed:
            return
        self._closed = True
        self._report()
        self._emit(events.AttemptEnd, urgent=True, status=status, exit_code=exit_code)
        self._journal.close(LAST_WORDS_S)

    @hook
    def flush(self, timeout_s: float = LAST_WORDS_S) -> None:
        """Report what is known and wait, for at most `timeout_s`, until it is written."""
        self._report()
        self._journal.flush(timeout_s)

    def phase_began(self, span: PhaseSpan, entering: Entering) -> None:
        """Called by a span; notes in `entering` when, unless that fails."""
        self.guard.call(self._phase_began, span, entering)

    def phase_ended(self, span: PhaseSpan, entering: Entering, error: BaseException | None) -> None:
        """Called by a span; tells the end (and the span its length) where the begin was told, and once."""
        self.guard.call(self._phase_ended, span, entering, error)

    def _phase_began(self, span: PhaseSpan, entering: Entering) -> None:
        now_s = self._clock.monotonic()
        if not isinstance(sys.exc_info()[1], SystemExit):
            self._undertakings += 1
        if span.track == MAIN_TRACK:
            if isinstance(span, SaveSpan) and span.saved_step == self._meter.step + 1:
                self._meter.complete(now_s)
            self._report()
        entering.began_s, entering.away_s = now_s, self._meter.away_s
        entering.is_told = True
        self._emit(
            events.PhaseBegin,
            at=self._clock.wall_at(now_s),
            urgent=True,
            phase=span.name,
            track=span.track,
            step=span.step,
        )

    def _phase_ended(self, span: PhaseSpan, entering: Entering, error: BaseException | None) -> None:
        """Nothing is counted up or down here: what a signal handler cuts short can be done again."""
        if not entering.is_told:
            return
        now_s = self._clock.monotonic()
        span.blocking_s = now_s - entering.began_s
        if span.track == MAIN_TRACK:
            self._phase_over(entering, now_s)
        if isinstance(error, SystemExit):
            self.note_exit(error.code)
        if span.resumed_step is not None:
            self.resumed(span.resumed_step)
        entering.is_told = False
        self._emit(
            events.PhaseEnd,
            at=self._clock.wall_at(now_s),
            urgent=True,
            phase=span.name,
            track=span.track,
            step=span.step,
            resumed_step=span.resumed_step,
            error=None if error is None else describe(error),
        )

    def _phase_over(self, entering: Entering, now_s: float) -> None:
        """A phase of the training thread ends now."""
        self._meter.phase_over(entering.away_s, now_s - entering.began_s)

    @hook
    def _step_begun(self, now_s: float, batch: T, count: Callable[[T], float] | None) -> None:
        if not self._begun:
            self._announce_loop(now_s)
        if count is not None:
            self._meter.in_hand = self._amount("samples", count(batch))

    @hook
    def _loop_left(self, asked_s: float, on_purpose: bool) -> None:  # noqa: FBT001 - of `batches` only
        """The loop is over: by exhaustion, by decision with a batch in hand, or by an exception."""
        now_s = self._clock.monotonic()
        if not self._meter.in_step:
            if self._begun:
                self._meter.wait(now_s - asked_s)
        elif on_purpose:
            self._meter.complete(now_s)
        else:
            self._meter.drop()
            if (error := exit_in_flight()) is not None:
                self.note_exit(error.code)
        self._report(urgent=True)

    def _amount(self, name: str, value: object) -> float:
        """What a program says is an amount; 0, with one warning, where it is none that a report can hold.

        Raises:
            Exception: a signal handler raised it.
        """
        try:
            amount = float(value)  # type: ignore[arg-type]
        except Exception as error:
            if is_of_a_signal(error):
                raise
            amount = -1.0
        if 0.0 <= amount < LARGEST_AMOUNT:
            return amount
        self.guard.say_once(name, f"{name} is no number of 0 or more; the step counts without it")
        return 0.0

    def _announce_loop(self, now_s: float) -> None:
        self._begun = True
        self._emit(events.FirstBatch, at=self._clock.wall_at(now_s), urgent=True, step=self._resumed_step)

    @hook
    def _report(self, *, urgent: bool = False) -> None:
        """Report the steps since the last report, as of the end of the last of them.

        Nobody waits for the reports between the first and that at the end of the loop.
        """
        now_s = self._clock.monotonic()
        tally = self._meter.take(now_s)
        if tally is None:
            return
        is_first = not self._has_reported
        self._has_reported, self._due_s = True, now_s + self._every_s
        seconds = events.StepSeconds(
            count=tally.steps, sum=tally.sum_s, max=tally.max_s, buckets=tally.buckets
        )
        self._emit(
            events.Progress,
            at=self._clock.wall_at(tally.done_s),
            urgent=urgent or is_first,
            step=tally.step,
            steps=tally.steps,
            samples=tally.samples,
            data_wait_s=tally.data_wait_s,
            step_seconds=seconds if tally.steps else None,
        )


def is_wanted(environ: Mapping[str, str]) -> bool:
    """The environment asks for hooks.

    >>> is_wanted({"ETT_JOB_ID": "j", "ETT_JOURNAL_DIR": "/run/j"}), is_wanted({"ETT_JOB_ID": "j"})
    (True, False)
    """
    asked = environ.get("ETT_JOB_ID") and environ.get("ETT_JOURNAL_DIR")
    return bool(asked) and environ.get("ETT_DISABLED", "") != "1"
