"""Plotly figures as plain dictionaries, from rows. Pure: no Plotly import, no theme.

Colours of text and grid come from the page, which knows whether it is light or dark; a figure
says only the colours that carry meaning. Words that come from a job are escaped here, since
Plotly reads a little HTML in labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from html import escape
from typing import Any

from ett_core.colours import component_colour, state_group
from ett_core.components import GROUP_COLOURS
from ett_dashboard.frames import Share
from ett_dashboard.words import duration, percent

Figure = dict[str, Any]
TEXT_ROOM = 1.5
"""How much longer than the longest bar its axis is, for the words behind it."""
_TIGHT = {"l": 4, "r": 8, "t": 6, "b": 4}


def donut(shares: Sequence[Share], ett: float | None, said: Callable[[float], str] = duration) -> Figure:
    """The partition as a ring, with ETT% in its middle; `said` puts an amount of time into words."""
    trace = {
        "type": "pie",
        "hole": 0.68,
        "sort": False,
        "direction": "clockwise",
        "labels": [share.component for share in shares],
        "values": [share.seconds for share in shares],
        "marker": {"colors": [component_colour(share.component) for share in shares], "line": {"width": 1}},
        "textinfo": "none",
        "hovertext": [_hover(share, said) for share in shares],
        "hoverinfo": "text",
    }
    layout = {
        "height": 270,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "showlegend": False,
        "annotations": [
            _centre(f"<b>{percent(ett)}</b>", 0.53, 28),
            _centre("effective" if ett is not None else "not observed", 0.40, 13),
        ],
    }
    return {"data": [trace], "layout": layout}


def pareto(shares: Sequence[Share], said: Callable[[float], str] = duration) -> Figure:
    """The largest losses, one bar a component, largest on top; `said` puts an amount of time into words."""
    return bars(
        [share.component for share in shares],
        [share.seconds for share in shares],
        texts=[f"{said(share.seconds)} · {percent(share.percent)}" for share in shares],
        hovers=[_hover(share, said) for share in shares],
        hues=[GROUP_COLOURS[share.group] for share in shares],
    )


def states(counts: Sequence[tuple[str, int]]) -> Figure:
    """Jobs by state, one bar a state."""
    names = [state.replace("_", " ") for state, _ in counts]
    texts = [f"{count:,}" for _, count in counts]
    hues = [GROUP_COLOURS[state_group(state)] for state, _ in counts]
    hovers = [f"{text} {name}" for name, text in zip(names, texts, strict=True)]
    return bars(names, [float(count) for _, count in counts], texts=texts, hovers=hovers, hues=hues)


def bars(  # noqa: PLR0913 - one argument a part of a bar
    names: Sequence[str],
    values: Sequence[float],
    *,
    texts: Sequence[str],
    hovers: Sequence[str],
    hues: Sequence[str],
    room: float = TEXT_ROOM,
) -> Figure:
    """Bars from left to right, the first on top; the axis is `room` bars long, for the words behind each."""
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": [*names],
        "x": [*values],
        "marker": {"color": [*hues]},
        "text": [*texts],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertext": [*hovers],
        "hoverinfo": "text",
    }
    span = [min(*values, 0.0) if values else 0.0, (max(values, default=0.0) or 1.0) * room]
    layout = {
        "height": 26 * max(len(names), 3) + 14,
        "margin": _TIGHT,
        "bargap": 0.34,
        "xaxis": {"visible": False, "range": span, "fixedrange": True},
        "yaxis": {
            "type": "category",
            "autorange": "reversed",
            "automargin": True,
            "fixedrange": True,
            "ticks": "",
            "showgrid": False,
        },
        "dragmode": False,
    }
    return {"data": [trace], "layout": layout}


def _hover(share: Share, said: Callable[[float], str]) -> str:
    return (
        f"<b>{escape(share.component)}</b><br>{said(share.seconds)} · {percent(share.percent)}"
        f"<br>{share.meaning}"
    )


def _centre(text: str, height: float, size: int) -> Figure:
    return {
        "text": text,
        "x": 0.5,
        "y": height,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": "middle",
        "showarrow": False,
        "font": {"size": size},
    }


def leading(figure: Figure, ways: Sequence[str]) -> Figure:
    """The figure with an address for each point of its first trace, to which a click leads."""
    first, *others = figure["data"]
    return {**figure, "data": [{**first, "customdata": [*ways]}, *others]}


def local(unix_s: float, zone: tzinfo) -> str:
    """A moment as Plotly's axes of time take it, in the viewer's zone."""
    return datetime.fromtimestamp(unix_s, zone).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
