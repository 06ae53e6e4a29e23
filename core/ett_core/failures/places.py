"""Where a line stands in a log: its number, its moment, the frames above it. Pure, linear in the log."""

from __future__ import annotations

from ett_core.failures.speakers import spoken
from ett_core.failures.stamps import STAMP_WITHIN, Calendar, Moment, stamp_of

FRAMES_READ = 8
"""Lines of a traceback above its exception that tell where it was raised."""
FRAME_BYTES = 400
OPENED = b"Traceback (most recent call last)"
STAMP_LOOK_BACK = 50
"""Lines before one without a stamp in which its stamp is looked for."""


class Moments:
    """When lines were written, asked for in their order: by their stamp, or that of the last few before.

    What is looked at for one line is not looked at again for the next.
    """

    def __init__(self, data: bytes, stamps: Calendar) -> None:
        self._data, self._stamps = data, stamps
        self._asked = -1
        self._moment: Moment | None = None
        self._age = 0
        """Lines between the stamp and the line that was asked for last."""

    def of(self, start: int, text: str) -> Moment | None:
        """The moment of the line that begins at `start`."""
        place = start
        for age in range(STAMP_LOOK_BACK):
            if (stamp := stamp_of(text)) is not None:
                return self._answer(start, self._stamps.moment(stamp), age)
            if place == 0:
                return self._answer(start, None, age)
            begin = self._data.rfind(b"\n", 0, place - 1) + 1
            if begin == self._asked:
                total = age + 1 + self._age
                return self._answer(start, self._moment if total < STAMP_LOOK_BACK else None, total)
            text = self._data[begin : min(place - 1, begin + STAMP_WITHIN * 4)].decode("utf-8", "replace")
            place = begin
        return self._answer(start, None, STAMP_LOOK_BACK)

    def _answer(self, start: int, moment: Moment | None, age: int) -> Moment | None:
        self._asked, self._moment, self._age = start, moment, age
        return moment


class LineNumbers:
    """Numbers of lines by their places, asked for in growing order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._number = data, 0, 1

    def at(self, place: int) -> int:
        """The number of the line at this place, from 1."""
        self._number += self._data.count(b"\n", self._at, place)
        self._at = place
        return self._number


def frames_above(data: bytes, start: int) -> str:
    r"""The last lines of the traceback whose exception begins at `start`; empty where there is none.

    >>> log = b"Traceback:\nFile 'a.py', line 3, in read\nvalue = read(7)\nKeyError: 7\n"
    >>> frames_above(log, log.index(b"KeyError"))
    "File 'a.py', line 3, in read\nvalue = read(7)\n"
    """
    begin = within = start
    for _ in range(FRAMES_READ):
        above = data.rfind(b"\n", max(within - 1 - FRAME_BYTES, 0), max(within - 1, 0)) + 1
        line = spoken(data[above:within].decode("utf-8", "replace"))
        if line[:1].isspace() or line.startswith("File "):
            begin = above
        elif within < begin or within == 0:
            break
        within = above
    return data[begin:start].decode("utf-8", "replace")


def frames_at_end(data: bytes) -> str:
    """The last frames of a traceback with which a log breaks off, before its exception; empty without one."""
    begin = data.rfind(OPENED, max(len(data) - FRAME_BYTES * FRAMES_READ * 4, 0))
    lines = (
        [spoken(line) for line in data[begin:].decode("utf-8", "replace").splitlines()[1:]]
        if begin >= 0
        else []
    )
    if not all(line[:1].isspace() or not line for line in lines):
        return ""
    return "\n".join(line[:FRAME_BYTES] for line in lines[-FRAMES_READ:])
