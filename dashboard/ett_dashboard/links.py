"""Links between the pages of the app are followed in the browser, by `assets/go.js`.

Buttons beside lines copy them, by `assets/copy.js`; what has the focus keeps it, by
`assets/keep.js`; definitions come up for keys and fingers, by `assets/explain.js`.

Pages are drawn with plain links of class `ett-go`. `st.switch_page` would not do: see `assets/go.js`.
"""

from __future__ import annotations

import streamlit as st

from ett_dashboard.theme import script

_mount = st.components.v2.component(
    "ett_links", html="", js=script("copy.js", "keep.js", "explain.js", "links.js"), isolate_styles=False
)


def followed() -> None:
    """Let links of class `ett-go` be followed without loading the app again."""
    _mount(key="links", data={})
