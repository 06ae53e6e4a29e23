"""Exact probabilities for small counts, with nothing but integers and logarithms: pure.

No normal approximation: fleets are small where it matters, and the questions are asked many times
over, so that what counts lies far out in the tails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

NEGLIGIBLE = 1e-18


def binomial_tail(count: int, trials: int, share: float) -> float:
    """The probability of `count` or more hits in `trials`, each a hit with probability `share`.

    >>> binomial_tail(0, 5, 0.1), binomial_tail(2, 2, 0.5), binomial_tail(6, 5, 0.5)
    (1.0, 0.25, 0.0)
    """
    if count <= 0:
        return 1.0
    if count > trials or share <= 0.0:
        return 0.0
    if share >= 1.0:
        return 1.0
    if count <= trials * share:
        return max(0.0, 1.0 - _tail(trials - count + 1, trials, 1.0 - share))
    return _tail(count, trials, share)


def _tail(count: int, trials: int, share: float) -> float:
    """The same for a count above the mean: terms fall from the first on, until they change nothing."""
    term = math.exp(
        math.lgamma(trials + 1)
        - math.lgamma(count + 1)
        - math.lgamma(trials - count + 1)
        + count * math.log(share)
        + (trials - count) * math.log1p(-share)
    )
    total = 0.0
    for hits in range(count, trials + 1):
        total += term
        term *= (trials - hits) / (hits + 1) * share / (1.0 - share)
        if term < NEGLIGIBLE * total:
            break
    return min(1.0, total)


@lru_cache(maxsize=4096)
def rank_sums(before: int, after: int) -> tuple[int, ...]:
    """How many orders of so many values give each number of pairs in which the later one is larger.

    These are the coefficients of the Gaussian binomial: the distribution of Mann and Whitney's U.

    >>> rank_sums(2, 2)
    (1, 1, 2, 1, 1)
    """
    size = before * after + 1
    ways = [1] + [0] * (size - 1)
    for part in range(1, after + 1):
        low, high = part, before + part
        for at in range(size - 1, high - 1, -1):
            ways[at] -= ways[at - high]
        for at in range(low, size):
            ways[at] += ways[at - low]
    return tuple(ways)


def rank_sum_tail(pairs: int, sizes: Sequence[tuple[int, int]]) -> float:
    """The probability of `pairs` or more in which the later value is larger, if time changes nothing.

    `sizes` holds (values before, values after) of groups that are compared only within themselves.

    >>> rank_sum_tail(4, [(2, 2)]), rank_sum_tail(2, [(1, 1), (1, 1)]), rank_sum_tail(0, [])
    (0.16666666666666666, 0.25, 1.0)
    """
    total = math.prod(math.comb(before + after, after) for before, after in sizes)
    width = total.bit_length() // 8 + 1
    packed = math.prod(_packed(before, after, width) for before, after in sizes)
    digits = packed >> (8 * width * max(pairs, 0))
    return digits % ((1 << 8 * width) - 1) / total


def _packed(before: int, after: int, width: int) -> int:
    """The rank sums as digits of one number, of `width` bytes each: a product then convolves them.

    No digit of a product overflows, as all of them together are the number of orders; and what is left
    after dividing by the largest digit is the sum of digits.
    """
    return int.from_bytes(b"".join(n.to_bytes(width, "little") for n in rank_sums(before, after)), "little")


def holm(probabilities: Sequence[float]) -> list[float]:
    """Probabilities that hold for all questions together, whatever they have to do with each other.

    >>> holm([0.01, 0.04, 0.02])
    [0.03, 0.04, 0.04]
    """
    order = sorted(range(len(probabilities)), key=lambda place: probabilities[place])
    result = [0.0] * len(probabilities)
    largest = 0.0
    for done, place in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - done) * probabilities[place]))
        result[place] = largest
    return result


def median(values: Sequence[float]) -> float:
    """The middle one, or half way between the middle two.

    Raises:
        ValueError: there are none.

    >>> median([3.0, 1.0, 2.0]), median([1.0, 2.0])
    (2.0, 1.5)
    """
    if not values:
        raise ValueError("no values have no median")
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
