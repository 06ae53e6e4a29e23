"""Lines that a terminal broke at its last column, made whole again. Pure, linear in the log.

Such a log has a longest line of which there are several, each going on in the line below. Nothing moves: what
stood between the parts of a line stands behind the whole of it, as carriage returns, which are no line feeds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ett_core.failures.speakers import said
from ett_core.failures.stamps import stamp_of
from ett_core.failures.unfinished import ANOTHER

COLUMNS = range(60, 401)
"""Widths of terminals."""
USUAL = (80, 100, 120, 132, 160)
"""Widths of which one broken line is enough to tell."""
LINES_AT_LEAST = 2
BYTES_AT_MOST = 6_000_000
"""A longer log was not copied from a terminal."""
STAMP_ENDS_WITHIN = 24
_ALIKE = 6
"""Characters at their beginning that lines have in common which are said one after the other."""

_DIGIT = re.compile(r"\d", re.ASCII)
_DRAWN = re.compile(r"(\W)\1{9}|[|+\u2500-\u257f]$")
"""Rules, and frames of boxes and tables."""


def rejoined(data: bytes) -> bytes:
    r"""The log with its broken lines whole; as it is, where no column can be seen at which they break.

    >>> row = "The process group has waited for rank 7 for as long as it may, and gives up: "
    >>> log = f"{row[:60]}\n{row[60:]}\n{row[3:63]}\n{row[63:]}\n".encode()
    >>> rejoined(log).replace(b"\r", b"") == f"{row}\n{row[3:]}\n".encode(), len(rejoined(log)) == len(log)
    (True, True)
    >>> rejoined(b"step 1\nstep 2\n")
    b'step 1\nstep 2\n'
    """
    if len(data) > BYTES_AT_MOST or data.count(b"\n") < LINES_AT_LEAST:
        return data
    lines = data.split(b"\n")
    if max(map(len, lines)) not in range(COLUMNS.start, 4 * COLUMNS.stop):
        return data
    told = [line.decode("utf-8", "replace") for line in lines]
    columns = max(map(len, told))
    full = [place for place, line in enumerate(told) if len(line) == columns]
    broken = {place for place in full if _goes_on(*told[place : place + 2])}
    least = 1 if columns in USUAL else LINES_AT_LEAST
    if (
        columns not in COLUMNS
        or len({told[place] for place in broken}) < least
        or len(full) > len(broken) * 4 // 3
    ):
        return data
    return b"\n".join(_whole(lines, broken))


def _whole(lines: Sequence[bytes], broken: set[int]) -> Iterator[bytes]:
    parts: list[bytes] = []
    for place, line in enumerate(lines):
        parts.append(line)
        if place not in broken:
            yield b"".join(parts) + b"\r" * (len(parts) - 1)
            parts = []


def _goes_on(line: str, below: str = "") -> bool:
    """Whether the line below may be the rest of a line that fills its columns."""
    if not below.strip() or below.startswith(("  ", "\t")) or _DRAWN.search(line):
        return False
    if _beginning(below) == _beginning(line) or ANOTHER.match(below):
        return False
    return stamp_of(below[:STAMP_ENDS_WITHIN]) is None and said(below) == below


def _beginning(line: str) -> str:
    return _DIGIT.sub("0", line[:_ALIKE])
