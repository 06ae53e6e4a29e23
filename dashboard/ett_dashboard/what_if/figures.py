"""Plotly figures of what-if answers as plain dictionaries. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ett_core.colours import component_colour
from ett_core.components import COMPONENTS, EFFECTIVE, GROUP_COLOURS, TRAINING, UNKNOWN, meaning_of
from ett_dashboard.figures import Figure, bars
from ett_dashboard.weights import amount
from ett_dashboard.what_if.rows import LeverRow, WhatIf
from ett_dashboard.what_if.words import meaning, title
from ett_dashboard.words import percent, points, ratio, tenths

MOST_LEVERS = 16
LEAST_LABELLED = 4.0
"""Percent of a bar from which a part of it bears its name."""
TEXT_ROOM = 1.75
_INSIDE: Figure = {
    "type": "bar",
    "orientation": "h",
    "y": ["as it is", "with the levers"],
    "textposition": "inside",
    "insidetextanchor": "middle",
    "textangle": 0,
    "hoverinfo": "text",
}


def gains(found: WhatIf) -> Figure:
    """By how many points ETT rises with each lever alone, the largest on top; chosen ones stand out."""
    shown = [row for row in found.alone if row.gain_ratio is not None][:MOST_LEVERS]
    return bars(
        [escape(title(row.key)) for row in shown],
        [100 * (row.gain_ratio or 0.0) for row in shown],
        texts=[f"{points(row.gain_ratio)} · {amount(row.saved, found.weight)}" for row in shown],
        hovers=[_lever_hover(row) for row in shown],
        hues=[GROUP_COLOURS[EFFECTIVE if row.key in found.levers else UNKNOWN] for row in shown],
        room=TEXT_ROOM,
    )


def before_and_after(found: WhatIf) -> Figure:
    """The partition as it is and with the levers, on one scale: what is missing in the second was saved."""
    sums = (found.now.components, found.together.components)
    total = found.now.total or 1.0
    data = [
        _part(name, sums, total, found.weight) for name in COMPONENTS if any(name in part for part in sums)
    ]
    if found.saved > 0:
        data.append(_saved(found, total))
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


def _part(name: str, sums: Sequence[Mapping[str, float]], total: float, weight: str) -> Figure:
    """One component in both bars."""
    shares = [_percents(components).get(name, 0.0) for components in sums]
    amounts = [components.get(name, 0.0) for components in sums]
    hovers = [
        f"<b>{name}</b> {percent(share)}, {amount(value, weight)}<br>{escape(meaning_of(name))}"
        for share, value in zip(shares, amounts, strict=True)
    ]
    return {
        **_INSIDE,
        "name": name,
        "x": [100 * value / total for value in amounts],
        "marker": {"color": component_colour(name), "line": {"width": 0}},
        "text": [_label(name, share) for share in shares],
        "hovertext": hovers,
    }


def _saved(found: WhatIf, total: float) -> Figure:
    """What the second bar lacks."""
    share = 100 * found.saved / total
    return {
        **_INSIDE,
        "name": "saved",
        "x": [0.0, share],
        "marker": {"color": "rgba(0,0,0,0)", "line": {"width": 1.5, "color": GROUP_COLOURS[UNKNOWN]}},
        "text": ["", f"saved {percent(share)}"],
        "hovertext": ["", f"saved: {amount(found.saved, found.weight)}"],
    }


def _percents(components: Mapping[str, float]) -> dict[str, float]:
    return tenths(dict(components), keep=TRAINING)


def _label(name: str, share: float) -> str:
    return f"{name} {percent(share)}" if share >= LEAST_LABELLED else ""


def _lever_hover(row: LeverRow) -> str:
    return (
        f"<b>{escape(title(row.key))}</b>: {ratio(row.effective_ratio)} effective<br>{escape(meaning(row))}"
    )
