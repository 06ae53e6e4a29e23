"""What training loses beside saves that are on their way: steps that take longer than others. Needs no torch.

    asked     |--250 ms--|--250 ms--|----310 ms----|---290 ms---|--250 ms--|
    save                            <---- on its way ---->
    usual 250 ms                     slowed by 310 + 290 - 2 x 250 = 100 ms

Of several saves that overlap, the seconds are told together.
"""

from __future__ import annotations

from collections import deque
from statistics import median

USUAL_KEPT = 50
"""Turns without a save that say what is usual: the latest so many."""
USUAL_KNOWN = 5
"""Fewer say nothing."""


class Pace:
    """The seconds of training between two asks (a turn), of which each is for as many steps."""

    def __init__(self) -> None:
        self._usual_s: deque[float] = deque(maxlen=USUAL_KEPT)
        self._beside_s: list[float] = []
        self._asked_at_s: float | None = None
        self._touched = False

    def saving(self) -> None:
        """A save begins."""
        self._touched = True

    def asked(self, trained_s: float, *, saving: bool) -> float | None:
        """A turn ends.

        Args:
            trained_s: seconds of training so far, what saves blocked left out.
            saving: whether a save is on its way.

        Returns:
            By how many seconds the save slowed training, or several that overlapped, once it is over; None
            while it is on its way, where there was none, and where it is not known what is usual.
        """
        before_s, self._asked_at_s = self._asked_at_s, trained_s
        if before_s is None:
            return None
        if not self._touched:
            self._usual_s.append(trained_s - before_s)
            return None
        self._beside_s.append(trained_s - before_s)
        if saving:
            return None
        beside_s, self._beside_s, self._touched = self._beside_s, [], False
        if len(self._usual_s) < USUAL_KNOWN:
            return None
        return max(sum(beside_s) - len(beside_s) * median(self._usual_s), 0.0)
