"""Where a line stands in a log: its number, its moment, the frames above it. Pure, linear in the log."""

from __future__ import annotations

import re

from ett_core.failures.stamps import STAMP_WITHIN, Calendar, Moment, stamp_of

FRAMES_READ = 8
"""Lines of a traceback above its exception that tell where it was raised."""
FRAME_BYTES = 400
_FRAME = re.compile(rb"^(?:\[\w{1,12}\]:? ?|\(\w{1,20}[^)]{0,60}\) )?\s{2,}\S", re.ASCII)
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
    """The last lines of the traceback whose exception begins at `start`; empty where there is none."""
    begin = start
    for _ in range(FRAMES_READ):
        above = data.rfind(b"\n", max(begin - 1 - FRAME_BYTES, 0), max(begin - 1, 0)) + 1
        if not _FRAME.match(data[above:begin]):
            break
        begin = above
    return data[begin:start].decode("utf-8", "replace")
