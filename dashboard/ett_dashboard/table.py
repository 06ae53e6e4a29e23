"""A table whose rows are links: mounts `assets/table.js`.

It stays in place over refreshes (focus, selected text, scroll), can be read and walked by keyboard
and screen reader, and sorts by links, so that the order is part of the address.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import streamlit as st

from ett_dashboard.theme import script

_mount = st.components.v2.component(
    "ett_table",
    html='<div class="ett-scroll" tabindex="0" role="region"><table class="ett-table"><caption></caption>'
    "<thead></thead><tbody></tbody></table></div>",
    js=script("table.js"),
    isolate_styles=False,
)


class Column(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One column: `help` is its definition, `end` aligns figures, `href` sorts by it.

    `sorted` is "ascending" or "descending" where the rows are in its order.
    """

    title: str
    help: str = ""
    end: bool = False
    href: str | None = None
    sorted: str | None = None


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a cell says; `hue` makes it a coloured mark, `share` (0 to 1) draws a bar behind it."""

    text: str
    href: str | None = None
    hue: str | None = None
    hint: str | None = None
    share: float | None = None


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row; a click anywhere in it follows its first link. `id` names it over refreshes."""

    id: str
    cells: Sequence[Cell]
    chosen: bool = False


def table(columns: Sequence[Column], rows: Sequence[Row], *, caption: str, key: str) -> None:
    """Draw a table; `caption` says what it lists, for those who cannot see it."""
    data = {"caption": caption, "columns": list(columns), "rows": list(rows)}
    _mount(key=key, data=msgspec.to_builtins(data))
