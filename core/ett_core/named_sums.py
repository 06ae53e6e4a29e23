"""Sums by name over what events say, within bounds: no line can spoil them, no job has endless names."""

from __future__ import annotations

NAMES_KEPT = 256
"""Distinct names (labels, versions, compile stages, counters) kept; further ones are left out."""
LARGEST_VALUE = 1e15
"""No single value adds more than this, so that no line can spoil a sum with infinity."""
LARGEST_COUNT = 2**62
"""No count that is summed grows beyond this, so that it can be kept in 64 bits."""


def add_named(totals: dict[str, float], name: str, value: float) -> None:
    """Add a value to the total of a name.

    >>> totals = {}
    >>> for value in (1.5, -3.0, 1e300):
    ...     add_named(totals, "s", value)
    >>> totals == {"s": 1.5 + LARGEST_VALUE}
    True
    """
    if name in totals or len(totals) < NAMES_KEPT:
        totals[name] = totals.get(name, 0.0) + bounded(value)


def bounded(value: float) -> float:
    """An amount that is neither negative nor enormous."""
    return min(max(value, 0.0), LARGEST_VALUE)
