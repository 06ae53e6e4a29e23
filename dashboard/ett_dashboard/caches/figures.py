"""Plotly figures of runs and their caches as plain dictionaries. Pure; words of jobs are escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from html import escape
from typing import Any

from ett_core.fleet.caches import VERDICTS
from ett_dashboard.caches.frames import cache_names, cache_ratio
from ett_dashboard.caches.rows import CacheRunRow, Comparison
from ett_dashboard.caches.words import VERDICT_SYMBOLS, cache_title, run_name, verdict_colour, verdict_meaning
from ett_dashboard.figures import Figure, local
from ett_dashboard.words import duration, moment, ratio, size

RUNS_DRAWN = 30
SCALE = [[0.0, "#b3386e"], [0.5, "#efe6d2"], [1.0, "#1b7f79"]]
"""Hit rates from none to all, told apart with any colour vision."""
FIRST, SECOND = "#3b6fb6", "#cf5b35"
"""Two runs side by side."""
_FIXED: dict[str, Any] = {"fixedrange": True, "ticks": "", "zeroline": False, "automargin": True}


def hit_rates(runs: Sequence[CacheRunRow]) -> Figure:
    """Hit rate of each cache by run, the latest on top, and beside it the seconds compiled all the same."""
    shown = runs[:RUNS_DRAWN]
    names = cache_names(shown)
    lanes = list(range(len(shown)))
    heat = {
        "type": "heatmap",
        "x": [cache_title(name) for name in names],
        "y": lanes,
        "z": [[cache_ratio(run, name) for name in names] for run in shown],
        "zmin": 0.0,
        "zmax": 1.0,
        "colorscale": SCALE,
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hoverongaps": False,
        "text": [
            [ratio(cache_ratio(run, name)) if name in run.caches else "" for name in names] for run in shown
        ],
        "texttemplate": "%{text}",
        "textfont": {"size": 11},
        "hovertext": [[_cache_hover(run, name) for name in names] for run in shown],
        "hoverinfo": "text",
    }
    bars = [
        _seconds_trace(shown, lanes, hidden=False),
        _seconds_trace(shown, lanes, hidden=True),
    ]
    layout = {
        "height": 24 * max(len(shown), 2) + 64,
        "margin": {"l": 4, "r": 12, "t": 30, "b": 4},
        "showlegend": False,
        "dragmode": False,
        "barmode": "stack",
        "bargap": 0.3,
        "xaxis": {**_FIXED, "domain": [0.0, 0.62], "side": "top", "showgrid": False},
        "xaxis2": {
            **_FIXED,
            "domain": [0.66, 1.0],
            "side": "top",
            "ticksuffix": " s",
            "rangemode": "tozero",
            "gridcolor": "#8884",
        },
        "yaxis": {
            **_FIXED,
            "tickvals": lanes,
            "ticktext": [escape(run_name(run)) for run in shown],
            "range": [len(shown) - 0.5, -0.5],
            "showgrid": False,
        },
    }
    return {"data": [heat, *bars], "layout": layout}


def trend(runs: Sequence[CacheRunRow], zone: tzinfo) -> Figure:
    """Runs over time: the seconds that each compiled above, its hit rate below; marks say the verdict."""
    data = []
    for kind in VERDICTS:
        members = [run for run in runs if run.verdict == kind]
        if members:
            data += [
                _trend_trace(members, kind, zone, seconds=True),
                _trend_trace(members, kind, zone, seconds=False),
            ]
    layout = {
        "height": 340,
        "margin": {"l": 4, "r": 12, "t": 8, "b": 4},
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": "zoom",
        "xaxis": {"type": "date", "automargin": True, "anchor": "y2"},
        "yaxis": {
            "domain": [0.42, 1.0],
            "rangemode": "tozero",
            "fixedrange": True,
            "automargin": True,
            "title": {"text": "seconds compiled", "font": {"size": 12}},
        },
        "yaxis2": {
            "domain": [0.0, 0.34],
            "range": [-0.06, 1.06],
            "fixedrange": True,
            "automargin": True,
            "tickformat": ".0%",
            "gridcolor": "#8884",
            "zeroline": False,
            "title": {"text": "hit rate", "font": {"size": 12}},
        },
    }
    return {"data": data, "layout": layout}


def side_by_side(found: Comparison) -> Figure:
    """Hit rates by cache of two runs, and the seconds that they compiled."""
    names = cache_names([found.one, found.two])
    data: list[Figure] = []
    for run, colour in ((found.one, FIRST), (found.two, SECOND)):
        name = escape(run_name(run))
        data.append(
            {
                "type": "bar",
                "name": name,
                "x": [cache_title(cache) for cache in names],
                "y": [cache_ratio(run, cache) for cache in names],
                "marker": {"color": colour},
                "hovertext": [_cache_hover(run, cache) for cache in names],
                "hoverinfo": "text",
            }
        )
        data.append(
            {
                "type": "bar",
                "name": name,
                "x": ["compiled"],
                "y": [run.compiled_s],
                "xaxis": "x2",
                "yaxis": "y2",
                "marker": {"color": colour},
                "text": [duration(run.compiled_s)],
                "textposition": "outside",
                "cliponaxis": False,
                "hovertext": [run_hover(run)],
                "hoverinfo": "text",
            }
        )
    most_s = max(found.one.compiled_s, found.two.compiled_s, 1.0)
    layout = {
        "height": 260,
        "margin": {"l": 4, "r": 12, "t": 16, "b": 4},
        "showlegend": False,
        "dragmode": False,
        "barmode": "group",
        "xaxis": {**_FIXED, "domain": [0.0, 0.66], "showgrid": False},
        "yaxis": {**_FIXED, "range": [0, 1.04], "tickformat": ".0%"},
        "xaxis2": {**_FIXED, "domain": [0.76, 1.0], "anchor": "y2", "showgrid": False},
        "yaxis2": {
            **_FIXED,
            "range": [0, 1.2 * most_s],
            "anchor": "x2",
            "ticksuffix": " s",
            "gridcolor": "#8884",
        },
    }
    return {"data": data, "layout": layout}


def _seconds_trace(runs: Sequence[CacheRunRow], lanes: Sequence[int], *, hidden: bool) -> Figure:
    return {
        "type": "bar",
        "name": "hidden" if hidden else "waited",
        "orientation": "h",
        "xaxis": "x2",
        "y": list(lanes),
        "x": [run.hidden_compile_s if hidden else run.compile_s for run in runs],
        "marker": {
            "color": [verdict_colour(run.verdict) for run in runs],
            "opacity": 0.4 if hidden else 1.0,
        },
        "hovertext": [run_hover(run) for run in runs],
        "hoverinfo": "text",
    }


def _trend_trace(runs: Sequence[CacheRunRow], kind: str, zone: tzinfo, *, seconds: bool) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": kind,
        "x": [local(run.start, zone) for run in runs],
        "y": [run.compiled_s if seconds else run.hit_ratio for run in runs],
        "yaxis": "y" if seconds else "y2",
        "marker": {"color": verdict_colour(kind), "symbol": VERDICT_SYMBOLS[kind], "size": 9},
        "hovertext": [f"{moment(run.start, zone)}<br>{run_hover(run)}" for run in runs],
        "hoverinfo": "text",
    }


def run_hover(run: CacheRunRow) -> str:
    """What a run tells where one points at it."""
    return (
        f"<b>{escape(run_name(run))}</b> · {escape(run.verdict)}<br>{escape(verdict_meaning(run.verdict))}"
        f"<br>waited {duration(run.compile_s)} for compilation, {duration(run.hidden_compile_s)} hidden"
        f"<br>{ratio(run.hit_ratio)} hits, {duration(run.saved_s)} saved, {size(run.bytes)}"
    )


def _cache_hover(run: CacheRunRow, cache: str) -> str:
    total = run.caches.get(cache)
    if total is None:
        return f"<b>{escape(run_name(run))}</b><br>{escape(cache_title(cache))}: nothing told"
    return (
        f"<b>{escape(run_name(run))}</b><br>{escape(cache_title(cache))}: {total.hits:,} hits, "
        f"{total.misses:,} misses, {total.bypasses:,} bypasses"
    )
