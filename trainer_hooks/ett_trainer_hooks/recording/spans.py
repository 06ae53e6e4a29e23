"""Spans: one object that is context manager and decorator and always closes.

A span belongs to the thread that enters it. Its calls into the recorder never raise; what the
work itself raises passes through untouched and is noted on the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ett_core.redaction import MESSAGE_LIMIT, redacted
from ett_trainer_hooks.guard import type_and_text

if TYPE_CHECKING:
    from ett_trainer_hooks.recording.recorder import Recorder

MAIN_TRACK = "main"
"""The track of the thread that trains."""

P = ParamSpec("P")
R = TypeVar("R")


class Entering:
    """One entering of a span: since when, and what a step had been relieved of by then (monotonic seconds).

    `is_told` while its begin is told and its end is not.
    """

    __slots__ = ("away_s", "began_s", "is_told")

    def __init__(self) -> None:
        self.began_s = 0.0
        self.away_s = 0.0
        self.is_told = False


class PhaseSpan:
    """A named piece of work; it may be entered again, also inside itself.

    Where a signal handler of the program raises as it begins, it has not begun.

    Set `resumed_step` inside where it found out the step to resume from.
    """

    def __init__(
        self, recorder: Recorder, name: str, *, track: str = MAIN_TRACK, step: int | None = None
    ) -> None:
        self.name = name
        self.track = track
        self.step = step
        self.resumed_step: int | None = None
        self.blocking_s = 0.0
        self._recorder = recorder
        self._entered: list[Entering] = []

    def __enter__(self) -> PhaseSpan:  # noqa: PYI034 - Self is younger than Python 3.10
        """Begin."""
        outside = len(self._entered)
        entering = Entering()
        try:
            self._entered.append(entering)
            self._recorder.phase_began(self, entering)
        except BaseException as error:
            del self._entered[outside:]
            self._recorder.phase_ended(self, entering, error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End, with what the work raised, if anything."""
        try:
            self._end(error)
        except BaseException:
            self._end(error)
            raise
        finally:
            del self._entered[-1:]

    def _end(self, error: BaseException | None) -> None:
        """End what was entered last; where a signal handler cuts that short, again."""
        if self._entered:
            self._recorder.phase_ended(self, self._entered[-1], error)

    def __call__(self, work: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: each call of it is a span of its own."""

        @wraps(work)
        def spanned(*args: P.args, **kwargs: P.kwargs) -> R:
            with PhaseSpan(self._recorder, self.name, track=self.track, step=self.step):
                return work(*args, **kwargs)

        return spanned


class SaveSpan(PhaseSpan):
    """A save that the trainer waits for; set what is known about it before the end.

    `bytes` written, `wait_previous_s` waiting for the save before, `staging_s` copying to host
    memory, `upload_s` moving it to storage.
    """

    def __init__(self, recorder: Recorder, step: int, mode: str) -> None:
        super().__init__(recorder, "checkpoint", step=step)
        self.saved_step = step
        self.mode = mode
        self.bytes: int | None = None
        self.wait_previous_s = 0.0
        self.staging_s: float | None = None
        self.upload_s: float | None = None

    def __enter__(self) -> SaveSpan:  # noqa: PYI034 - Self is younger than Python 3.10
        """Begin."""
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End, with what the work raised, if anything."""
        try:
            super().__exit__(kind, error, trace)
        finally:
            self._recorder.save_ended(self)
            if error is not None:
                self._recorder.guard.call(self._failed, error)

    def _failed(self, error: BaseException) -> None:
        self._recorder.checkpoint_failed(self.saved_step, describe(error), mode=self.mode)


def describe(error: BaseException, limit: int = MESSAGE_LIMIT) -> str:
    """Type and message of an exception, without secrets, cut to `limit` characters.

    Where it stands for those of several ranks (`failures` of torch's `CheckpointException`), theirs.

    >>> describe(ValueError("no such table"))
    'ValueError: no such table'
    """
    causes = "; ".join(_causes(error))
    return redacted(f"{type(error).__name__}: {causes}" if causes else type_and_text(error))[:limit]


def _causes(error: BaseException) -> Iterator[str]:
    """What each rank says whose exceptions this one stands for; others have `failures` of another kind."""
    failures = getattr(error, "failures", None)
    for rank, told in failures.items() if isinstance(failures, dict) else ():
        match told:
            case (BaseException() as cause, *_):
                yield f"rank {rank}: {type_and_text(cause)}"
