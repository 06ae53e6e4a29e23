"""A live job between moments that follow each other, and for how long that stands.

    edges        10:00     11:00     12:00        (13:00)
    parts           45 min .. 50 min ..  7 min of training

Up to the last edge before which the job has told what it did, 12:00 here, its parts stay what they are,
however it goes on: until something comes late, or a failure takes training back. The fold says from when
on it was told anew (`JobFold.take_revised`), the view of the job shows the rest (`signs_of`). While a cut
stands, the part that grows is what the job has in all, less what it had by then.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count

import msgspec

from ett_core.accounting import JobAccount
from ett_core.accounting.account import in_nanoseconds, nanoseconds
from ett_core.components import COMPONENTS, UNOBSERVED, UNSAVED_TRAINING

CUTS_KEPT = 8
"""Cuts of one job that may stand at a time; of more, those stand that were made last."""
ANEW = frozenset(
    name for name in COMPONENTS if name.startswith(("start.", "recover.", UNSAVED_TRAINING, UNOBSERVED))
)
"""Components that do not grow while a job trains; where they do, its past has changed."""
_serials = count(1)


class Cut(msgspec.Struct, frozen=True):
    """What a job had in each part, its amounts in seconds by component."""

    account: JobAccount
    parts: Sequence[Mapping[str, float]]
    after: Mapping[str, float]
    """What it had after the last edge."""
    told: int
    """Which edge is the last before which all was told; -1: none."""
    serial: int = 0
    """Under which the job knows that this stands; 0: nothing of it does."""

    @property
    def before_told(self) -> dict[str, int]:
        """Nanoseconds by component from the beginning of the job to that edge."""
        left = in_nanoseconds(self.account.components)
        for part in (*self.parts[max(self.told, 0) :], self.after):
            for name, amount in part.items():
                left[name] -= nanoseconds(amount)
        return {name: amount for name, amount in left.items() if amount}


class Standing:
    """The cuts of one job that stand; held by one thread at a time.

    >>> standing = Standing()
    >>> early, late = standing.enter(10.0), standing.enter(20.0)
    >>> standing.revise(15.0)
    >>> standing.holds(early), standing.holds(late)
    (True, False)
    """

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until: dict[int, float] = {}

    def enter(self, until: float) -> int:
        """Another cut stands up to a moment (Unix seconds); gives its serial number."""
        serial = next(_serials)
        self._until[serial] = until
        while len(self._until) > CUTS_KEPT:
            del self._until[next(iter(self._until))]
        return serial

    def revise(self, since: float) -> None:
        """What lies after a moment was told anew."""
        if self._until and since < max(self._until.values()):
            self._until = {serial: until for serial, until in self._until.items() if until <= since}

    def holds(self, serial: int) -> bool:
        """Whether a cut stands."""
        return serial in self._until


def last_told(edges: Sequence[float], told_until: float | None) -> int:
    """Which of the edges is the last that does not lie after a moment; -1: none.

    >>> last_told([10.0, 20.0, 30.0], 25.0), last_told([10.0], None)
    (1, -1)
    """
    return -1 if told_until is None else bisect_right(edges, told_until) - 1


def signs_of(account: JobAccount) -> int:
    """A number that changes where the past of a job that trains turns out otherwise, late reports aside."""
    last = account.attempts[-1] if account.attempts else None
    return hash(
        (
            account.start,
            account.finished,
            len(account.attempts),
            len(account.failures),
            last and (last.start, last.loop_start, last.outcome, last.critical_rank, last.leader),
            tuple([each for each in account.components.items() if each[0] in ANEW]),
        )
    )


class Table:
    """Nanoseconds by component of several parts, in columns.

    >>> Table([{"training": 4, "stalled": 1}, {}, {"training": 2}]).rows(1)
    [{}, {'training': 2}]
    """

    __slots__ = ("_amounts", "_count", "_names")

    def __init__(self, parts: Sequence[Mapping[str, int]]) -> None:
        self._count = len(parts)
        told = {name for part in parts for name in part}
        self._names = _shared(tuple(name for name in COMPONENTS if name in told))
        self._amounts = array("q", [part.get(name, 0) for part in parts for name in self._names])

    def rows(self, first: int = 0) -> list[dict[str, int]]:
        """The parts from one on, without what is zero."""
        width = len(self._names)
        return (
            [self._row(at) for at in range(first * width, self._count * width, width)]
            if width
            else [{} for _ in range(first, self._count)]
        )

    def _row(self, at: int) -> dict[str, int]:
        row = self._amounts[at : at + len(self._names)]
        return {name: amount for name, amount in zip(self._names, row, strict=True) if amount}


@lru_cache(4096)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    return names
