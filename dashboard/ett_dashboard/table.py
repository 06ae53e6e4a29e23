"""A table whose rows are links: mounts `assets/table.js`.

It stays in place over refreshes (focus, selected text, scroll), can be read and walked by keyboard
and screen reader, and sorts by links, so that the order is part of the address.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import msgspec
import streamlit as st

from ett_dashboard.theme import script

_mount = st.components.v2.component(
    "ett_table",
    html='<div class="ett-scroll" tabindex="0"><table class="ett-table"><caption></caption>'
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


def as_html(columns: Sequence[Column], rows: Sequence[Row], *, caption: str) -> str:
    """The same table as HTML, as `assets/table.js` builds it: for what is seen before any script runs."""
    head = "".join(_head(column) for column in columns)
    body = "".join(
        f"<tr{_class('ett-chosen' if row.chosen else '')}>{''.join(map(_cell, columns, row.cells))}</tr>"
        for row in rows
    )
    said = escape(caption)
    return (
        f'<div class="ett-scroll" tabindex="0" role="region" aria-label="{said}"><table class="ett-table">'
        f"<caption>{said}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _head(column: Column) -> str:
    order = f' aria-sort="{column.sorted}"' if column.sorted else ""
    told = Cell(column.title, href=column.href, hint=column.help)
    return f'<th scope="col"{order}{_around(column, told)}</th>'


def _cell(column: Column, cell: Cell) -> str:
    return f"<td{_around(column, cell)}</td>"


def _around(column: Column, cell: Cell) -> str:
    """What a cell of either kind has, after the name of its tag."""
    classes = "ett-end " * column.end + "ett-bar" * (cell.share is not None)
    share = "" if cell.share is None else f' style="--share:{cell.share:g}"'
    hint = f' title="{escape(cell.hint)}"' if cell.hint else ""
    hue = f' style="--hue:{escape(cell.hue)}"' if cell.hue else ""
    chip = "ett-chip" if cell.hue else ""
    text = escape(cell.text)
    if cell.href:
        way = f'href="{escape(cell.href)}" target="_self"{_class(f"ett-go {chip}")}'
        inner = f'<a {way}{hue} dir="auto">{text}</a>'
    else:
        inner = f'<span{_class(chip)}{hue} dir="auto">{text}</span>'
    return f"{_class(classes)}{share}{hint}>{inner}"


def _class(names: str) -> str:
    return f' class="{names.strip()}"' if names.strip() else ""
