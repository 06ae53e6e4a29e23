"""Ranges of sequence numbers hold exactly what was put in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ett_exporter.ranges import Ranges

numbers = st.lists(st.integers(0, 60), max_size=40)


@given(numbers, numbers)
def test_ranges_are_a_set_of_numbers(first, second):
    """Numbers added in two parts are held, no others are, and the order of the parts is nothing."""
    held = Ranges().plus(first).plus(second)
    assert [n for n in range(62) if held.holds(n)] == sorted({*first, *second})
    assert held == Ranges().plus(second).plus(first)


@given(numbers)
def test_the_text_form_gives_the_ranges_back(some):
    """Parsing what str wrote gives equal ranges."""
    held = Ranges().plus(some)
    assert Ranges.parse(str(held)) == held
    assert hash(Ranges.parse(str(held))) == hash(held)


def test_numbers_without_gaps_are_one_range():
    """A writer that counts costs one range, however long it counts."""
    assert str(Ranges().plus(range(100_000))) == "0-99999"
