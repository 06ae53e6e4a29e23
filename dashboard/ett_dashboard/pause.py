"""The switch that holds a page still: mounts `assets/pause.js`.

Streamlit's own switch fetches scripts of its own, and a page is shown only once all have come.
"""

from __future__ import annotations

import streamlit as st

from ett_dashboard.theme import script

KEY = "paused"
MEANING = "Holds the figures still; the page refreshes again when switched off."

_mount = st.components.v2.component(
    "ett_pause",
    html=f'<label class="ett-pause" title="{MEANING}"><input type="checkbox" role="switch">'
    "<span>Pause</span></label>",
    js=script("pause.js"),
    isolate_styles=False,
)


def pause() -> None:
    """Draw the switch."""
    _mount(key=KEY, data={"paused": is_paused()}, width="content", on_paused_change=lambda: None)


def is_paused() -> bool:
    """Whether the viewer holds the page still."""
    return bool(getattr(st.session_state.get(KEY), "paused", False))
