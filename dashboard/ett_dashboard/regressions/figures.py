"""Plotly figures of histories as plain dictionaries. Pure; words of jobs are escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from html import escape

from ett_core.components import FAILURE, GROUP_COLOURS, UNKNOWN
from ett_core.fleet.regressions import SHARES
from ett_dashboard.figures import Figure, local
from ett_dashboard.regressions.frames import History, Point
from ett_dashboard.regressions.words import amount, figure_name
from ett_dashboard.words import compact, plain, when

NOTE_HEIGHT = 18
BEFORE, AFTER = GROUP_COLOURS[UNKNOWN], GROUP_COLOURS[FAILURE]


def history(shown: History, span: tuple[float, float], zone: tzinfo) -> Figure:
    """A figure of each run over the time of `span`; a change is a line, with the medians beside it."""
    before = [point for point in shown.points if not point.is_after]
    after = [point for point in shown.points if point.is_after]
    data = [_points(members, shown, zone) for members in (before, after) if members]
    since = None if shown.change is None else shown.change.since
    shapes, notes = [], []
    if shown.before is not None:
        shapes.append(_level(shown.before, span[0], span[1] if since is None else since, zone, BEFORE))
    if shown.after is not None and since is not None:
        shapes.append(_level(shown.after, since, span[1], zone, AFTER))
    if since is not None:
        shapes.append(_change(since, zone))
        notes.append(_note(shown, since, span, zone))
    layout = {
        "height": 200 + NOTE_HEIGHT * len(notes),
        "margin": {"l": 4, "r": 12, "t": 6 + NOTE_HEIGHT * len(notes), "b": 4},
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": "zoom",
        "shapes": shapes,
        "annotations": notes,
        "xaxis": {"type": "date", "automargin": True, "range": [local(moment, zone) for moment in span]},
        "yaxis": {"rangemode": "tozero", "fixedrange": True, "automargin": True, **_axis(shown)},
    }
    return {"data": data, "layout": layout}


def _axis(shown: History) -> Figure:
    if shown.is_relative:
        return {"ticksuffix": " times"}
    return {"tickformat": ".1~%"} if shown.figure in SHARES else {"ticksuffix": " s"}


def _points(points: Sequence[Point], shown: History, zone: tzinfo) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "since" if points[0].is_after else "before",
        "x": [local(point.start, zone) for point in points],
        "y": [point.drawn for point in points],
        "marker": {
            "size": 7,
            "opacity": 0.8,
            "symbol": "diamond" if points[0].is_after else "circle",
            "color": AFTER if points[0].is_after else BEFORE,
        },
        "hovertext": [_hover(point, shown, zone) for point in points],
        "hoverinfo": "text",
    }


def _hover(point: Point, shown: History, zone: tzinfo) -> str:
    times = f", {compact(point.drawn)} times what is usual in {escape(plain(point.family, 40))}"
    return (
        f"<b>{escape(plain(point.job_id, 60))}</b> attempt {point.attempt}<br>{when(point.start, zone)}: "
        f"{figure_name(shown.figure)} {amount(shown.figure, point.value)}{times if shown.is_relative else ''}"
    )


def _level(height: float, begin: float, end: float, zone: tzinfo, colour: str) -> Figure:
    return {
        "type": "line",
        "xref": "x",
        "yref": "y",
        "x0": local(begin, zone),
        "x1": local(end, zone),
        "y0": height,
        "y1": height,
        "line": {"width": 2, "color": colour},
    }


def _change(since: float, zone: tzinfo) -> Figure:
    at = local(since, zone)
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "line": {"width": 2, "color": AFTER, "dash": "dot"},
    }


def _note(shown: History, since: float, span: tuple[float, float], zone: tzinfo) -> Figure:
    late = since - span[0] > (span[1] - span[0]) / 2
    factor = "" if shown.change is None else f"{compact(shown.change.factor)} times "
    return {
        "text": f"<b>{factor}</b>since {when(since, zone)}",
        "x": local(since, zone),
        "xref": "x",
        "xanchor": "right" if late else "left",
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12},
    }
