"""A Plotly chart that keeps its zoom: mounts `assets/chart.js` with a figure.

Streamlit's own Plotly element replaces its node whenever the figure changes, and zoom goes with
it; this component redraws in the node that is there. plotly.min.js is taken from the installed
Plotly package and served by this server (`server.PLOTLY_PATH`), never from outside.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from ett_dashboard.theme import ASSETS

PLOTLY_SOURCE = "assets/plotly.min.js"
"""Address of Plotly, relative to the page."""

_mount = st.components.v2.component(
    "ett_chart",
    html='<div class="ett-chart"></div>',
    js=(ASSETS / "chart.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def chart(figure: dict[str, Any], *, title: str, key: str, revision: str = "", zoom: bool = False) -> None:
    """Draw a figure.

    Args:
        figure: `data` and `layout` of Plotly; the layout says its height in pixels.
        title: what the chart shows, for those who cannot see it.
        key: names the chart on its page; the node that it is drawn in lives as long as the key.
        revision: zoom and pan are kept as long as this stays the same.
        zoom: whether the buttons for zooming are offered.
    """
    data = {
        "figure": figure,
        "title": title,
        "revision": revision or key,
        "zoom": zoom,
        "plotly": PLOTLY_SOURCE,
    }
    _mount(key=key, data=data)
