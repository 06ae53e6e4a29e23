"""Listens to the output of a command for what may explain a failure.

Used by the launcher's main thread. It reads the files that the command writes, a bounded part at
each look, so that a flood of output never delays the notice of a death; what it skips is counted,
and stays in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ett_trainer_hooks.launcher.output.follow import CHUNK_BYTES, Lines, OpenTail
from ett_trainer_hooks.launcher.output.tails import Findings, Tails, spoken

LOOK_BYTES = 2 * CHUNK_BYTES
"""Bytes of a stream that are searched at one look."""


class Heard(msgspec.Struct, frozen=True):
    """What one look has found: every line, and those that may explain a failure."""

    lines: list[str]
    findings: list[str]


class Listener:
    """Listens to one stream, whose file is `path`, and keeps the last `keep_bytes` of each rank."""

    def __init__(self, name: str, path: Path, keep_bytes: int) -> None:
        self.name = name
        self.path = path
        self.skipped = 0
        """Bytes that were not looked at because more came than a look may take."""
        self._file = OpenTail(path)
        self._lines = Lines()
        self._findings = Findings()
        self._tails = Tails(keep_bytes)

    def listen(self, rank_of_local: Mapping[int, int], *, at_end: bool) -> Heard:
        """What came since the last call; `at_end` where nothing more will come."""
        lines = self._new_lines()
        lines += self._lines.finish() if at_end else []
        said = [spoken(line, rank_of_local) for line in lines]
        for each in said:
            self._tails.add(each)
        findings = self._findings.feed(said)
        return Heard(lines, findings + (self._findings.finish() if at_end else []))

    @property
    def heard_bytes(self) -> int:
        """Bytes of the file that were listened to, or skipped."""
        return self._file.offset

    def close(self) -> None:
        """Listen no more."""
        self._file.close()

    def take_tail(self, rank: int | None) -> str:
        """The last lines of a rank (None: of nobody in particular), once."""
        return self._tails.take(rank)

    def _new_lines(self) -> list[str]:
        if passed := self._file.skip(LOOK_BYTES):
            self.skipped += passed
            self._lines.gap()
        lines: list[str] = []
        left = LOOK_BYTES
        while left > 0 and (data := self._file.read(min(left, CHUNK_BYTES))):
            left -= len(data)
            lines += self._lines.feed(data)
        return lines


def last_bytes(path: Path, limit: int) -> str:
    """The last whole lines of a file within `limit` bytes, as text; none where it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - limit, 0))
            data = file.read(limit)
    except OSError:
        return ""
    if size > limit:
        data = data.partition(b"\n")[2] or data
    return data.decode("utf-8", "replace").rstrip("\n")
