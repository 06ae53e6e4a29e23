"""Half windows that lie packed: whatever is asked of them in whichever order, they are what was put in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ett_core.paces import Half, Halves, Pace, half_of

KEYS = st.tuples(st.integers(0, 2), st.integers(-3, 6))
REPORTS = st.tuples(st.just("report"), KEYS, st.integers(0, 3), st.integers(1, 9))
DROPS = st.tuples(st.just("drop"), st.lists(KEYS, max_size=4, unique=True))


def as_dict(half):
    return {rank: list(fields) for rank, fields in half.items()}


@given(steps=st.lists(st.one_of(REPORTS, DROPS), max_size=60))
def test_halves_hold_what_a_plain_mapping_would(steps):
    halves, plain = Halves(), {}
    for what, *about in steps:
        if what == "report":
            key, rank, count = about
            fields = (count, 0.5 * count, 0.25 * count, 0.125)
            is_new = plain.setdefault(key, Half()).add(rank, *fields)
            assert halves.add(rank, {key: fields}) == is_new
        else:
            (keys,) = about
            halves.drop(keys)
            plain = {key: half for key, half in plain.items() if key not in keys}
        assert len(halves) == len(plain)
    assert {key: as_dict(half) for key, half in halves.everything().items()} == {
        key: as_dict(half) for key, half in plain.items()
    }
    assert sorted(halves) == sorted(plain)
    for key in [(attempt, number) for attempt in range(3) for number in range(-3, 7)]:
        assert as_dict(halves.paces(key)) == as_dict(plain.get(key, Half()))


def test_halves_of_a_state_lie_beside_those_that_come():
    halves = Halves()
    halves.put(((0, number), half_of({1: Pace(10, 5.0, 0.5, 0.0)})) for number in range(5))
    halves.add(1, {(0, 2): (1, 0.5, 0.5, 0.0)})
    halves.add(2, {(0, 7): (1, 0.5, 0.5, 0.0), (0, 8): (1, 0.5, 0.5, 0.0)})
    assert as_dict(halves.paces((0, 2))) == {1: [11.0, 5.5, 0.5, 0.0]}
    assert sorted(halves) == [(0, number) for number in (0, 1, 2, 3, 4, 7, 8)]
