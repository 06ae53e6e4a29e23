"""What became slower: from answers to histories, tables, figures, words and markup."""

from __future__ import annotations

from datetime import timezone

import plotly.graph_objects as go
import pytest
from fleet_answers import AT, regression, run

from ett_core.fleet.families import Family
from ett_core.fleet.regressions import SHARES, Change
from ett_dashboard import listing
from ett_dashboard.regressions import fields, figures, frames, markup, words

UTC = timezone.utc
SPAN = (AT, AT + 1000.0)
HOSTILE = "<script>x</script><a href='y'>z</a>"
RUNS = [
    run("a", 10.0, time_to_start=70.0, data_wait=0.1),
    run("b", 20.0, time_to_start=80.0),
    run("c", 110.0, time_to_start=150.0),
    run("x", 15.0, family="n", time_to_start=1000.0),
    run("y", 120.0, family="n", time_to_start=2000.0),
]


def test_a_history_has_its_medians_on_both_sides_of_the_change():
    found = frames.history(RUNS, "time_to_start", "m", regression())
    assert [(p.job_id, p.drawn, p.is_after) for p in found.points] == [
        ("a", 70.0, False),
        ("b", 80.0, False),
        ("c", 150.0, True),
    ]
    assert (found.before, found.after) == (75.0, 150.0)


def test_families_together_are_drawn_as_times_of_what_was_usual_in_each():
    found = frames.history(RUNS, "time_to_start", "", regression(family=""))
    drawn = {point.job_id: point.drawn for point in found.points}
    assert drawn == pytest.approx({"a": 70 / 75, "b": 80 / 75, "c": 2.0, "x": 1.0, "y": 2.0})
    assert (found.before, found.after) == pytest.approx((1.0, 2.0))


def test_a_part_that_a_start_lacks_took_no_time():
    rows = [run("a", 1.0, time_to_start=70.0), run("b", 200.0, time_to_start=90.0, **{"start.compile": 20.0})]
    found = frames.history(rows, "start.compile", "m", None)
    assert [point.drawn for point in found.points] == [0.0, 20.0]


def test_what_became_slower_comes_first_and_what_nobody_has_is_not_shown():
    slower = regression(figure="data_wait", unit="ratio")
    assert [each.figure for each in frames.histories(RUNS, "m", [slower])] == [
        "data_wait",
        "time_to_start",
        "start.compile_seconds",
    ]
    assert frames.histories([], "m", [slower]) == []


def test_families_that_became_slower_come_first():
    families = [Family("big", 9, 9, AT, {"time_to_start": 75.0}), Family("m", 2, 3, AT, {})]
    found = [regression()]
    columns = fields.families(found, UTC, lambda family: f"to {family}")
    rows = listing.rows(columns, frames.in_order(families, found), lambda family: family.family)
    shown = [
        {column.name: cell.text for column, cell in zip(columns, row.cells, strict=True)} for row in rows
    ]
    assert [(row["family"], row["slower"], row["time_to_start"]) for row in shown] == [
        ("m", "Time to start", "n/a"),
        ("big", "", "1 m 15 s"),
    ]
    assert rows[0].cells[0].href == "to m"


def test_a_regression_in_words():
    assert words.sentence(regression(), UTC) == (
        "Time to start of m is 2.0 times as long since 24 Nov 16:01: 1 m 15 s before, 2 m 30 s since "
        "(5 jobs against 9, probability 0.0005)"
    )
    share = regression(figure="data_wait", unit="ratio", before=0.02, after=0.1, family="")
    assert "Data wait of all families" in words.sentence(share, UTC)
    assert "2.0 % of the loop before, 10.0 % since" in words.sentence(share, UTC)


@pytest.mark.parametrize(
    "figure", [*words.MAIN_FIGURES, *sorted(SHARES), "start.model_init", "recover.compile"]
)
def test_every_figure_has_a_name_and_a_meaning(figure):
    assert words.figure_name(figure)
    assert words.figure_meaning(figure).endswith(".")


@pytest.mark.parametrize("family", ["m", ""])
@pytest.mark.parametrize("change", [None, regression()])
def test_plotly_knows_every_property(family, change):
    for figure in ("time_to_start", "data_wait"):
        go.Figure(figures.history(frames.history(RUNS, figure, family, change), SPAN, UTC))


def test_the_change_is_drawn_where_it_happened():
    figure = figures.history(frames.history(RUNS, "time_to_start", "m", regression()), SPAN, UTC)
    levels = [
        (s["y0"], s["x0"][14:19], s["x1"][14:19]) for s in figure["layout"]["shapes"] if s["yref"] == "y"
    ]
    assert levels == [(75.0, "00:00", "01:40"), (150.0, "01:40", "16:40")]
    (line,) = (shape for shape in figure["layout"]["shapes"] if shape["yref"] == "paper")
    assert line["x0"] == line["x1"] == "2025-11-24 16:01:40.000"
    assert "2.0 times" in figure["layout"]["annotations"][0]["text"]


def test_without_a_change_there_is_one_level_and_no_line():
    layout = figures.history(frames.history(RUNS, "time_to_start", "m", None), SPAN, UTC)["layout"]
    assert [shape["y0"] for shape in layout["shapes"]] == [80.0]
    assert layout["annotations"] == []


def test_words_of_jobs_are_harmless():
    found = regression(family=HOSTILE, changed=[Change(HOSTILE, [HOSTILE], [HOSTILE])])
    hostile = [run(HOSTILE, 10.0, family=HOSTILE, time_to_start=1.0)]
    for family in (HOSTILE, ""):
        shown = frames.history(hostile, "time_to_start", family, None)
        assert "<script" not in str(figures.history(shown, SPAN, UTC))
    for address in (None, lambda family: f"to?{family}"):
        piece = markup.alarms([found], UTC, address)
        assert "<script" not in piece
        assert "<a href='y'" not in piece


def test_runs_to_take_away_have_a_column_a_figure():
    told = listing.as_csv(fields.runs(["data_wait", "time_to_start"]), RUNS[:2]).decode().splitlines()
    assert told[0].endswith(",data_wait,time_to_start")
    assert [line.split(",")[-2:] for line in told[1:]] == [["0.1", "70.0"], ["", "80.0"]]
