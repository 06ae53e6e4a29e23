import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core.leaving import END_S, GO, SAVE, SPARE, WAIT, Standing, way_to_leave

TOO_LONG = "too long with a quarter to spare: 30.0 s are left"
UNWORTHY = "a save takes {} s to keep {} s of training, which does not pay"
SECONDS = st.floats(0, 1e5)
STANDINGS = st.builds(
    Standing,
    unsaved_s=SECONDS,
    save_s=st.none() | SECONDS,
    in_flight_s=st.none() | SECONDS,
    since_capture_s=SECONDS,
)


@pytest.mark.parametrize(
    ("standing", "left_s", "way", "why"),
    [
        (
            Standing(unsaved_s=900, save_s=12),
            30,
            SAVE,
            "a save takes 12.0 s of the 30.0 s that are left and keeps 900 s of training",
        ),
        (
            Standing(unsaved_s=900, save_s=60),
            30,
            GO,
            "a save takes 60.0 s, " + TOO_LONG,
        ),
        (
            Standing(unsaved_s=5, save_s=12),
            30,
            GO,
            UNWORTHY.format(12.0, 5),
        ),
        (
            Standing(unsaved_s=0.3, save_s=0.2),
            30,
            SAVE,
            "a save takes 0.2 s of the 30.0 s that are left and keeps 0.3 s of training",
        ),
        (
            Standing(unsaved_s=0.04, save_s=0.2),
            30,
            GO,
            "a save takes 0.2 s to keep less than 0.1 s of training, which does not pay",
        ),
        (Standing(unsaved_s=0, save_s=1), 30, GO, "nothing is unsaved"),
        (Standing(unsaved_s=9), 30, SAVE, "no save was measured so far: nothing is lost by trying one"),
        (Standing(unsaved_s=9), 0.5, GO, "no save was measured so far, and no time is left to try one"),
        (
            Standing(unsaved_s=900, save_s=25, in_flight_s=10, since_capture_s=40),
            30,
            WAIT,
            "the save in flight is durable in 10.0 s; a save takes 35.0 s, " + TOO_LONG,
        ),
        (
            Standing(unsaved_s=900, save_s=5, in_flight_s=10, since_capture_s=40),
            30,
            SAVE,
            "a save takes 15.0 s of the 30.0 s that are left and keeps 900 s of training",
        ),
        (
            Standing(unsaved_s=900, save_s=5, in_flight_s=1, since_capture_s=2),
            30,
            WAIT,
            "the save in flight is durable in 1.0 s; " + UNWORTHY.format(6.0, 2),
        ),
    ],
)
def test_the_way_taken_and_the_reason(standing, left_s, way, why):
    told = way_to_leave(standing, left_s)
    assert (told.way, told.why) == (way, why)


@given(standing=STANDINGS, left_s=st.floats(-10, 1e5))
def test_no_way_is_taken_that_does_not_end_in_time_or_costs_more_than_going(standing, left_s):
    told = way_to_leave(standing, left_s)
    assert told.takes_s == 0 or told.takes_s * SPARE + END_S <= left_s
    assert told.takes_s + told.loses_s <= standing.unsaved_s


@given(standing=STANDINGS, left_s=st.floats(0, 1e5))
def test_more_time_never_makes_leaving_dearer(standing, left_s):
    sooner, later = way_to_leave(standing, left_s), way_to_leave(standing, left_s + 60)
    assert later.takes_s + later.loses_s <= sooner.takes_s + sooner.loses_s


@pytest.mark.parametrize("figure", [{"unsaved_s": -1}, {"unsaved_s": 1, "save_s": math.nan}])
def test_figures_that_make_no_sense_are_refused(figure):
    with pytest.raises(ValueError, match="must be a finite number, zero or more"):
        Standing(**figure)
    with pytest.raises(ValueError, match="must be finite"):
        way_to_leave(Standing(unsaved_s=1), math.inf)
