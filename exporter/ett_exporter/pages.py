"""Pages of rows, as the query API gives them: pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Cut(Protocol):
    """Which rows: at most `limit`, after `offset` others."""

    @property
    def limit(self) -> int | None:
        """Rows at most; None for all."""

    @property
    def offset(self) -> int:
        """Rows to pass over."""


def page_of(rows: Sequence[T], query: Cut) -> tuple[Sequence[T], int, int | None]:
    """The rows of a page, how many there are in all, and where the next page begins."""
    end = len(rows) if query.limit is None else query.offset + query.limit
    return rows[query.offset : end], len(rows), end if end < len(rows) else None
