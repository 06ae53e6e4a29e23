"""Lists as a table and as CSV from one description of their fields. Pure.

A `Field` says what a column holds, how it is shown and what it means; the same fields give the
cells of the table, the order of its rows and the file to take away.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import msgspec

from ett_dashboard.table import Cell, Column, Row
from ett_dashboard.words import plain

T = TypeVar("T")
Value = str | float | None
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""With these a cell of a spreadsheet may begin to compute; the last four are the wide forms of the first."""


def shown_as_text(value: Value) -> str:
    """A word from a job, inert and of bounded length."""
    return plain(str(value or ""), 60)


class Field(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One column of a list.

    `name` stands in addresses and CSV; it ends in a unit where the value has one. `value` is what
    is sorted and exported, `show` turns it to words. `hue` colours the cell as a mark, `href` makes
    it a link.
    """

    name: str
    title: str
    help: str
    value: Callable[[T], Value]
    show: Callable[[Value], str] = shown_as_text
    hue: Callable[[T], str] | None = None
    href: Callable[[T], str] | None = None
    hint: Callable[[T], str] | None = None
    share: Callable[[T], float | None] | None = None
    end: bool = True


def ordered(fields: Sequence[Field[T]], items: Iterable[T], order: str) -> list[T]:
    """The items by the field that `order` names, largest first after a "-"; as they come without one.

    Unknown values come last in both directions.
    """
    field = next((field for field in fields if field.name == order.removeprefix("-")), None)
    if field is None:
        return list(items)
    valued = [(field.value(item), item) for item in items]
    known = [pair for pair in valued if pair[0] is not None]
    known.sort(key=lambda pair: _key(pair[0]), reverse=order.startswith("-"))
    return [item for _, item in known] + [item for value, item in valued if value is None]


def columns(fields: Sequence[Field[T]], order: str, by: Callable[[str], str] | None) -> list[Column]:
    """The heads of the table; `by` gives the address of an order, None where it has but one.

    Figures sort largest first, words from A; choosing the head again turns the order round.
    """
    return [
        Column(
            title=field.title,
            help=field.help,
            end=field.end,
            href=None if by is None else by(_next_order(field, order)),
            sorted=_direction(field, order),
        )
        for field in fields
    ]


def rows(
    fields: Sequence[Field[T]], items: Iterable[T], identity: Callable[[T], str], chosen: str = ""
) -> list[Row]:
    """The rows of the table; the one whose identity is `chosen` stands out."""
    return [
        Row(identity(item), [_cell(field, item) for field in fields], chosen=identity(item) == chosen)
        for item in items
    ]


def as_csv(fields: Sequence[Field[T]], items: Iterable[T]) -> bytes:
    r"""All items with exact values; words that a spreadsheet would take for a formula are quoted.

    >>> field = Field(name="run", title="", help="", value=str)
    >>> as_csv([field], ["a", "=1+1", "\t=1+1"])
    b"run\r\na\r\n'=1+1\r\n'\t=1+1\r\n"
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([field.name for field in fields])
    writer.writerows([_inert(field.value(item)) for field in fields] for item in items)
    return out.getvalue().encode()


def _inert(value: Value) -> Value:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _key(value: Value) -> tuple[bool, Value]:
    return (isinstance(value, str), value.casefold() if isinstance(value, str) else value)


def _next_order(field: Field[T], order: str) -> str:
    first, second = (f"-{field.name}", field.name) if field.end else (field.name, f"-{field.name}")
    return second if order == first else first


def _direction(field: Field[T], order: str) -> str | None:
    return {field.name: "ascending", f"-{field.name}": "descending"}.get(order)


def _cell(field: Field[T], item: T) -> Cell:
    def told(part: Callable[[T], str] | None) -> str | None:
        return None if part is None else part(item)

    return Cell(
        field.show(field.value(item)),
        href=told(field.href),
        hue=told(field.hue),
        hint=told(field.hint),
        share=None if field.share is None else field.share(item),
    )
