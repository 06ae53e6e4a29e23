"""The Definitions page: what every word and figure means; `?of=` puts one of them on top."""

from __future__ import annotations

import streamlit as st

from ett_dashboard import markup
from ett_dashboard.definitions import as_html, definition_of, parts
from ett_dashboard.views import address
from ett_dashboard.words import Sentence


def show() -> None:
    """Draw the page; it asks nobody anything."""
    known = parts()
    chosen = definition_of(address.asked().get("of", ""), known)
    st.html(markup.page_head("Definitions", "what every word and figure of these pages means"))
    if chosen is not None:
        how = f"{chosen.word}: {chosen.meaning.removesuffix('.')}"
        st.html(markup.said(Sentence(how, chosen.more)))
    st.html(markup.stacked(*map(as_html, known)))
