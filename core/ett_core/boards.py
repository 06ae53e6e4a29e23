"""Names of the boards, as links between them and the app need them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

BOARD_TAG = "ettwatch"
"""The tag of every board, and of every annotation of ours."""

BOARD_OF_PAGE: Mapping[str, str] = {
    "": "fleet",
    "job": "job",
    "failures": "failures",
    "regressions": "failures",
    "caches": "caches",
    "checkpoints": "checkpoints",
    "what-if": "fleet",
}
"""The board that shows what a page of the app shows, by the path of the page."""


def board_uid(name: str) -> str:
    """The uid of a board.

    >>> board_uid("fleet")
    'ettwatch-fleet'
    """
    return f"{BOARD_TAG}-{name}"
