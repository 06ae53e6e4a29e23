"""Durations of steps as a small histogram that merges: counts by bucket, on bounds fixed for ever.

Pure functions over `{bucket: steps}`, in which empty buckets do not stand. Between 1 µs and 36 hours
each octave has eight buckets of equal width, so that a bucket is at most an eighth wider than
it is long, and a duration read back from one is off by less than 6 %. Sums of histograms are
exact, in any order, over reports, ranks and attempts.

>>> fast, slow = {bucket_of(0.1): 98}, {bucket_of(3.0): 2}
>>> steps = merged([fast, slow])
>>> round(quantile(steps, 0.5), 2), round(quantile(steps, 0.99), 1)
(0.1, 3.1)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, frexp

PARTS = 8
"""Buckets an octave."""
FINEST_S = 2.0**-20
"""Shorter durations share bucket 0."""
LONGEST_S = 2.0**17
"""Durations of this and more share the last bucket."""
LAST_BUCKET = 37 * PARTS + 1
RELATIVE_ERROR = 1.0 / (2 * PARTS + 1)
"""Of a quantile, where it lies between the first and the last bucket."""

_SHIFT = 18 * PARTS + 1  # makes the bucket that begins at FINEST_S number 1


def bucket_of(seconds: float) -> int:
    """The bucket of a duration; what is no number is in the first one.

    >>> bucket_of(0.0), bucket_of(FINEST_S), bucket_of(1.0), bucket_of(1.124), bucket_of(1e9)
    (0, 1, 161, 161, 297)
    """
    if FINEST_S <= seconds < LONGEST_S:
        part, octave = frexp(seconds)
        return PARTS * octave + int(2 * PARTS * part) + _SHIFT
    return LAST_BUCKET if seconds >= LONGEST_S else 0


def bounds_s(bucket: int) -> tuple[float, float]:
    """The shortest duration of a bucket and that of the next, in seconds.

    >>> bounds_s(161), bounds_s(0) == (0.0, FINEST_S), bounds_s(LAST_BUCKET)
    ((1.0, 1.125), True, (131072.0, inf))
    """
    low = 0.0 if bucket == 0 else _lower_s(bucket)
    return low, float("inf") if bucket >= LAST_BUCKET else _lower_s(bucket + 1)


def _lower_s(bucket: int) -> float:
    octave, part = divmod(bucket - 1, PARTS)
    return FINEST_S * 2.0**octave * (1.0 + part / PARTS)


def merged(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """One histogram of all the steps of several."""
    total: dict[int, int] = {}
    for histogram in histograms:
        add_to(total, histogram)
    return total


def add_to(total: dict[int, int], histogram: Mapping[int, int]) -> None:
    """Merge a histogram into another, in place."""
    for bucket, steps in histogram.items():
        total[bucket] = total.get(bucket, 0) + steps


def quantile(histogram: Mapping[int, int], share: float) -> float | None:
    """The duration in seconds that `share` (0 to 1) of the steps do not exceed; None without steps.

    Within `RELATIVE_ERROR` of the duration of that rank; of the first and the last bucket it is the
    bound that is known.
    """
    steps = sum(histogram.values())
    left = max(ceil(share * steps), 1)
    for bucket in sorted(histogram):
        left -= histogram[bucket]
        if left <= 0:
            return _middle_s(bucket)
    return None


def _middle_s(bucket: int) -> float:
    """The duration from which no one in the bucket differs by a larger ratio than `RELATIVE_ERROR`."""
    low, high = bounds_s(bucket)
    if bucket == 0:
        return high
    return low if bucket >= LAST_BUCKET else 2.0 * low * high / (low + high)
