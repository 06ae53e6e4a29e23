"""The document that a browser gets for a page: Streamlit's own, with a first view of the page in it. Pure.

Streamlit's document is empty until its scripts have run, have asked for the page and have drawn all of it. So
that words and figures can be read at once, they stand in the document as HTML, in a shadow tree of their own,
above the place where Streamlit draws. `assets/first.js` begins Streamlit's scripts once they are painted, and
takes them away when what they stand for has come.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape

import msgspec

from ett_dashboard.theme import ASSETS, colours, style

_APP = re.compile(r'<script type="module" crossorigin src="([^"]+)"></script>')
_FONT = re.compile(r'<link\s+rel="preload"\s+href="([^"]+)"\s+as="font"')
_TITLE, _ROOT, _HEAD = "<title>Streamlit</title>", '<div id="root"></div>', "</head>"
ALWAYS = ".ett-empty, .ett-banner, [role=dialog], [data-testid=stException]"
"""What the app may draw instead of what was expected, for the first view to go."""


class FirstView(msgspec.Struct, frozen=True):
    """What is seen of a page first.

    `until`: a CSS selector; what it finds in the page has taken the place of this.
    """

    html: str
    until: str


class Shell(msgspec.Struct, frozen=True):
    """Streamlit's document without what begins its scripts, cut where a first view stands.

    `app`: the address of those scripts.
    """

    above: str
    app: str
    below: str


def shell(index: str) -> Shell | None:
    """The parts of Streamlit's document; None of one that is not as known, which is served as it is."""
    app, font = _APP.search(index), _FONT.search(index)
    if app is None or any(index.count(part) != 1 for part in (_TITLE, _ROOT, _HEAD)):
        return None
    preload = f'<link rel="modulepreload" crossorigin href="{app[1]}">'
    index = index.replace(app[0], preload).replace(_TITLE, "<title>ettwatch</title>")
    index = index.replace(_HEAD, f"<style>{_face(font[1])}</style>{_HEAD}" if font else _HEAD)
    above, below = index.split(_ROOT)
    return Shell(above + _ROOT, app[1], below)


def document(parts: Shell, first: FirstView) -> str:
    """The document of a page."""
    until = escape(f"{first.until}, {ALWAYS}")
    return (
        f'{parts.above}<div id="ett-first"><template shadowrootmode="closed"><style>{_style()}</style>'
        f'<div class="stApp ett-page" role="region" aria-label="First view">{first.html}</div>'
        "</template></div>"
        f'<script data-app="{parts.app}" data-until="{until}">{_script()}</script>{parts.below}'
    )


def _face(address: str) -> str:
    return f'@font-face{{font-family:"Source Sans";font-weight:200 900;src:url({address})}}'


@cache
def _style() -> str:
    own = (ASSETS / "first.css").read_text(encoding="utf-8")
    return f":host{{{colours()}}}{style()}{own}"


@cache
def _script() -> str:
    return (ASSETS / "first.js").read_text(encoding="utf-8")
