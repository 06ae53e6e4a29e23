"""The timeline of a job: what is drawn finer, on which lanes, and where clicks lead."""

from __future__ import annotations

from datetime import timezone
from zoneinfo import ZoneInfo

import pytest

from ett_dashboard import frames, timeline
from ett_dashboard.rows import StretchRow
from ett_dashboard.timeline import Seen

DAY_S = 86_400.0


def stretches(count, length_s, attempts=1, begin=0.0):
    """Adjoining stretches of training with a little data wait, evenly over the attempts."""
    return [
        StretchRow(
            start=begin + n * length_s,
            end=begin + (n + 1) * length_s,
            attempt=n * attempts // count,
            components={"training": 0.9 * length_s, "data_wait": 0.1 * length_s},
        )
        for n in range(count)
    ]


WHOLE = stretches(2000, 600.0, attempts=200)


def test_all_of_the_time_needs_nothing_finer():
    """Without zoom, and where the zoom holds everything, the whole is enough."""
    assert timeline.finer("a", WHOLE, None) is None
    assert timeline.finer("a", WHOLE, Seen(-DAY_S, 100 * DAY_S)) is None
    assert timeline.finer("a", [], Seen(0.0, 1.0)) is None


def test_what_is_asked_for_begins_and_ends_with_stretches_of_the_whole():
    """It reaches half of what is seen beyond it, and stays the same while the job goes on."""
    question = timeline.finer("a b", WHOLE, Seen(60_100.0, 61_300.0))
    asked = dict(question.parameters)
    assert question.path == "/api/v1/jobs/a%20b/timeline"
    assert (float(asked["begin"]), float(asked["end"])) == (59_400.0, 62_400.0)
    longer = [*WHOLE, StretchRow(start=1_200_000.0, end=1_200_600.0, attempt=199, components={})]
    assert timeline.finer("a b", longer, Seen(60_100.0, 61_300.0)) == question


def test_the_end_of_a_job_is_asked_for_without_an_end():
    """A job that goes on is asked the same question each time."""
    question = timeline.finer("a", WHOLE, Seen(1_199_000.0, 1_200_000.0))
    assert "end" not in dict(question.parameters)


def test_a_finer_part_takes_the_place_of_the_whole_and_no_second_is_lost():
    """The bars add up to the wall time, whatever part is finer."""
    question = timeline.finer("a", WHOLE, Seen(60_100.0, 61_300.0))
    asked = {name: float(value) for name, value in question.parameters}
    part = stretches(300, 10.0, begin=asked["begin"])
    shown = timeline.drawn(WHOLE, part, Seen(60_100.0, 61_300.0))
    assert sum(bar.seconds for bar in shown) == pytest.approx(WHOLE[-1].end)
    inside = [bar for bar in shown if bar.start >= 60_100 and bar.end <= 61_300]
    assert max(bar.end - bar.start for bar in inside) == pytest.approx(10.0)


def test_two_hundred_attempts_and_many_stretches_are_few_bars():
    """What is smaller than a pixel is drawn as what it mostly is; the words still tell all of it."""
    shown = timeline.drawn(WHOLE, (), None)
    assert len(shown) <= frames.COLUMNS + 200
    assert {bar.component for bar in shown} == {"training"}
    figure = timeline.figure(shown, [], timezone.utc)
    assert "data_wait 600.0 s" in figure["data"][0]["hovertext"][0]
    assert len(figure["layout"]["yaxis"]["tickvals"]) <= timeline.MOST_TICKS + 1


def test_the_lanes_of_what_is_seen_fill_the_height():
    """A few attempts more are there where fewer are seen; shares are told apart again."""
    seen = Seen(60_100.0, 61_300.0)
    shown = timeline.drawn(WHOLE, (), seen)
    layout = timeline.figure(shown, [], timezone.utc, seen)["layout"]
    low, high = layout["yaxis"]["range"]
    assert high < 10 < low
    assert low - high == pytest.approx(timeline.FEWEST_LANES + 0.12)
    assert "attempt 10" in layout["yaxis"]["ticktext"]
    assert {bar.component for bar in shown} == {"training", "data_wait"}


@pytest.mark.parametrize("seen", [Seen(-1000.0, 10.0), Seen(1_199_990.0, 1_300_000.0), Seen(-5.0, -1.0)])
def test_lanes_never_leave_the_job(seen):
    """At its beginning, at its end and beside it."""
    layout = timeline.figure(timeline.drawn(WHOLE, (), seen), [], timezone.utc, seen)["layout"]
    low, high = layout["yaxis"]["range"]
    assert high >= -0.62
    assert low <= 199.5


def test_each_bar_leads_to_its_attempt():
    """An address a point, as the chart follows it."""
    ways = timeline.Ways(lambda attempt: f"to-{attempt}", lambda failure: failure.id)
    figure = timeline.figure(timeline.drawn(WHOLE, (), None), [], timezone.utc, None, ways)
    (trace,) = figure["data"]
    assert trace["customdata"][0] == "to-0"
    assert trace["customdata"][-1] == "to-199"
    assert len(trace["customdata"]) == len(trace["x"])


@pytest.mark.parametrize(
    "told",
    [None, "x", [1.0], [1.0, 2.0, 3.0], [2.0, 1.0], "ab", [1e300, 2e300], [float("nan")] * 2, {}],
)
def test_what_no_chart_says_is_nothing_seen(told):
    """The browser may send anything."""
    assert timeline.seen_of(told, timezone.utc) is None


def test_moments_of_the_axis_are_those_of_the_clock_on_the_wall():
    """The axis counts in the zone of the viewer."""
    zone = ZoneInfo("Europe/Berlin")
    assert timeline.seen_of([3_600_000.0, 7_200_000.0], zone) == Seen(0.0, 3600.0)
