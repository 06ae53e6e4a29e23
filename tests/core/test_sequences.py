"""Sequence numbers kept as ranges hold exactly what was put in."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ett_core.sequences import Sequences, coalesced

numbers = st.lists(st.integers(0, 60), max_size=40)


def holding(some):
    held = Sequences()
    for number in some:
        held.add(number)
    return held


@given(numbers)
def test_a_number_is_new_once(some):
    """Numbers are held once added, no others are, and the ranges are as few as they can be."""
    held, seen = Sequences(), set()
    for number in some:
        assert held.add(number) == (number not in seen)
        seen.add(number)
    ranges = held.ranges()
    assert [n for first, last in ranges for n in range(first, last + 1)] == sorted(seen)
    assert all(after[0] > before[1] + 1 for before, after in pairwise(ranges))


@given(numbers, numbers)
def test_the_text_form_gives_the_numbers_back(some, more):
    """Parsing what str wrote gives equal ranges, which go on as the first ones would."""
    held = holding(some)
    again = Sequences.parse(str(held))
    assert again.ranges() == held.ranges()
    assert [again.add(number) for number in more] == [held.add(number) for number in more]


def test_numbers_without_gaps_are_one_range():
    """A writer that counts costs one range, however long it counts."""
    assert str(holding(range(100_000))) == "0-99999"


@given(numbers, st.integers(0, 70), st.integers(0, 5))
def test_a_run_beyond_all_is_taken_at_once(some, first, count):
    """It is as if its numbers were added one by one; other numbers change nothing."""
    held, run = holding(some), list(range(first, first + count))
    before = str(held)
    if held.add_run(run):
        assert min(run) > max(some, default=-1)
        assert str(held) == str(holding([*some, *run]))
    else:
        assert not run or min(run) <= max(some)
        assert str(held) == before
    assert not any(map(held.add_run, ([2**62, 0], [100, 102], [])))


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=12))
def test_ranges_are_put_together_to_as_few_as_can_be(some):
    """The same numbers, in the ranges that they would have been added to one by one."""
    ranges = [(first, first + more) for first, more in some]
    assert coalesced(ranges) == holding(n for first, last in ranges for n in range(first, last + 1)).ranges()
