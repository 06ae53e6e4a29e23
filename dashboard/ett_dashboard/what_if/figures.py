"""Plotly figures of what-if answers as plain dictionaries. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from ett_core.colours import component_colour
from ett_core.components import COMPONENTS, EFFECTIVE, GROUP_COLOURS, TRAINING, UNKNOWN, meaning_of
from ett_dashboard.figures import Figure
from ett_dashboard.what_if.rows import LeverRow, WhatIf
from ett_dashboard.what_if.words import amount, meaning, points, ratio, title
from ett_dashboard.words import percent, tenths

MOST_LEVERS = 16
LEAST_LABELLED = 4.0
"""Percent of a bar from which a part of it bears its name."""


def gains(found: WhatIf) -> Figure:
    """By how many points ETT rises with each lever alone, the largest on top; chosen ones stand out."""
    shown = [row for row in found.alone if row.gain_ratio is not None][:MOST_LEVERS]
    values = [100 * (row.gain_ratio or 0.0) for row in shown]
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": [escape(title(row.key)) for row in shown],
        "x": values,
        "marker": {
            "color": [GROUP_COLOURS[EFFECTIVE if row.key in found.levers else UNKNOWN] for row in shown],
        },
        "text": [f"{points(row.gain_ratio)} · {amount(row.saved, found.weight)}" for row in shown],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertext": [_lever_hover(row) for row in shown],
        "hoverinfo": "text",
    }
    room = max(max(values, default=0.0), 0.1) * 1.75
    layout = {
        "height": 27 * max(len(shown), 3) + 14,
        "margin": {"l": 4, "r": 8, "t": 6, "b": 4},
        "bargap": 0.34,
        "dragmode": False,
        "xaxis": {"visible": False, "range": [min(min(values, default=0.0), 0.0), room], "fixedrange": True},
        "yaxis": {
            "type": "category",
            "autorange": "reversed",
            "automargin": True,
            "fixedrange": True,
            "ticks": "",
            "showgrid": False,
        },
    }
    return {"data": [trace], "layout": layout}


def before_and_after(found: WhatIf) -> Figure:
    """The partition as it is and with the levers, on one scale: what is missing in the second was saved."""
    names = [n for n in COMPONENTS if n in found.now.components or n in found.together.components]
    rows = ["as it is", "with the levers"]
    shares = [_percents(found.now.components), _percents(found.together.components)]
    total = found.now.total or 1.0
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": rows,
            "x": [
                100 * part.get(name, 0.0) / total
                for part in (found.now.components, found.together.components)
            ],
            "marker": {"color": component_colour(name), "line": {"width": 0}},
            "text": [_label(name, share.get(name, 0.0)) for share in shares],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "textangle": 0,
            "hovertext": [
                f"<b>{name}</b> {percent(share.get(name, 0.0))}, "
                f"{amount(part.get(name, 0.0), found.weight)}<br>{escape(meaning_of(name))}"
                for share, part in zip(shares, (found.now.components, found.together.components), strict=True)
            ],
            "hoverinfo": "text",
        }
        for name in names
    ]
    if found.saved > 0:
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": "saved",
                "y": rows,
                "x": [0.0, 100 * found.saved / total],
                "marker": {"color": "rgba(0,0,0,0)", "line": {"width": 1.5, "color": "#8a8f98"}},
                "text": ["", f"saved {percent(100 * found.saved / total)}"],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "hovertext": ["", f"saved: {amount(found.saved, found.weight)}"],
                "hoverinfo": "text",
            }
        )
    layout = {
        "height": 150,
        "margin": {"l": 4, "r": 8, "t": 6, "b": 4},
        "barmode": "stack",
        "bargap": 0.25,
        "showlegend": False,
        "dragmode": False,
        "uniformtext": {"minsize": 10, "mode": "hide"},
        "xaxis": {"visible": False, "range": [0, 100.5], "fixedrange": True},
        "yaxis": {
            "type": "category",
            "autorange": "reversed",
            "automargin": True,
            "fixedrange": True,
            "ticks": "",
        },
    }
    return {"data": data, "layout": layout}


def _percents(components: Mapping[str, float]) -> dict[str, float]:
    return tenths(dict(components), keep=TRAINING)


def _label(name: str, share: float) -> str:
    return f"{name} {percent(share)}" if share >= LEAST_LABELLED else ""


def _lever_hover(row: LeverRow) -> str:
    return (
        f"<b>{escape(title(row.key))}</b>: {ratio(row.effective_ratio)} effective<br>{escape(meaning(row))}"
    )
