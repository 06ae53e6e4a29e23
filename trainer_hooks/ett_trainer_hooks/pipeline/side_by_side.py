"""Work on several things at once, on threads that never keep a process from ending.

The interpreter waits at its end for the threads of an executor, whatever they hang in; one that asks a
store which no longer answers would keep a trainer for ever. Nobody waits for these.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(work: Callable[[T], R], items: Iterable[T], workers: int, name: str) -> list[R]:
    """What the work gives for each item, in their order; the calling thread works, too.

    After an error nothing more is begun; the error of the first item that has one is raised once what
    was begun is over. Where no thread can be had the others do its work.

    Args:
        work: done for each item, on any thread.
        items: all of them are taken at once.
        workers: threads that work, 1 at least.
        name: of the threads.

    >>> side_by_side(abs, [-1, 2, -3], 2, "signs")
    [1, 2, 3]
    """
    orders = deque(enumerate(items))
    count, results, errors = len(orders), dict[int, R](), dict[int, BaseException]()

    def labour() -> None:
        while orders and not errors:
            try:
                place, item = orders.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                results[place] = work(item)
            except BaseException as error:  # noqa: BLE001 - raised where the work was asked for
                errors[place] = error

    threads = [
        threading.Thread(target=labour, name=name, daemon=True) for _ in range(min(workers, count) - 1)
    ]
    begun = [thread for thread in threads if _begins(thread)]
    labour()
    for thread in begun:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(count)]


def _begins(thread: threading.Thread) -> bool:
    try:
        thread.start()
    except RuntimeError:  # no thread can be had
        return False
    return True
