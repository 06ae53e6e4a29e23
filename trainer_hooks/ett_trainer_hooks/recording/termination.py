"""SIGTERM is told, and ends the process as soon as it would without us, wherever the main thread is.

Python runs a handler in the main thread between two of its own instructions. A thread that waits
in native code (in a collective operation whose peer is gone, for a device) comes to none, and a
process with a handler would outlive the signal that ends one without. So where nobody but us asked
for the signal, a thread hears of it as well, through the descriptor that the interpreter writes to
at once (`signal.set_wakeup_fd`); where the main thread has not begun within `PATIENCE_S`, it speaks
the last words, for at most `WORDS_S`, gives the signal back to the system and sends it again. It
stands aside where the program has a handler of its own by then. An event loop that takes the
descriptor, as asyncio does for its own signal handlers, takes the thread its news. Forked children
get the signal as if we had never been there.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ett_trainer_hooks.recording.recorder import Recorder

PATIENCE_S = 0.25
WORDS_S = 2.0
_READ_BYTES = 512

Before = Callable[[int, FrameType | None], Any] | signal.Handlers | int | None

_listening: dict[str, int] = {}
"""The descriptor that the interpreter writes to, while we listen."""


def install(recorder: Recorder) -> None:
    """Let `recorder` hear of SIGTERM, where this is the main thread and the signal is not ignored.

    The handler of an earlier recorder of this process is replaced: it would take ours for one of
    the program.
    """
    before: Before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        return
    if isinstance(before, Told):
        before = before.before
    told = Told(recorder, before)
    signal.signal(signal.SIGTERM, told)
    if not callable(before):
        recorder.guard.call(_listen)


class Told:
    """A handler that tells `recorder`, then does what `before` does.

    Where the program has a handler of its own, one from before or one that calls this one, the end
    of the attempt is left to the program: it may save a checkpoint first, or carry on.
    """

    def __init__(self, recorder: Recorder, before: Before) -> None:
        self.before = before
        self.has_begun = threading.Event()
        self._recorder = recorder
        self._speaks = threading.Lock()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """What the interpreter calls in the main thread."""
        self.has_begun.set()
        if not self._is_first():
            return
        self._recorder.failure(message=f"received {signal.Signals(number).name}", signal=number)
        if callable(self.before):
            self._speaks.release()
            self.before(number, frame)
        elif not _is_handled_by(self, number):
            self._speaks.release()
        else:
            self._last_words()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def end(self, number: int) -> None:
        """The same from another thread, within a bounded time, for a main thread that does not come to it."""
        if not self._is_first():
            return
        words = threading.Thread(target=self._all_words, args=(number,), name="ett-last-words", daemon=True)
        words.start()
        words.join(WORDS_S)
        _by_default(number)
        os.kill(os.getpid(), number)

    def _is_first(self) -> bool:
        """Whether nobody speaks: the other thread, or this handler, which the signal came in between."""
        return self._speaks.acquire(blocking=False)

    def _all_words(self, number: int) -> None:
        self._recorder.failure(message=f"received {signal.Signals(number).name}", signal=number)
        self._last_words()

    def _last_words(self) -> None:
        if (say := self._recorder.last_words) is not None:
            self._recorder.guard.call(say)
        self._recorder.close("failed")


def _listen() -> None:
    """Start the thread, unless somebody listens already."""
    if _listening:
        return
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    if (theirs := signal.set_wakeup_fd(writes, warn_on_full_buffer=False)) != -1:
        signal.set_wakeup_fd(theirs)
        os.close(reads)
        os.close(writes)
        return
    _listening["descriptor"] = writes
    threading.Thread(target=_hear, args=(reads,), name="ett-signals", daemon=True).start()


def _hear(reads: int) -> None:
    while numbers := os.read(reads, _READ_BYTES):
        told = signal.getsignal(signal.SIGTERM)
        if signal.SIGTERM not in numbers or not isinstance(told, Told) or callable(told.before):
            continue
        if not told.has_begun.wait(PATIENCE_S) and _is_handled_by(told, signal.SIGTERM):
            told.end(signal.SIGTERM)


def _is_handled_by(told: Told, number: int) -> bool:
    return signal.getsignal(number) is told


def _by_default(number: int) -> None:
    """Give a signal back to the system; the `signal` module does that in the main thread only."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    libc.signal(number, None)


def _as_without_us() -> None:
    """In a forked child: the pipe is that of the parent, and nobody here has anything to tell."""
    told = signal.getsignal(signal.SIGTERM)
    if isinstance(told, Told) and not callable(told.before):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    writes = _listening.pop("descriptor", -1)
    if writes != -1 and (theirs := signal.set_wakeup_fd(-1)) != writes:
        signal.set_wakeup_fd(theirs)


os.register_at_fork(after_in_child=_as_without_us)
