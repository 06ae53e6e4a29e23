"""Ranks whose processes stood stopped, in the words in which launchers tell of them: pure.

A launcher tells when a rank has been found stopped for a while, and when it runs again or is gone. What
it tells is evidence of its attempt, of source `stopped`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ett_core.evidence_log import STOPPED, EvidenceLine

SHORTEST_RUN = 0.1
"""A rank that was never found running is told to have run this share of the time."""
_BEGUN = re.compile(
    r"rank (\d{1,9}) \(pid \d{1,9}\) was stopped for (\d{1,9}\.\d) of the last (\d{1,9}\.\d) s: "
)
_OVER = re.compile(
    r"rank (\d{1,9}) \(pid \d{1,9}\) (runs again|is gone): "
    r"it was stopped for (\d{1,9}\.\d) of (\d{1,9}\.\d) s"
)


class Stop(NamedTuple):
    """A time in which a rank stood stopped, now and then or all the while (Unix seconds).

    `ratio`: how many times as long as without it what it did has taken. `is_held`: nobody has seen it
    running since.
    """

    rank: int
    since: float
    until: float
    ratio: float
    is_held: bool
    text: str


def begun_words(rank: int, pid: int, stopped_s: float, of_s: float) -> str:
    """That a rank is stopped.

    >>> begun_words(1, 77, 2.04, 4.1)
    'rank 1 (pid 77) was stopped for 2.0 of the last 4.1 s: by a signal or a debugger; the others wait'
    """
    how = "by a signal or a debugger; the others wait"
    return f"rank {rank} (pid {pid}) was stopped for {stopped_s:.1f} of the last {of_s:.1f} s: {how}"


def over_words(rank: int, pid: int, stopped_s: float, of_s: float, *, is_gone: bool) -> str:
    """That a rank is not stopped any more.

    >>> over_words(1, 77, 12.0, 30.0, is_gone=False)
    'rank 1 (pid 77) runs again: it was stopped for 12.0 of 30.0 s'
    """
    what = "is gone" if is_gone else "runs again"
    return f"rank {rank} (pid {pid}) {what}: it was stopped for {stopped_s:.1f} of {of_s:.1f} s"


def stops_in(lines: Iterable[EvidenceLine]) -> list[Stop]:
    """The stops that launchers tell of in one attempt, in order of time."""
    found: list[Stop] = []
    open_at: dict[int, int] = {}
    for line in sorted(line for line in lines if line.source == STOPPED):
        if begun := _BEGUN.match(line.text):
            rank, stopped_s, of_s = int(begun[1]), float(begun[2]), float(begun[3])
            open_at[rank] = len(found)
            ratio = _ratio(stopped_s, of_s)
            found.append(Stop(rank, line.time, line.time + of_s, ratio, is_held=True, text=line.text))
        elif (over := _OVER.match(line.text)) and (place := open_at.pop(int(over[1]), None)) is not None:
            ratio, is_held = _ratio(float(over[3]), float(over[4])), over[2] == "is gone"
            found[place] = found[place]._replace(until=line.time, ratio=ratio, is_held=is_held)
    return found


def _ratio(stopped_s: float, of_s: float) -> float:
    ran_s = max(of_s - stopped_s, SHORTEST_RUN * of_s)
    return of_s / ran_s if ran_s else 1.0
