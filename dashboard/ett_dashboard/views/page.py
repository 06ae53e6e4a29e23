"""A page of the app, and what stands above all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import streamlit as st

from ett_dashboard import markup
from ett_dashboard.addresses import to_board
from ett_dashboard.pause import pause
from ett_dashboard.settings import of_app
from ett_dashboard.views import address, choices


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page: its name, its address relative to the app ("" for the first) and what draws it."""

    title: str
    path: str
    show: Callable[[], None]

    def as_streamlit(self) -> st.Page:
        """What Streamlit knows of it."""
        return st.Page(self.show, title=self.title, url_path=self.path, default=not self.path)


def above(pages: Sequence[Page], path: str) -> None:
    """The ways to all pages, the settings of the viewer and the switch that holds a page still."""
    with st.container(horizontal=True, vertical_alignment="center", key="above"):
        asked = address.asked()
        st.html(markup.navigation([(page.title, page.path) for page in pages], path, asked))
        source, grafana_url = of_app().source, of_app().grafana_url
        if grafana_url is not None:
            st.html(markup.board_link(to_board(grafana_url, path, asked)))
        with st.popover("Settings", type="tertiary"):
            choices.settings()
        pause()
    if not source.is_whole:
        st.html(markup.from_metrics(source.url))
