"""Last words: an uncaught exception, `sys.exit` and SIGTERM are told before the process goes its way.

Installed by `Recorder.from_env`. The handlers speak and then hand over to whatever was there
before; in a forked child they only hand over. SIGTERM has a module of its own, `termination`. At
the end of the interpreter what is known is written, and no status is invented: one is told where
`sys.exit` was called, or where a `SystemExit` left a phase or a loop of the recorder.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from ett_trainer_hooks import stack_signal
from ett_trainer_hooks.recording import termination

if TYPE_CHECKING:
    from ett_trainer_hooks.recording.recorder import Recorder

ExceptHook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


def install(recorder: Recorder) -> None:
    """Let `recorder` hear of uncaught exceptions, SIGTERM (from the main thread) and the exit.

    From then on the process also gives its stacks to a launcher that finds it stalled.
    """
    recorder.guard.call(stack_signal.register)
    sys.excepthook = chained_excepthook(recorder, sys.excepthook)
    sys.exit = chained_exit(recorder, sys.exit)
    atexit.register(recorder.leave)
    recorder.guard.call(termination.install, recorder)


def chained_exit(recorder: Recorder, before: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    """A `sys.exit` that tells `recorder` the status, then does what `before` does."""

    def exit(status: object = None, /) -> NoReturn:  # noqa: A001 - as sys.exit
        recorder.note_exit(status)
        before(status)

    return exit


def chained_excepthook(recorder: Recorder, before: ExceptHook) -> ExceptHook:
    """An excepthook that tells `recorder`, then does what `before` does."""

    def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            recorder.close("cancelled")
        else:
            recorder.failure(error)
            recorder.close("failed", exit_code=1)
        before(kind, error, trace)

    return told
