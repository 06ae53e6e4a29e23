"""Which steps of an attempt became durable, and when, in columns that only grow."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator


class Durables:
    """Steps and the moments (nanoseconds) when they were first told to be durable.

    >>> durables = Durables([(10, 5), (20, 9)])
    >>> durables.highest(by_ns=7, reached_step=30), durables.highest(by_ns=9, reached_step=30)
    (10, 20)
    >>> durables.highest(by_ns=9, reached_step=5) is None
    True
    """

    __slots__ = ("_moments", "_steps", "highest_step", "latest_ns")

    def __init__(self, told: Iterable[tuple[int, int]] = ()) -> None:
        self._steps = array("q")
        self._moments = array("q")
        self.highest_step = -1
        """-1 where there is none."""
        self.latest_ns = 0
        for step, at_ns in told:
            self.add(step, at_ns)

    def add(self, step: int, at_ns: int) -> None:
        """A step is durable; only the first word of it counts."""
        if step <= self.highest_step and step in self._steps:
            return
        self._steps.append(step)
        self._moments.append(at_ns)
        self.highest_step = max(self.highest_step, step)
        self.latest_ns = max(self.latest_ns, at_ns)

    def highest(self, by_ns: int, reached_step: int) -> int | None:
        """The highest step durable by a moment that is not above another; None without one."""
        if by_ns >= self.latest_ns and reached_step >= self.highest_step:
            return self.highest_step if self._steps else None
        told = (step for step, at_ns in self if at_ns <= by_ns and step <= reached_step)
        return max(told, default=None)

    def __len__(self) -> int:
        """How many steps they are."""
        return len(self._steps)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Steps and moments in the order in which they came."""
        return zip(self._steps, self._moments, strict=True)

    def cut(self, count: int) -> None:
        """Forget all but the first."""
        if count < len(self._steps):
            del self._steps[count:], self._moments[count:]
            self.highest_step = max(self._steps, default=-1)
            self.latest_ns = max(self._moments, default=0)
