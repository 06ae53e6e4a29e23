"""How a process means to end: the status that it gave to `sys.exit`, and what that is as an exit code."""

from __future__ import annotations

from typing import NamedTuple


class Exit(NamedTuple):
    """A status to exit with, and what the program had undertaken when it was given."""

    status: object
    undertakings: int
    step: int


def exit_code_of(status: object) -> int:
    """The exit code of a process that ends with this status for `sys.exit`.

    >>> exit_code_of(None), exit_code_of(3), exit_code_of(-1), exit_code_of("no data")
    (0, 3, 255, 1)
    """
    if status is None:
        return 0
    return status & 0xFF if isinstance(status, int) else 1
