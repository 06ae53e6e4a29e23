"""Many writes in one transaction: durable commits cost the same for one segment as for fifty.

Threads that come while a transaction is being written wait together; whoever gets the turn
first writes what all of them brought. Nobody waits longer than for two transactions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

MOST_AT_ONCE = 256

T = TypeVar("T")
R = TypeVar("R")


class _Ticket(Generic[T, R]):
    """One thing to be written, and what became of it."""

    __slots__ = ("done", "error", "item", "result")

    def __init__(self, item: T) -> None:
        self.item = item
        self.done = False
        self.result: R | None = None
        self.error: BaseException | None = None


class GroupCommit(Generic[T, R]):
    """Writes items by `write`, which makes a list of them durable at once and gives a result for each.

    >>> doubled = GroupCommit(lambda numbers: [2 * number for number in numbers])
    >>> doubled.submit(4)
    8
    """

    def __init__(
        self,
        write: Callable[[Sequence[T]], Sequence[R]],
        may_be_of_one: Callable[[BaseException], bool] = lambda _error: True,
    ) -> None:
        """Where `write` fails, each item is tried alone if the error `may_be_of_one`; else all fail."""
        self._write = write
        self._may_be_of_one = may_be_of_one
        self._waiting: list[_Ticket[T, R]] = []
        self._waiting_lock = threading.Lock()
        self._turn = threading.Lock()

    def submit(self, item: T) -> R:
        """The result of an item, once it is durable; raises what `write` raises on it."""
        ((result, error),) = self.submit_all([item])
        if error is not None:
            raise error
        return result  # type: ignore[return-value]  # it is done without an error

    def submit_all(self, items: Iterable[T]) -> list[tuple[R | None, BaseException | None]]:
        """The result of each item, once all are durable, or what `write` raised on it.

        >>> GroupCommit(lambda numbers: [6 // number for number in numbers]).submit_all([1, 0, 2])
        [(6, None), (None, ZeroDivisionError('integer division or modulo by zero')), (3, None)]
        """
        tickets = [_Ticket[T, R](item) for item in items]
        with self._waiting_lock:
            self._waiting += tickets
        with self._turn:
            while not all(ticket.done for ticket in tickets):
                self._write_waiting()
        return [(ticket.result, ticket.error) for ticket in tickets]

    def _write_waiting(self) -> None:
        with self._waiting_lock:
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
        self._try(batch)
        error = batch[0].error
        if error is None:
            return
        if not self._may_be_of_one(error):
            self._fail_waiting(error)
        elif len(batch) > 1:
            for ticket in batch:
                self._try([ticket])

    def _fail_waiting(self, error: BaseException) -> None:
        """Those that came meanwhile fail as well: each try may take a time-out."""
        with self._waiting_lock:
            waiting, self._waiting = self._waiting, []
        for ticket in waiting:
            ticket.error, ticket.done = error, True

    def _try(self, batch: Sequence[_Ticket[T, R]]) -> None:
        """Write a batch; where that fails, each of its tickets has the error."""
        try:
            results = self._write([ticket.item for ticket in batch])
        except Exception as error:  # noqa: BLE001 - it is raised in the threads that wait
            for ticket in batch:
                ticket.error, ticket.done = error, True
            return
        for ticket, result in zip(batch, results, strict=True):
            ticket.result, ticket.error, ticket.done = result, None, True
