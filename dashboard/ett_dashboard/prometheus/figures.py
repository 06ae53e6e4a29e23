"""Figures of what only a server of metrics is asked, as plain dictionaries. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from html import escape

from ett_core.components import EFFECTIVE, GROUP_COLOURS, UNKNOWN
from ett_dashboard.figures import Figure, bars, local
from ett_dashboard.prometheus.rows import CacheTotals, JobHistory
from ett_dashboard.rows import CacheRow
from ett_dashboard.words import duration, percent, plain, ratio, whole

LINES: Mapping[str, tuple[str, str, float]] = {
    "1h": ("within the hour before", GROUP_COLOURS[UNKNOWN], 1.5),
    "all": ("since it began", GROUP_COLOURS[EFFECTIVE], 2.5),
}
"""The windows that are drawn: their name, colour and width."""


def legend() -> str:
    """What the lines of `effective` are, as HTML."""
    hues = "".join(f'<i style="background:{hue}"></i>{name}' for name, hue, _ in LINES.values())
    return f'<div class="ett-take ett-legend">{hues}</div>'


def effective(history: JobHistory, zone: tzinfo) -> Figure:
    """The effective share of a job over time, in percent."""
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": [local(at, zone) for at, _ in history.effective[window]],
            "y": [100 * share for _, share in history.effective[window]],
            "line": {"width": width, "color": hue},
            "hovertext": [f"{ratio(share)} {name}" for _, share in history.effective[window]],
            "hoverinfo": "text+x",
        }
        for window, (name, hue, width) in LINES.items()
        if history.effective.get(window)
    ]
    layout = {
        "height": 230,
        "margin": {"l": 4, "r": 8, "t": 6, "b": 4},
        "showlegend": False,
        "hovermode": "x unified",
        "dragmode": "zoom",
        "xaxis": {"type": "date", "automargin": True},
        "yaxis": {"range": [0, 101], "ticksuffix": " %", "fixedrange": True, "automargin": True},
    }
    return {"data": data, "layout": layout}


def hit_rates(found: CacheTotals) -> Figure:
    """The share of requests that each cache answered, those most asked on top."""
    asked = {name: row for name, row in found.caches.items() if row.hits + row.misses}
    names = sorted(asked, key=lambda name: -(asked[name].hits + asked[name].misses))
    rates = [100 * asked[name].hits / (asked[name].hits + asked[name].misses) for name in names]
    return bars(
        [escape(plain(name, 40)) for name in names],
        rates,
        texts=[f"{percent(rate)} of {_asked(asked[name])}" for name, rate in zip(names, rates, strict=True)],
        hovers=[_hover(name, asked[name]) for name in names],
        hues=[GROUP_COLOURS[EFFECTIVE]] * len(names),
    )


def stages(found: CacheTotals) -> Figure:
    """Compile seconds by stage, the longest on top."""
    known = sorted(((s, name) for name, s in found.compile.items() if s), reverse=True)
    names = [escape(plain(name, 40)) for _, name in known]
    return bars(
        names,
        [s for s, _ in known],
        texts=[duration(s) for s, _ in known],
        hovers=[f"<b>{name}</b><br>of all ranks together" for name in names],
        hues=["#e0a100"] * len(names),
    )


def _asked(row: CacheRow) -> str:
    return f"{whole(row.hits + row.misses)} requests"


def _hover(name: str, row: CacheRow) -> str:
    return (
        f"<b>{escape(plain(name, 40))}</b><br>{whole(row.hits)} hits, {whole(row.misses)} misses, "
        f"{whole(row.bypasses)} bypasses"
    )
