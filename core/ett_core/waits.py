"""Lengths of waits that a person sets. Pure."""

from __future__ import annotations

LONGEST_WAIT_S = 1e9
"""Some 30 years; the locks and clocks of Python take nine times that."""


def check_wait(name: str, seconds: float) -> None:
    """Refuse what nobody can wait for; `name`: of the setting, as whoever set it knows it.

    Raises:
        ValueError: it is below 0, no number, or longer than `LONGEST_WAIT_S`.

    >>> check_wait("grace", 30.0)
    >>> check_wait("grace", 1e10)
    Traceback (most recent call last):
    ...
    ValueError: grace=10000000000.0 is not 0 to 1,000,000,000 seconds
    """
    if not 0 <= seconds <= LONGEST_WAIT_S:
        raise ValueError(f"{name}={seconds!r} is not 0 to {LONGEST_WAIT_S:,.0f} seconds")
