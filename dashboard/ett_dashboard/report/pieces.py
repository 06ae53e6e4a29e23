"""What a report is put together from: HTML, charts, and both side by side. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias, TypeVar

import msgspec
import pandas as pd
from pandas.api.types import is_numeric_dtype

from ett_dashboard import listing
from ett_dashboard.figures import Figure
from ett_dashboard.listing import Field
from ett_dashboard.markup import of_job, scrolled
from ett_dashboard.table import Cell
from ett_dashboard.words import UNKNOWN_FIGURE


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
Format: TypeAlias = Callable[[Any], str]


def rendered(pieces: Sequence[Piece]) -> tuple[str, list[Chart]]:
    """The pieces as HTML, and the charts in the order in which places for them stand there."""
    charts: list[Chart] = []
    return "".join(_piece(piece, charts) for piece in pieces), charts


def table(
    title: str, frame: pd.DataFrame, formats: Mapping[str, Format] | None = None, *, most: int = 200
) -> str:
    """A table of at most so many rows; cells are inert text, numbers stand at the right.

    `title` names it for those who cannot see it.
    """
    given = formats or {}
    head = "".join(
        f'<th class="{"ett-number" if is_numeric_dtype(frame[name]) else ""}">{escape(name)}</th>'
        for name in frame.columns
    )
    shown = [given.get(name) for name in frame.columns]
    rows = "".join(
        f"<tr>{''.join(map(_cell, row, shown))}</tr>" for row in frame.head(most).itertuples(index=False)
    )
    return _framed(title, head, rows, len(frame) - most)


def listed(title: str, fields: Sequence[Field[T]], items: Sequence[T], *, most: int = 200) -> str:
    """Items as a table of that title, in the words of the app's lists."""
    head = "".join(f'<th class="{_side(field)}">{escape(field.title)}</th>' for field in fields)
    rows = "".join(
        f"<tr>{''.join(map(_listed_cell, fields, row.cells))}</tr>"
        for row in listing.rows(fields, items[:most], lambda _: "")
    )
    return _framed(title, head, rows, len(items) - most)


def _listed_cell(field: Field[T], cell: Cell) -> str:
    text = of_job(cell.text, 400)
    marked = f'<span class="ett-chip" style="--hue:{escape(cell.hue)}">{text}</span>' if cell.hue else text
    short = "ett-short" if len(cell.text) <= SHORT else ""
    return f'<td class="{_side(field)} {short}">{marked}</td>'


def _side(field: Field[T]) -> str:
    return "ett-number" if field.end else ""


def _framed(title: str, head: str, rows: str, left: int) -> str:
    more = f'<p class="ett-quiet">{left:,} more are left out.</p>' if left > 0 else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    table = f'<table class="ett-list">{body}</table>'
    return scrolled(table, title) + more


def _cell(value: Any, shown: Format | None) -> str:  # noqa: ANN401 - a cell of a table
    number = isinstance(value, int | float)
    if value is None or (isinstance(value, float) and pd.isna(value)):
        text = UNKNOWN_FIGURE
    elif shown is not None:
        text = shown(value)
    else:
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.1f}" if number else str(value)
    return f'<td class="{"ett-number" if number else ""}">{of_job(text, 400)}</td>'


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
