"""What a report is put together from: HTML, charts, and both side by side. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TypeAlias, TypeVar

import msgspec

from ett_dashboard import listing
from ett_dashboard.figures import Figure
from ett_dashboard.listing import Field
from ett_dashboard.markup import of_job, scrolled
from ett_dashboard.table import Cell


class Chart(msgspec.Struct, frozen=True):
    """A figure; `title` says what it shows, for those who cannot see it."""

    figure: Figure
    title: str


class Columns(msgspec.Struct, frozen=True):
    """Pieces side by side; `widths` are shares. On narrow screens they stand one below the other."""

    cells: Sequence[Sequence[Piece]]
    widths: Sequence[int]


T = TypeVar("T")
SHORT = 30
"""Characters that stay on one line in a table."""
Piece: TypeAlias = "str | Chart | Columns"


def rendered(pieces: Sequence[Piece]) -> tuple[str, list[Chart]]:
    """The pieces as HTML, and the charts in the order in which places for them stand there."""
    charts: list[Chart] = []
    return "".join(_piece(piece, charts) for piece in pieces), charts


def listed(title: str, fields: Sequence[Field[T]], items: Sequence[T], *, most: int = 200) -> str:
    """At most so many items as a table of that title, in the words of the app's lists."""
    head = "".join(map(_head, fields))
    rows = "".join(
        f"<tr>{''.join(map(_listed_cell, fields, row.cells))}</tr>"
        for row in listing.rows(fields, items[:most], lambda _: "")
    )
    return _framed(title, head, rows, len(items) - most)


def _head(field: Field[T]) -> str:
    return f'<th class="{_side(field)}" title="{escape(field.help)}">{escape(field.title)}</th>'


def _listed_cell(field: Field[T], cell: Cell) -> str:
    text = of_job(cell.text, 400)
    marked = f'<span class="ett-chip" style="--hue:{escape(cell.hue)}">{text}</span>' if cell.hue else text
    short = "ett-short" if len(cell.text) <= SHORT else ""
    hint = f' title="{escape(cell.hint)}"' if cell.hint else ""
    return f'<td class="{_side(field)} {short}"{hint}>{marked}</td>'


def _side(field: Field[T]) -> str:
    return "ett-number" if field.end else ""


def _framed(title: str, head: str, rows: str, left: int) -> str:
    more = f'<p class="ett-quiet">{left:,} more are left out.</p>' if left > 0 else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    table = f'<table class="ett-list">{body}</table>'
    return scrolled(table, title) + more


def _piece(piece: Piece, charts: list[Chart]) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, Chart):
        charts.append(piece)
        return f'<div class="ett-figure" data-chart="{len(charts) - 1}"><div class="ett-chart"></div></div>'
    cells = "".join(
        f'<div style="flex:{width}">{"".join(_piece(each, charts) for each in cell)}</div>'
        for cell, width in zip(piece.cells, piece.widths, strict=True)
    )
    return f'<div class="ett-columns">{cells}</div>'
