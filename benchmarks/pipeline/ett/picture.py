"""The partition of both trainers' time as two bars on one scale, drawn by plotly in a browser.

python benchmarks/pipeline/ett/picture.py results/results.json docs/img/ett.png
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import plotly.graph_objects as go
from figures import SIDES, Run
from playwright.sync_api import sync_playwright

from ett_core.colours import component_colour
from ett_core.components import COMPONENTS, GROUP_COLOURS, TRAINING, UNKNOWN
from ett_dashboard.theme import STREAMLIT_OPTIONS

CHROMIUM = "/usr/bin/chromium"
WIDTH, HEIGHT = 1100, 330
LEAST_NAMED = 0.035
"""Share of the longer bar from which a part of it bears its name."""


def draw(runs: Sequence[Run], path: Path) -> None:
    """Write the picture as PNG, in the colours of the light theme."""
    html = figure(runs).to_html(include_plotlyjs=True, full_html=True, config={"displayModeBar": False})
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=2)
        page.set_content(html)
        page.locator(".js-plotly-plot").screenshot(path=path)
        browser.close()


def figure(runs: Sequence[Run]) -> go.Figure:
    """Two stacked bars: the mean seconds of each component over the runs of a trainer."""
    means = {side: mean_components([run for run in runs if run.side == side]) for side in SIDES}
    longest = max(sum(each.values()) for each in means.values())
    text_colour = STREAMLIT_OPTIONS["theme.light.textColor"]
    names = [f"<b>{side}</b><br>ETT {ett_percent(means[side]):.1f} %" for side in SIDES]
    bars = [
        go.Bar(
            orientation="h",
            y=names,
            x=[means[side].get(component, 0.0) / 60 for side in SIDES],
            marker={"color": component_colour(component), "line": {"width": 0}},
            text=[named(component, means[side], longest) for side in SIDES],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
        )
        for component in COMPONENTS
        if any(component in means[side] for side in SIDES)
    ]
    layout = {
        "barmode": "stack",
        "bargap": 0.28,
        "showlegend": False,
        "width": WIDTH,
        "height": HEIGHT,
        "paper_bgcolor": STREAMLIT_OPTIONS["theme.light.secondaryBackgroundColor"],
        "plot_bgcolor": STREAMLIT_OPTIONS["theme.light.secondaryBackgroundColor"],
        "font": {"family": "Source Sans Pro, Inter, sans-serif", "size": 15, "color": text_colour},
        "margin": {"l": 4, "r": 24, "t": 64, "b": 4},
        "title": {
            "text": "The same training with the same three failures: where its time went",
            "x": 0.01,
            "y": 0.95,
            "font": {"size": 19},
            "subtitle": {"text": legend(), "font": {"size": 14}},
        },
        "uniformtext": {"minsize": 11, "mode": "hide"},
        "xaxis": {
            "title": "minutes",
            "automargin": True,
            "gridcolor": STREAMLIT_OPTIONS["theme.light.borderColor"],
            "zeroline": False,
        },
        "yaxis": {"autorange": "reversed", "automargin": True, "ticklabelstandoff": 8},
    }
    return go.Figure(bars, layout)


def mean_components(runs: Sequence[Run]) -> dict[str, float]:
    """Mean seconds by component over runs; they add up to the mean wall time."""
    return {
        component: statistics.fmean(run.seconds(component) for run in runs)
        for component in COMPONENTS
        if any(component in run.job["components"] for run in runs)
    }


def ett_percent(components: Mapping[str, float]) -> float:
    """The effective share of a partition."""
    return 100 * components.get(TRAINING, 0.0) / sum(components.values())


def named(component: str, of: Mapping[str, float], longest: float) -> str:
    """The name that a part of a bar bears, if it is long enough."""
    return component if of.get(component, 0.0) >= LEAST_NAMED * longest else ""


def legend() -> str:
    """The hues of the groups in words."""
    words = [
        f'<span style="color:{colour}">■</span> {group}'
        for group, colour in GROUP_COLOURS.items()
        if group != UNKNOWN
    ]
    return "   ".join(words)


def main() -> None:
    results, picture = sys.argv[1:]
    draw(msgspec.json.decode(Path(results).read_bytes(), type=list[Run]), Path(picture))


if __name__ == "__main__":
    main()
