"""Draws from the distributions that starts, steps, saves and failures follow."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance(random.Random):
    """A source of draws that depends on its seed alone. Amounts of time are whole milliseconds."""

    def hit(self, share: float) -> bool:
        """True in this share of all cases."""
        return self.random() < share

    def around_ms(self, median_s: float, sigma: float = 0.3) -> int:
        """Milliseconds, log-normal around a median in seconds, at least 1.

        >>> Chance("seed").around_ms(0.0)
        1
        """
        return max(1, round(1000.0 * median_s * math.exp(self.gauss(0.0, sigma))))

    def between_ms(self, low_s: float, high_s: float) -> int:
        """Milliseconds, evenly between two numbers of seconds."""
        return round(1000.0 * self.uniform(low_s, high_s))

    def wait_ms(self, rate_per_day: float) -> int | None:
        """Milliseconds until something happens that happens so often a day; None for never."""
        return round(self.expovariate(rate_per_day) * 86_400_000.0) if rate_per_day > 0 else None

    def weighted(self, rows: Sequence[T], weights: Sequence[float]) -> T:
        """One of the rows, by their weights."""
        return self.choices(rows, weights)[0]

    def name64(self) -> str:
        """64 bits in hexadecimal digits, as writers are named."""
        return f"{self.getrandbits(64):016x}"
