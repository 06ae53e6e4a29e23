"""Lengths of time and numbers in words."""

from __future__ import annotations

from collections.abc import Sequence

_MINUTE_S = 60.0


def rounded(amounts: Sequence[float], total: float) -> list[float]:
    """The amounts scaled to `total` and rounded to tenths, so that they add up to it as shown.

    The tenths that rounding down leaves over go to the largest remainders.

    >>> rounded([1.0, 1.0, 1.0], 100.0)
    [33.4, 33.3, 33.3]
    """
    whole = sum(amounts)
    exact = [10 * total * amount / whole for amount in amounts]
    tenths = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: tenths[index] - exact[index])
    for index in by_remainder[: round(10 * total) - sum(tenths)]:
        tenths[index] += 1
    return [value / 10 for value in tenths]


def duration(seconds: float) -> str:
    """A length of time in words.

    >>> duration(9.04), duration(100), duration(7384)
    ('9.0 s', '1 m 40.0 s', '2 h 3 m 4 s')
    """
    tenths = round(seconds, 1)
    if tenths < _MINUTE_S:
        return f"{tenths:.1f} s"
    minutes, left_s = divmod(tenths, _MINUTE_S)
    if minutes < _MINUTE_S:
        return f"{minutes:.0f} m {left_s:.1f} s"
    hours, left_m = divmod(minutes, 60)
    return f"{hours:.0f} h {left_m:.0f} m {left_s:.0f} s"


def fine(seconds: float) -> str:
    """A length of time in words, below a second in milliseconds.

    >>> fine(0.0172), fine(0.9999), fine(12.0)
    ('17 ms', '1000 ms', '12.0 s')
    """
    return f"{1000 * seconds:.0f} ms" if seconds < 1.0 else duration(seconds)


def many(count: int, noun: str) -> str:
    """A number of things.

    >>> many(1, "save"), many(1200, "save")
    ('1 save', '1,200 saves')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
