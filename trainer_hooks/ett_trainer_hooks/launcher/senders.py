"""Who sent which signal to the processes of a job, as far as their launcher knows."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TORCHRUN = re.compile(r"Sending process (\d{1,9}) closing signal (?:Signals\.)?SIG([A-Z]{2,8})\b")
_TORCHRUN_KILLS = re.compile(
    r"Unable to shutdown process (\d{1,9}) via .{1,40}forcefully exiting via \S{0,20}SIGKILL"
)
_CLOSING = {"TERM": 15, "INT": 2, "KILL": 9, "HUP": 1, "QUIT": 3}


class Senders:
    """What is known of signals that were sent; may be told from any thread."""

    def __init__(self) -> None:
        self._to_all: dict[int, str] = {}
        self._to: dict[tuple[int, int], str] = {}

    def sent(self, number: int, by: str, pids: Iterable[int] | None = None) -> None:
        """A signal goes to these processes, or to all that there are; to be told before it is sent."""
        if pids is None:
            self._to_all[number] = by
        else:
            self._to.update(dict.fromkeys(((number, pid) for pid in pids), by))

    def of(self, number: int | None, pid: int) -> str:
        """Who sent a process the signal that ended it; empty where that is not known."""
        if number is None:
            return ""
        return self._to.get((number, pid)) or self._to_all.get(number, "")

    def heard(self, lines: Iterable[str]) -> None:
        """Take in what torchrun's log tells of the signals that it sends to its ranks."""
        for line in lines:
            if found := _TORCHRUN.search(line):
                self.sent(_CLOSING.get(found[2], 0), "torchrun", [int(found[1])])
            elif found := _TORCHRUN_KILLS.search(line):
                self.sent(9, "torchrun", [int(found[1])])

    def clear(self) -> None:
        """Forget it all: other processes may come to have the same numbers."""
        self._to_all.clear()
        self._to.clear()
