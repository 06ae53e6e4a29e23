"""Work that may hang, on a thread of its own, for a bounded time.

A store on a network can stand still for minutes. Whoever asks gets an answer in time; a thread
that is given up is a daemon and ends with its call, or with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ett_core.waits import LONGEST_WAIT_S

T = TypeVar("T")


class GaveUpError(TimeoutError):
    """The work did not end in time."""


class _Work(Generic[T]):
    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self.result: T
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised where the work was asked for
            self.error = error


def within(patience_s: float, work: Callable[[], T]) -> T:
    """The result of the work.

    >>> within(5.0, lambda: 6 * 7), within(float("inf"), lambda: 6 * 7)
    (42, 42)

    Raises:
        GaveUpError: it takes longer than `patience_s`.
        BaseException: whatever the work raised.
    """
    order = _Work(work)
    thread = threading.Thread(target=order.run, name="bundle store", daemon=True)
    thread.start()
    thread.join(min(patience_s, LONGEST_WAIT_S))
    if thread.is_alive():
        raise GaveUpError(f"no answer within {patience_s:g} s")
    if order.error is not None:
        raise order.error
    return order.result
