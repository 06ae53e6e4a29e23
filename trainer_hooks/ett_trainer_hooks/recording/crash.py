"""Last words: an uncaught exception, `sys.exit` and SIGTERM are told before the process goes its way.

Installed by `Recorder.from_env`. The handlers speak and then hand over to whatever was there
before; in a forked child they only hand over. At the end of the interpreter what is known is
written, and no status is invented: one is told where `sys.exit` was called, or where a `SystemExit`
left a phase or a loop of the recorder.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from ett_trainer_hooks import stack_signal

if TYPE_CHECKING:
    from ett_trainer_hooks.recording.recorder import Recorder

ExceptHook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]

_at_death: WeakKeyDictionary[Recorder, Callable[[], None] | None] = WeakKeyDictionary()


def at_death(recorder: Recorder, say: Callable[[], None] | None) -> None:
    """Have `say` called before a signal ends the process; a later call replaces an earlier one."""
    _at_death[recorder] = say


def install(recorder: Recorder) -> None:
    """Let `recorder` hear of uncaught exceptions, SIGTERM (from the main thread) and the exit.

    From then on the process also gives its stacks to a launcher that finds it stalled.
    """
    recorder.guard.call(stack_signal.register)
    sys.excepthook = chained_excepthook(recorder, sys.excepthook)
    sys.exit = chained_exit(recorder, sys.exit)
    atexit.register(recorder.leave)
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is threading.main_thread() and before not in (signal.SIG_IGN, None):
        signal.signal(signal.SIGTERM, chained_sigterm(recorder, before))


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


def chained_sigterm(
    recorder: Recorder, before: Callable[[int, FrameType | None], Any] | signal.Handlers | int | None
) -> Callable[[int, FrameType | None], None]:
    """A handler that tells `recorder`, then does what `before` does.

    Where the program has a handler of its own, one from before or one that calls this one, the end
    of the attempt is left to the program: it may save a checkpoint first, or carry on.
    """

    def told(number: int, frame: FrameType | None) -> None:
        recorder.failure(message=f"received {signal.Signals(number).name}", signal=number)
        if callable(before):
            before(number, frame)
            return
        if signal.getsignal(number) is not told:
            return
        if (say := _at_death.get(recorder)) is not None:
            recorder.guard.call(say)
        recorder.close("failed")
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    return told
