"""Which steps of an attempt became durable, and when, in columns that only grow; the first lie packed."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from ett_core.archive import IN_MEMORY, Archive, Parcel, parcel_of

AT_HAND = 8
"""Steps that are at hand however many there are; up to twice as many are."""


class Durables:
    """Steps and the moments (nanoseconds) when they were first told to be durable.

    >>> durables = Durables([(10, 5), (20, 9)])
    >>> durables.highest(by_ns=7, reached_step=30), durables.highest(by_ns=9, reached_step=30)
    (10, 20)
    >>> durables.highest(by_ns=9, reached_step=5) is None
    True
    """

    __slots__ = ("_archive", "_count", "_moments", "_packed", "_steps", "highest_step", "latest_ns")

    def __init__(self, told: Iterable[tuple[int, int]] = (), archive: Archive = IN_MEMORY) -> None:
        """Start with some, each step once; `archive` keeps what is rarely needed again."""
        self._archive = archive
        self._packed: Parcel | None = None
        """The first steps, then their moments."""
        self._count = 0
        """How many those are."""
        known = list(told)
        self._steps = array("q", [step for step, _ in known])
        self._moments = array("q", [at_ns for _, at_ns in known])
        self.highest_step = max(self._steps, default=-1)
        """-1 where there is none."""
        self.latest_ns = max(self._moments, default=0)
        if len(known) > 2 * AT_HAND:
            self._pack()

    def add(self, step: int, at_ns: int) -> None:
        """A step is durable; only the first word of it counts."""
        if step <= self.highest_step and (step in self._steps or step in self._first()[0]):
            return
        self._steps.append(step)
        self._moments.append(at_ns)
        self.highest_step = max(self.highest_step, step)
        self.latest_ns = max(self.latest_ns, at_ns)
        if len(self._steps) > 2 * AT_HAND:
            self._pack()

    def highest(self, by_ns: int, reached_step: int) -> int | None:
        """The highest step durable by a moment that is not above another; None without one."""
        if by_ns >= self.latest_ns and reached_step >= self.highest_step:
            return self.highest_step if len(self) else None
        told = (step for step, at_ns in self if at_ns <= by_ns and step <= reached_step)
        return max(told, default=None)

    def __len__(self) -> int:
        """How many steps they are."""
        return self._count + len(self._steps)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Steps and moments in the order in which they came."""
        steps, moments = self._first()
        return zip(steps + self._steps, moments + self._moments, strict=True)

    def cut(self, count: int) -> None:
        """Forget all but the first."""
        if count >= len(self):
            return
        if count < self._count:
            self._bring_back()
        del self._steps[count - self._count :], self._moments[count - self._count :]
        told = list(self)
        self.highest_step = max((step for step, _ in told), default=-1)
        self.latest_ns = max((at_ns for _, at_ns in told), default=0)

    def _pack(self) -> None:
        self._bring_back()
        count = self._count = len(self._steps) - AT_HAND
        packed = self._steps[:count].tobytes() + self._moments[:count].tobytes()
        del self._steps[:count], self._moments[:count]
        self._packed = parcel_of(self._archive, packed)

    def _bring_back(self) -> None:
        steps, moments = self._first()
        self._steps, self._moments = steps + self._steps, moments + self._moments
        self._packed, self._count = None, 0

    def _first(self) -> tuple[array[int], array[int]]:
        columns = array("q")
        if self._packed is not None:
            columns.frombytes(self._packed.read())
        return columns[: self._count], columns[self._count :]
