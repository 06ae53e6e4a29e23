"""All rows of an answer that comes in pages, for files. Pure but for what `ask` reads.

Rows may move to a later page while pages are read, as new ones come first: a row counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Protocol, TypeVar

from msgspec.structs import replace

from ett_dashboard.client import Question

PAGE_ROWS = 2000
"""Rows asked for at once."""
ROW = TypeVar("ROW")


class Page(Protocol):
    """An answer that says where the next one begins, None at the end."""

    @property
    def next_offset(self) -> int | None:
        """How many rows to pass over for the next page."""


PAGE = TypeVar("PAGE", bound=Page)


def pages(
    ask: Callable[[Question[PAGE]], PAGE], question: Question[PAGE], rows: int = PAGE_ROWS
) -> Iterator[PAGE]:
    """The answers to a question, one page after the other; each is asked for once and not kept."""
    offset: int | None = 0
    while offset is not None:
        given = {**dict(question.parameters), "limit": str(rows), "offset": str(offset)}
        page = ask(replace(question, parameters=tuple(given.items()), is_kept=False))
        yield page
        following = page.next_offset
        offset = following if following is not None and following > offset else None


def once(rows: Iterable[ROW], identity: Callable[[ROW], Hashable]) -> list[ROW]:
    """Each row once, as it came first.

    >>> once(["a1", "b1", "a2"], lambda row: row[0])
    ['a1', 'b1']
    """
    found: dict[Hashable, ROW] = {}
    for row in rows:
        found.setdefault(identity(row), row)
    return list(found.values())
