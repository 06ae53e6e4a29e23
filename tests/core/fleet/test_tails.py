"""Exact probabilities against counting everything that can happen."""

from __future__ import annotations

import math
from itertools import permutations, product

import pytest

from ett_core.fleet.tails import binomial_tail, holm, rank_sum_tail, rank_sums


@pytest.mark.parametrize("share", [0.001, 0.3, 0.99])
@pytest.mark.parametrize("trials", [1, 7, 40])
def test_binomial_tails_are_sums_of_their_terms(trials, share):
    for count in range(trials + 2):
        terms = (
            math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(count, trials + 1)
        )
        assert binomial_tail(count, trials, share) == pytest.approx(math.fsum(terms), rel=1e-9, abs=1e-300)


def test_far_tails_do_not_vanish():
    """Twenty hits of twenty at one in a thousand are 1e-60, not zero and not an error."""
    assert binomial_tail(20, 20, 0.001) == pytest.approx(1e-60, rel=1e-9)


def test_many_trials_are_summed_from_the_tail():
    """Where single terms are too small for a float, what is all but certain stays so."""
    assert binomial_tail(1, 20_000, 0.5) == 1.0
    assert binomial_tail(10_000, 20_000, 0.5) == pytest.approx(0.502821, abs=1e-6)
    assert binomial_tail(20_000, 20_000, 0.9999) == pytest.approx(0.9999**20_000, rel=1e-6)


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 3), (4, 2)])
def test_rank_sums_count_every_order(before, after):
    counts = [0] * (before * after + 1)
    for order in permutations(range(before + after)):
        old, new = order[:before], order[before:]
        counts[sum(1 for a in old for b in new if b > a)] += 1
    equal_orders = math.factorial(before) * math.factorial(after)
    assert [count // equal_orders for count in counts] == list(rank_sums(before, after))


def test_groups_are_put_together_as_independent_ones():
    """The tail over two groups is that of the sum of two independent numbers of pairs."""
    one, two = rank_sums(2, 2), rank_sums(1, 3)
    ways = sum(a * b for (i, a), (j, b) in product(enumerate(one), enumerate(two)) if i + j >= 5)
    assert rank_sum_tail(5, [(2, 2), (1, 3)]) == pytest.approx(ways / (sum(one) * sum(two)))


def test_many_questions_make_one_answer_less_certain():
    assert holm([0.001] + [0.9] * 9)[0] == pytest.approx(0.01)
    assert holm([]) == []
