"""The figure of wasted time over the checkpoint interval, as a plain dictionary. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ett_core.components import EFFECTIVE, FAILURE, GROUP_COLOURS, IDLENESS, UNKNOWN
from ett_core.intervals import Waste
from ett_dashboard.checkpoints.curve import Supposed, points
from ett_dashboard.figures import Figure
from ett_dashboard.words import duration, percent

BLOCKING, LOST, BEST = GROUP_COLOURS[IDLENESS], GROUP_COLOURS[FAILURE], GROUP_COLOURS[EFFECTIVE]
SLOWED = GROUP_COLOURS[UNKNOWN]
ROOM = 2.2
"""The curve is drawn up to so many times what the best interval, or the one in use, wastes."""
TICKS_S = (1, 5, 15, 60, 300, 900, 3600, 10_800, 43_200, 86_400, 604_800, 2_592_000)


def wasted_time(supposed: Supposed) -> Figure:
    """What each interval wastes, made of blocking and of loss; the interval in use and the best one on it."""
    curve = points(supposed)
    best, used = supposed.best, supposed.used_percent
    data = [
        _area(curve, "lost in failures", [100 * (w.lost_s + w.recovery_s) / w.train_s for w in curve], LOST),
        _area(curve, "blocked by saves", [100 * w.blocking_s / w.train_s for w in curve], BLOCKING),
        *_slowed(curve),
        {
            "type": "scatter",
            "mode": "lines",
            "name": "together",
            "x": [w.interval_s for w in curve],
            "y": [w.percent for w in curve],
            "line": {"width": 2.5, "color": "#8a8f98"},
            "hovertext": [_hover(w) for w in curve],
            "hoverinfo": "text",
        },
    ]
    if best is not None and best.interval_s is not None:
        data.append(
            _mark((best.interval_s, best.percent), "best", BEST, "star", _beside(best.interval_s, supposed))
        )
    if used is not None and supposed.interval_s is not None:
        name = "in use" if supposed.measured_percent is None else "measured"
        is_left = best is not None and (best.interval_s or 0.0) > supposed.interval_s
        side = "top left" if is_left else "top right"
        data.append(_mark((supposed.interval_s, used), name, LOST, "circle", side))
    known = [each for each in (best.percent if best else None, used) if each is not None]
    top = max(min(max(known, default=1.0) * ROOM, 100.0), 1.2 * max(known, default=1.0))
    layout: dict[str, Any] = {
        "height": 380,
        "margin": {"l": 4, "r": 12, "t": 28, "b": 4},
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": "zoom",
        "shapes": _band(supposed),
        "annotations": _notes(supposed),
        "xaxis": {
            "type": "log",
            "automargin": True,
            "tickvals": list(TICKS_S),
            "ticktext": [
                duration(float(s)).removesuffix(" 0 s").removesuffix(" 0 m").removesuffix(" 0 h")
                for s in TICKS_S
            ],
            "title": {"text": "time between two saves", "font": {"size": 12}},
        },
        "yaxis": {
            "range": [0, top],
            "ticksuffix": " %",
            "automargin": True,
            "title": {"text": "of the training time wasted", "font": {"size": 12}},
        },
    }
    return {"data": data, "layout": layout}


def _slowed(curve: Sequence[Waste]) -> Iterator[Figure]:
    """What saves slow the steps beside them, where they do."""
    if any(w.slowed_s for w in curve):
        yield _area(curve, "slowed by saves", [100 * w.slowed_s / w.train_s for w in curve], SLOWED)


def _area(curve: Sequence[Waste], name: str, values: Sequence[float], colour: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "stackgroup": "parts",
        "x": [w.interval_s for w in curve],
        "y": list(values),
        "line": {"width": 0.5, "color": colour},
        "fillcolor": f"{colour}55",
        "hoverinfo": "skip",
    }


def _mark(point: tuple[float, float], name: str, colour: str, symbol: str, side: str) -> Figure:
    """A point with its words beside it: away from the other one, and below the lowest of a curve."""
    told = f"{name}: every {duration(point[0])}, {percent(point[1])}"
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": name,
        "x": [point[0]],
        "y": [point[1]],
        "text": [f"<b>{told}</b>"],
        "textposition": side,
        "marker": {"color": colour, "size": 13, "symbol": symbol, "line": {"width": 1.5, "color": "#fff"}},
        "hovertext": [f"{told} of the training time wasted"],
        "hoverinfo": "text",
        "cliponaxis": False,
    }


def _beside(best_s: float, supposed: Supposed) -> str:
    """Where the words of the best interval stand: below it, on the side that the one in use is not."""
    if supposed.used_percent is None or supposed.interval_s is None:
        return "bottom center"
    return "bottom left" if supposed.interval_s > best_s else "bottom right"


def _band(supposed: Supposed) -> list[Figure]:
    span = supposed.range_s
    if span is None:
        return []
    curve = points(supposed)
    end = curve[-1].interval_s if span[1] is None and curve else span[1]
    return [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": span[0],
            "x1": end,
            "y0": 0,
            "y1": 1,
            "fillcolor": BEST,
            "opacity": 0.12,
            "line": {"width": 0},
            "layer": "below",
        }
    ]


def _notes(supposed: Supposed) -> list[Figure]:
    span = supposed.range_s
    if span is None:
        return []
    to = "any longer one" if span[1] is None else duration(span[1])
    text = f"90 % sure: the best lies between {duration(span[0])} and {to}"
    return [
        {
            "xref": "paper",
            "yref": "paper",
            "x": 1,
            "y": 1.0,
            "yanchor": "bottom",
            "xanchor": "right",
            "showarrow": False,
            "text": text,
            "font": {"size": 12},
        }
    ]


def _hover(waste: Waste) -> str:
    slowed = f"{duration(waste.slowed_s)} slowed beside them,<br>" if waste.slowed_s else ""
    return (
        f"<b>every {duration(waste.interval_s)}</b>: {percent(waste.percent)} wasted<br>in a day: "
        f"{duration(waste.blocking_s)} blocked by {waste.checkpoints:,.0f} saves,<br>{slowed}"
        f"{duration(waste.lost_s)} trained in vain, {duration(waste.recovery_s)} of recovery"
    )
