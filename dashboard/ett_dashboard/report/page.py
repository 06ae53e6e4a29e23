"""A report as one file of HTML: style, words, Plotly and figures inside, nothing fetched. Pure.

The page forbids itself, by its content policy, every request and every script but its own two.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape

from ett_dashboard.report.pieces import Chart, Piece, rendered
from ett_dashboard.theme import ASSETS, style, variables

DRAWING = "export default function"
"""How `chart.js` begins the function that draws a figure."""


def document(title: str, pieces: Sequence[Piece], plotly: str) -> bytes:
    """The whole file in UTF-8; `plotly` is the text of plotly.min.js.

    Raises:
        ValueError: that text would end its own element.
    """
    if "</script" in plotly or "<!--" in plotly:
        raise ValueError("this plotly.min.js cannot stand inside a page")
    body, charts = rendered(pieces)
    drawing = script()
    policy = (
        f"default-src 'none'; script-src '{digest(plotly)}' '{digest(drawing)}'; "
        "style-src 'unsafe-inline'; img-src data: blob:"
    )
    parts = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{themes()}{style()}{own_style()}</style></head>",
        '<body class="stApp"><main>',
        '<button id="theme" type="button" class="ett-theme">Light or dark</button>',
        '<noscript><p class="ett-banner">Figures need JavaScript; words and tables do not.</p></noscript>',
        f"{body}</main>",
        f'<script type="application/json" id="charts">{_json(charts)}</script>',
        f"<script>{plotly}</script>",
        f'<script type="module">{drawing}</script></body></html>\n',
    )
    return "".join(parts).encode()


def themes() -> str:
    """The colours of the app's two themes, as variables; printed, a page is light."""
    light, dark = _variables("light"), _variables("dark")
    return (
        f":root{{color-scheme:light;{light}}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}"
    )


def own_style() -> str:
    """The style sheet of what only reports have."""
    return (ASSETS / "report.css").read_text(encoding="utf-8")


def script() -> str:
    """What draws the figures, the app's own chart and what calls it here, and what explains them.

    Raises:
        ValueError: the app's chart does not begin as expected.
    """
    names = ("chart.js", "explain.js", "report.js")
    chart, *others = ((ASSETS / name).read_text(encoding="utf-8") for name in names)
    if chart.count(DRAWING) != 1:
        raise ValueError(f"chart.js has no single {DRAWING!r}")
    return "\n".join([chart.replace(DRAWING, "function draw"), *others])


def digest(text: str) -> str:
    """The name by which a content policy allows a script.

    >>> digest("")
    'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _variables(theme: str) -> str:
    return "".join(f"{name}:{value};" for name, value in variables(theme).items())


def _json(charts: Sequence[Chart]) -> str:
    """The figures, with no character that could end the element they stand in."""
    told = [{"figure": chart.figure, "title": chart.title} for chart in charts]
    return json.dumps(told, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
