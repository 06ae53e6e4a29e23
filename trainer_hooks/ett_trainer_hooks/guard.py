"""The one boundary between the hooks and the training loop: a fault is counted, never raised.

Runs in whichever thread calls a hook. The first fault of a process prints one line on stderr;
later ones only count, so that a broken hook cannot flood the log of a job. What a signal handler of
the program raises while a hook runs is no fault of the hook, and reaches the program.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from functools import partial, wraps
from types import CodeType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def warn_on_stderr(text: str) -> None:
    """Print one line on stderr; one that is closed, in use (in a signal handler) or broken is left alone.

    Raises:
        Exception: a signal handler raised it.
    """
    if sys.stderr is None:  # print would take standard output
        return
    try:
        print(f"ettwatch: {text}", file=sys.stderr, flush=True)
    except Exception as error:
        if is_of_a_signal(error):
            raise


class Guard:
    """Counts faults of the hooks (`faults`) and speaks once."""

    def __init__(self, warn: Callable[[str], None] = warn_on_stderr) -> None:
        self.faults = 0
        self._warn = warn
        self._said: set[str] = set()

    def say_once(self, key: str, text: str) -> None:
        """Warn, unless a warning with this key was given before."""
        if key not in self._said:
            self._said.add(key)
            self._warn(text)

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """The result of the call, or None where it raised.

        Raises:
            Exception: a signal handler raised it.
        """
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if is_of_a_signal(error):
                raise
            self.faults += 1
            name = public_name(function)
            self.say_once("fault", f"{name} failed ({type_and_text(error)}); the job goes on")
            return None


def type_and_text(error: BaseException) -> str:
    """What an exception is and says; its type alone where it says nothing, or raises when it is asked.

    >>> type_and_text(ValueError("no such table")), type_and_text(StopIteration())
    ('ValueError: no such table', 'StopIteration')

    Raises:
        Exception: a signal handler raised it.
    """
    try:
        text = str(error)
    except Exception as fault:
        if is_of_a_signal(fault):
            raise
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def is_of_a_signal(error: BaseException) -> bool:
    """Whether a signal handler of the program raised this, in whatever the main thread was doing.

    As a time limit by SIGALRM does, and torch where a worker of a DataLoader is killed (SIGCHLD).
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    codes = {code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def code_of(handler: object) -> CodeType | None:
    """The code that a signal handler runs; None where it is none in Python.

    >>> code_of(code_of).co_name, code_of(signal.SIG_DFL)
    ('code_of', None)
    """
    function = handler.func if isinstance(handler, partial) else handler
    if callable(function) and not hasattr(function, "__code__") and not hasattr(function, "__func__"):
        function = vars(type(function)).get("__call__")
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def public_name(function: Callable[..., Any]) -> str:
    """What a person may know a function as.

    >>> public_name(warn_on_stderr), public_name(lambda: 0)
    ('warn_on_stderr', 'a hook')
    """
    name = getattr(function, "__name__", "")
    return name if name[:1].isalpha() else "a hook"


class Guarded(Protocol):
    """An object whose methods are hooks."""

    guard: Guard


G = TypeVar("G", bound=Guarded)


def hook(method: Callable[Concatenate[G, P], None]) -> Callable[Concatenate[G, P], None]:
    """Make a method one that never raises."""

    @wraps(method)
    def guarded(self: G, /, *args: P.args, **kwargs: P.kwargs) -> None:
        bound: Any = method
        self.guard.call(bound, self, *args, **kwargs)

    return guarded
