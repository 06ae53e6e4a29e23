"""Figures of the Fleet page as plain dictionaries. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from html import escape

from ett_core.colours import DOMAIN_COLOURS
from ett_core.components import GROUP_COLOURS, GROUPS, group_seconds
from ett_dashboard.failures.frames import domain_of
from ett_dashboard.failures.rows import FailureGroup
from ett_dashboard.failures.words import struck
from ett_dashboard.figures import Figure, bars
from ett_dashboard.fleet.rows import FleetWindow
from ett_dashboard.markup import GROUP_TITLES
from ett_dashboard.words import HOUR_S, compact, many, percent

MOST_CLASSES = 8


def classes(groups: Sequence[FailureGroup], price_per_hour: float | None) -> Figure:
    """The largest classes of failures by the accelerator-hours that they lost, and their cost."""
    shown = groups[:MOST_CLASSES]
    names = [escape(group.key) or "unknown" for group in shown]
    texts = [_class_text(group, price_per_hour) for group in shown]
    hovers = [f"<b>{name}</b><br>{struck(group)}" for name, group in zip(names, shown, strict=True)]
    hues = [DOMAIN_COLOURS[domain_of(group.key)] for group in shown]
    lost = [group.lost_accelerator_s for group in shown]
    return bars(names, lost, texts=texts, hovers=hovers, hues=hues)


def over_time(found: FleetWindow, zone: tzinfo) -> Figure:
    """Shares of each part of time by group, stacked to 100 %; parts without any time are gaps.

    The last part ends with what is known.
    """
    known = [part for part in found.over_time if part.all.total]
    edges = [edge for part in known for edge in (part.begin, min(part.end, found.as_of))]
    moments = [datetime.fromtimestamp(edge, zone) for edge in edges]
    data = []
    for group in GROUPS:
        shares = [100 * group_seconds(part.all.components)[group] / part.all.total for part in known]
        if not any(shares):
            continue
        title = GROUP_TITLES[group][0]
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": title,
                "stackgroup": "all",
                "x": [moment.strftime("%Y-%m-%d %H:%M:%S") for moment in moments],
                "y": [share for share in shares for _ in range(2)],
                "line": {"width": 0, "color": GROUP_COLOURS[group]},
                "fillcolor": GROUP_COLOURS[group],
                "hovertext": [f"{title} {percent(share)}" for share in shares for _ in range(2)],
                "hoverinfo": "text+x",
            }
        )
    layout = {
        "height": 230,
        "margin": {"l": 4, "r": 8, "t": 6, "b": 4},
        "showlegend": False,
        "hovermode": "x unified",
        "dragmode": "zoom",
        "xaxis": {"type": "date", "automargin": True},
        "yaxis": {"range": [0, 100], "ticksuffix": " %", "fixedrange": True, "automargin": True},
    }
    return {"data": data, "layout": layout}


def _class_text(group: FailureGroup, price_per_hour: float | None) -> str:
    hours = group.lost_accelerator_s / HOUR_S
    cost = hours * price_per_hour if price_per_hour else group.cost
    money = "" if cost is None else f" · cost {compact(cost)}"
    return f"{compact(hours)} h{money} · {many(group.count, 'failure')}"
