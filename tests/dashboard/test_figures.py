"""Figures are valid for Plotly and show the numbers that they were given."""

from __future__ import annotations

from datetime import timedelta, timezone

import plotly.graph_objects as go
import pytest

from ett_core.colours import component_colour
from ett_core.components import COMPONENTS, GROUP_COLOURS, group_of
from ett_dashboard import figures, frames, timeline
from ett_dashboard.rows import FailureRow, StretchRow

SHARES = frames.partition({"training": 60.0, "data_wait": 30.0, "stalled": 10.0})
LINE = [
    StretchRow(start=1000.0, end=1060.0, attempt=0, components={"training": 45.0, "data_wait": 15.0}),
    StretchRow(start=1060.0, end=1070.0, attempt=0, components={"recover.restart": 10.0}),
    StretchRow(start=1070.0, end=1100.0, attempt=1000, components={"training": 30.0}),
]
ZONE = timezone(timedelta(hours=2))


def failure(cause: str = "killed") -> FailureRow:
    return FailureRow(
        attempt=0,
        time=1060.0,
        rank=1,
        node="n",
        exception=None,
        message=None,
        exit_code=None,
        signal=9,
        status=None,
        silent=False,
        ttr_s=10.0,
        unsaved_s=5.0,
        fallback_step=3,
        resume_evidence="durable",
        cause=cause,
    )


@pytest.mark.parametrize(
    "figure",
    [
        figures.donut(SHARES, 60.0),
        figures.donut([], None),
        figures.pareto(frames.losses({"training": 1.0, "data_wait": 2.0})),
        figures.states([("lost", 1), ("training", 12)]),
        timeline.figure(frames.bars(LINE), [failure()], ZONE),
    ],
)
def test_plotly_knows_every_property(figure):
    go.Figure(figure)


def test_the_ring_holds_the_whole_wall_time_with_the_percentage_in_its_middle():
    figure = figures.donut(SHARES, 60.0)
    assert sum(figure["data"][0]["values"]) == 100.0
    assert figure["layout"]["annotations"][0]["text"] == "<b>60.0 %</b>"
    assert figures.donut([], None)["layout"]["annotations"][1]["text"] == "not observed"


def test_the_timeline_lays_each_share_on_the_lane_of_its_attempt():
    figure = timeline.figure(frames.bars(LINE), [], ZONE)
    by_name = {trace["name"]: trace for trace in figure["data"]}
    assert by_name["training"]["width"] == [60_000.0, 30_000.0]
    assert by_name["training"]["x"] == ["1970-01-01 02:17:10.000", "1970-01-01 02:18:05.000"]
    lanes = [
        base + y / 2
        for base, y in zip(by_name["recover.restart"]["base"], by_name["recover.restart"]["y"], strict=True)
    ]
    assert lanes == [0.0]
    assert figure["layout"]["yaxis"]["ticktext"] == ["attempt 0", "attempt 1000"]


def test_a_failure_is_marked_on_its_lane_with_its_words_made_harmless():
    marks = timeline.figure(frames.bars(LINE), [failure("<a href='x'>y</a>")], ZONE)["data"][-1]
    assert (marks["x"], marks["y"]) == (["1970-01-01 02:17:40.000"], [0])
    assert "<a" not in marks["hovertext"][0]


def test_points_lead_to_addresses():
    """One address a point of the first trace; the figure that was given stays as it is."""
    figure = figures.states([("lost", 1), ("training", 12)])
    led = figures.leading(figure, ["a", "b"])
    assert led["data"][0]["customdata"] == ["a", "b"]
    assert "customdata" not in figure["data"][0]


def test_components_of_a_group_are_told_apart_by_shade():
    assert len({component_colour(name) for name in COMPONENTS}) == len(COMPONENTS)
    assert component_colour("training") == GROUP_COLOURS[group_of("training")]
