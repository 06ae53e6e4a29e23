"""A Plotly chart that keeps its zoom: mounts `assets/chart.js` with a figure.

Streamlit's own Plotly element replaces its node whenever the figure changes, and zoom goes with
it; this component redraws in the node that is there. plotly.min.js is taken from the installed
Plotly package and served by this server (`server.PLOTLY_PATH`), never from outside.
"""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import streamlit as st

from ett_dashboard.theme import script

PLOTLY_SOURCE = f"assets/plotly-{version('plotly')}.min.js"
"""Address of Plotly, relative to the page; another version has another one, so that a browser may keep it."""

_mount = st.components.v2.component(
    "ett_chart",
    html='<div class="ett-chart"></div>',
    js=script("chart.js"),
    isolate_styles=False,
)


def plotly_file() -> Path:
    """plotly.min.js of the installed Plotly package."""
    return Path(str(files("plotly") / "package_data" / "plotly.min.js"))


def chart(figure: dict[str, Any], *, title: str, key: str, revision: str = "", zoom: bool = False) -> None:
    """Draw a figure.

    Args:
        figure: `data` and `layout` of Plotly; the layout says its height in pixels. Addresses in
            `customdata`, one a point, are followed by a click on the point.
        title: what the chart shows, for those who cannot see it.
        key: names the chart on its page; the node that it is drawn in lives as long as the key.
        revision: zoom and pan are kept as long as this stays the same.
        zoom: whether the buttons for zooming are offered.
    """
    _draw(figure, key, title=title, revision=revision or key, zoom=zoom, watched=False)


def watched_chart(figure: dict[str, Any], *, title: str, key: str, revision: str) -> None:
    """Draw a figure as `chart`, with zoom; `shown_part` knows what of it the viewer looks at."""
    _draw(figure, key, title=title, revision=revision, zoom=True, watched=True)


def shown_part(key: str, revision: str) -> object:
    """What of its axis of time a watched chart shows, as the browser told it; None for all of it."""
    told = getattr(st.session_state.get(key), "shown", None)
    return told.get("part") if isinstance(told, dict) and told.get("revision") == revision else None


def _draw(figure: dict[str, Any], key: str, **facts: str | bool) -> None:
    data = {"figure": figure, "plotly": PLOTLY_SOURCE, "inTurn": True, **facts}
    _mount(key=key, data=data, on_shown_change=lambda: None)
