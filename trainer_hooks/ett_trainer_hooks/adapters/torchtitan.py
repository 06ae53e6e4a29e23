"""What torchtitan's structured logger records, told as it happens.

`attach(recorder)` adds a handler to torchtitan's logger; it is called on the thread that trains, from
inside torchtitan's spans. `register` does the same for a trainer that is started as it is, by
`TITAN_STRUCT_LOGGER_HANDLERS`. Spans of other threads and of other asyncio tasks than that of the first
span are left out. What a span means stands in `ett_core.torchtitan_names`. A save is told when it is
over, as torchtitan opens its span at every step; whether it is durable torchtitan does not log, but as
it waits for one save before it begins the next, a save is durable when the next one is over.
"""

from __future__ import annotations

import logging
import sys
from functools import lru_cache
from threading import get_ident
from typing import Any

from torchtitan.observability import structured_logger

from ett_core import torchtitan_names as names
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.recording.spans import PhaseSpan, describe

LOGGER = "torchtitan.structured_logger"
"""The name of torchtitan's logger of spans."""

LAST_SPAN = "torch_distributed_teardown"
"""torchtitan opens it after a training that went well, as the last thing it does."""

SAVE, WARM_UP = "checkpoint", "data_warmup"

NAMES_KEPT = 1024
edge_of = lru_cache(NAMES_KEPT)(names.edge_of)
meaning_of = lru_cache(NAMES_KEPT)(names.meaning_of)
phase_of = lru_cache(NAMES_KEPT)(names.phase_of)


def attach(recorder: Recorder, *, closes: bool = False) -> logging.Handler:
    """Tell `recorder` what torchtitan logs in this process from now on; returns the handler.

    A handler of an earlier call is taken off. With `closes` the recorder is closed once torchtitan
    has taken down its process groups after a training that went well.
    """
    logger = logging.getLogger(LOGGER)
    for earlier in [each for each in logger.handlers if isinstance(each, SpanHandler)]:
        logger.removeHandler(earlier)
    handler = SpanHandler(recorder, closes=closes)
    logger.addHandler(handler)
    if logger.level == logging.NOTSET or logger.level > logging.INFO:
        logger.setLevel(logging.INFO)
    return handler


def register(**_: object) -> None:
    """Attach the recorder of this process; a handler factory of torchtitan.

    `TITAN_STRUCT_LOGGER_HANDLERS=ett_trainer_hooks.adapters.torchtitan.register` in the environment
    has torchtitan call it; other factories may follow after a comma. Where the hooks are off there is
    nothing to listen for.
    """
    recorder = Recorder.from_env()
    if recorder.active:
        attach(recorder, closes=True)


class SpanHandler(logging.Handler):
    """Follows the spans of one process."""

    def __init__(self, recorder: Recorder, *, closes: bool = False) -> None:
        super().__init__(logging.INFO)
        self._recorder = recorder
        self._closes = closes
        self._followed: tuple[int, str | None] | None = None
        self._open: list[_Open] = []
        self._step: _Step | None = None
        self._saved: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Take in a record; a fault here costs what it would have told."""
        self._recorder.guard.call(self._take, record)

    def _take(self, record: Any) -> None:  # noqa: ANN401 - with the fields that torchtitan adds
        span, edge = edge_of(getattr(record, "log_type_name", ""), getattr(record, "log_type", ""))
        if edge == names.MARK:
            return
        here = (get_ident(), record.task_name)
        if self._followed is None:
            self._followed = here
        if here != self._followed:
            return
        if edge == names.BEGIN:
            self._begin(span, record.step)
        elif edge == names.ERROR:
            self._fail(span)
        else:
            self._end(span)

    def _begin(self, span: str, step: int | None) -> None:
        meaning = meaning_of(span)
        phase = phase_of(span, in_step=self._step is not None)
        opened = _Open(span, self._recorder.monotonic())
        if meaning.role == names.STEP and self._step is None:
            self._begin_step(step)
        elif self._waits(meaning.role) and not self._recorder.begun:
            opened.enter(self._recorder.phase(WARM_UP))
        elif phase is not None:
            self._begin_phase(opened, phase)
        self._open.append(opened)

    def _begin_phase(self, opened: _Open, phase: str) -> None:
        """Open a phase at once, unless it is a save, or one of its name is around it."""
        self._complete_step()
        opened.phase = phase
        if phase != SAVE and all(each.phase != phase for each in self._open):
            opened.enter(self._recorder.phase(phase))

    def _begin_step(self, number: int | None) -> None:
        """A step begins; a span that holds steps is no phase of its own."""
        self._step = _Step(number)
        for around in self._open:
            around.leave()
            around.phase = ""
        if not self._recorder.begun:
            resumed = names.resumed_step(number, structured_logger.get_relative_step())
            if resumed is not None:
                self._recorder.resumed(resumed)

    def _complete_step(self) -> None:
        """The optimizer has stepped: torchtitan saves and evaluates after that, inside the same span."""
        step = self._step
        if step is not None and step.is_open:
            step.is_open = False
            self._recorder.step_done(data_wait_s=step.wait_s)

    def _fail(self, span: str) -> None:
        """An exception is on its way out of a span; a step that it crosses is none."""
        if self._step is not None:
            self._step.is_open = False
        for opened in self._open:
            if opened.span == span:
                opened.error = sys.exc_info()[1]

    def _end(self, span: str) -> None:
        if all(opened.span != span for opened in self._open):
            return
        while (opened := self._open.pop()).span != span:
            opened.leave()
        opened.leave()
        role, now_s = meaning_of(span).role, self._recorder.monotonic()
        if self._waits(role):
            if opened.error is None:
                self._fetched(now_s - opened.began_s)
        elif role == names.STEP and not any(meaning_of(each.span).role == role for each in self._open):
            self._complete_step()
            self._step = None
        elif opened.phase == SAVE and names.did_work(span, structured_logger.get_step_tags()):
            self._saved_step(opened, now_s)
        elif span == LAST_SPAN and self._closes and opened.error is None:
            self._recorder.close("succeeded")

    def _waits(self, role: str) -> bool:
        """A span of this role is a wait of the step, and not of an evaluation inside it."""
        return (
            role == names.DATA_WAIT and self._step is not None and not any(each.phase for each in self._open)
        )

    def _fetched(self, seconds: float) -> None:
        if not self._recorder.begun:
            self._recorder.first_batch()
        elif self._step is not None:
            self._step.wait_s += seconds

    def _saved_step(self, opened: _Open, now_s: float) -> None:
        """A save is over; torchtitan had waited for the one before it."""
        number = self._recorder.step if self._step is None or self._step.number is None else self._step.number
        self._recorder.past_phase(SAVE, opened.began_s, now_s)
        if opened.error is not None:
            self._recorder.checkpoint_failed(number, describe(opened.error), mode="")
            return
        save = self._recorder.checkpoint(number, mode="")
        save.blocking_s = now_s - opened.began_s
        self._recorder.save_ended(save)
        if self._saved is not None:
            self._recorder.durable(self._saved, mode="")
        self._saved = number


class _Step:
    """A step of torchtitan on its way."""

    __slots__ = ("is_open", "number", "wait_s")

    def __init__(self, number: int | None) -> None:
        self.number = number
        self.wait_s = 0.0
        self.is_open = True
        """Neither counted nor broken off."""


class _Open:
    """A span that is open, and the phase that was begun for it."""

    __slots__ = ("_told", "began_s", "error", "phase", "span")

    def __init__(self, span: str, began_s: float) -> None:
        self.span = span
        self.began_s = began_s
        self.phase = ""
        self.error: BaseException | None = None
        self._told: PhaseSpan | None = None

    def enter(self, told: PhaseSpan) -> None:
        """Begin a phase for it."""
        self._told = told.__enter__()

    def leave(self) -> None:
        """End the phase."""
        if self._told is not None:
            self._told.__exit__(None if self.error is None else type(self.error), self.error, None)
            self._told = None
