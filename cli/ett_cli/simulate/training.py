"""What a simulated job has trained, and what of it a failure would take."""

from __future__ import annotations

POINTS_KEPT = 8


class Training:
    """Training that is not lost, by the steps at which saves were tried. Amounts are nanoseconds."""

    def __init__(self) -> None:
        self.step = 0
        self._points: list[tuple[int, int]] = [(0, 0)]
        """Steps at which a save was tried, with the training up to each since the one before."""
        self._fresh_ns = 0
        """Training since the last of them."""
        self._durables: set[int] = set()

    def add(self, amount_ns: int) -> None:
        """So long it trained."""
        self._fresh_ns += amount_ns

    def save_point(self) -> None:
        """A save of the step that was reported last is about to be tried."""
        self._points.append((self.step, self._fresh_ns))
        self._fresh_ns = 0
        if len(self._points) > 2 * POINTS_KEPT:
            old = self._points[:-POINTS_KEPT]
            self._points[:-POINTS_KEPT] = [(old[-1][0], sum(ns for _, ns in old))]

    def durable(self, step: int) -> None:
        """The checkpoint of a step is durable."""
        self._durables.add(step)
        if len(self._durables) > POINTS_KEPT:
            self._durables.remove(min(self._durables))

    def last_durable(self) -> int:
        """The step that the job would fall back to, as far as was told."""
        return max((step for step in self._durables if step <= self.step), default=0)

    def fall_back(self, step: int) -> int:
        """Go on from a step; returns the training that is lost with the steps after it."""
        lost_ns, self._fresh_ns = self._fresh_ns, 0
        while self._points and self._points[-1][0] > step:
            lost_ns += self._points.pop()[1]
        self.step = step
        return lost_ns

    def kept_ns(self) -> int:
        """All that is not lost."""
        return self._fresh_ns + sum(ns for _, ns in self._points)

    def exposed_ns(self) -> int:
        """What would be lost by a failure now."""
        durable = self.last_durable()
        return self._fresh_ns + sum(ns for step, ns in self._points if step > durable)
