"""What one row of the classifier's tables is: a text to look for and what it means.

A row is tried only on lines that hold one of its needles, which plain search finds in linear
time; its pattern then decides on a line of bounded length.
"""

from __future__ import annotations

import re

import msgspec

ROOT = "root"
CASCADE = "cascade"
TEARDOWN = "teardown"
WARNING = "warning"
CONTEXT = "context"
ROLES = (ROOT, CASCADE, TEARDOWN, WARNING, CONTEXT)
"""`root` may explain an attempt, `cascade` follows from something elsewhere, `teardown` is clean-up,
`warning` ends nothing, `context` (a save began, a compilation began) matters only beside others."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A line that holds one of `needles` and matches `pattern` is evidence of `failure_class`."""

    failure_class: str
    needles: tuple[str, ...]
    """Lower-case texts of which the line holds at least one."""
    pattern: str = ""
    """Searched anywhere in the line, case ignored; empty where the needle says enough."""
    example: str
    counter_example: str
    """A line that looks alike and does not mean this."""
    role: str = ROOT
    certain: bool = False
    """True where labelled logs bear it out, or who speaks did it; of a cascade: it explains a stop."""
    weak: bool = False
    """True where any better evidence goes before it, whenever it came."""
    vague: bool = False
    """True where the same traceback may say it better."""
    broad: bool = False
    """True where the pattern names the library that spoke and not what happened: what the line says may."""
    at_warning: bool = False
    """True where the line counts although its logger calls it a warning."""

    def matches(self, line: str) -> bool:
        """Whether a line that holds a needle is evidence of this row."""
        return not self.pattern or re.search(self.pattern, line, re.IGNORECASE | re.ASCII) is not None

    def finds(self, line: str) -> bool:
        """Whether a line holds a needle and is evidence of this row."""
        low = line.lower()
        return any(needle in low for needle in self.needles) and self.matches(line)
