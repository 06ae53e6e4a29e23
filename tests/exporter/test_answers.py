"""From views to JSON objects: what is joined, what is added up."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ett_core.accounting import Stretch
from ett_exporter.outlines import coarsened

lengths = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 2)), min_size=1, max_size=60)


def timeline(parts):
    """Adjoining stretches, whose attempts grow."""
    stretches, at_ns, attempt = [], 0, 0
    for length_ns, change in parts:
        attempt += change == 2
        shares = (("training", length_ns // 2), ("data_wait", length_ns - length_ns // 2))
        stretches.append(Stretch(at_ns, at_ns + length_ns, attempt, shares))
        at_ns += length_ns
    return stretches


def amounts(stretches):
    total = Counter()
    for stretch in stretches:
        for component, share in stretch.shares:
            total[stretch.attempt, component] += share
    return total


@given(lengths, st.integers(1, 10))
def test_a_coarser_timeline_holds_the_same_seconds(parts, limit):
    """Joining keeps the amount of each component in each attempt, the order, and leaves no gap."""
    fine = timeline(parts)
    coarse = coarsened(fine, limit)
    assert amounts(coarse) == amounts(fine)
    assert all(a.end_ns == b.start_ns for a, b in itertools.pairwise(coarse))
    assert all(sum(share for _, share in s.shares) == s.end_ns - s.start_ns for s in coarse)
    assert len(coarse) <= limit + fine[-1].attempt + 1


def test_a_short_timeline_is_left_as_it_is():
    """Within the limit nothing is joined."""
    fine = timeline([(10, 0)] * 5)
    assert coarsened(fine, 5) == fine
