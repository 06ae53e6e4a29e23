"""What the address of a page asks for.

The address in the browser is the one owner of every choice: links and boxes change it there
(`assets/go.js`), and then ask for the page that it names. The server never writes an address. What it
writes reaches the browser late: a run that is asked for in between, with the address of before, would be
drawn under the new one and stay, and a page that was left meanwhile would write into that of another.

A run reads the query string that it was asked with. `st.query_params` is one for all runs of a visit:
a refresh that is just beginning while a page is asked for puts the address of before into it.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

ASKED = "asked"


def begin() -> None:
    """Take what this run of a page is to draw; once, before anything is drawn."""
    run = get_script_run_ctx()
    st.session_state[ASKED] = dict(parse_qsl(run.query_string if run else ""))


def asked() -> dict[str, str]:
    """What is asked for, by name; the refreshes of a page keep to what it was drawn with."""
    return dict(st.session_state[ASKED])
