"""Comparing the clocks of writers with ours: `clock` events say what is new of them.

Any thread may call.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ett_core.events import AnyEvent
from ett_exporter.clocks import clock_event, is_noteworthy, moment_after
from ett_exporter.ingest import Line, Segment, by_writer
from ett_exporter.noted_clocks import NotedClock, NotedClocks, Writer
from ett_exporter.store import raw_line


class New(msgspec.Struct, frozen=True, gc=False):
    """By how much the clock of a writer is ahead, as of when, and the last event that it told."""

    offset_s: float
    at: float
    of: AnyEvent

    @property
    def noted(self) -> NotedClock:
        """It as it is remembered."""
        return NotedClock(self.offset_s, self.at)


class Noting:
    """The clocks of the writers of one exporter; `clock` is its own."""

    def __init__(self, noted: NotedClocks, clock: Callable[[], float]) -> None:
        self._noted = noted
        self._clock = clock
        self._lock = threading.Lock()
        self._writer = f"exporter-{secrets.token_hex(8)}"
        self._seqs: dict[str, int] = {}

    def news(self, some: Iterable[Sequence[Segment]], offset_s: float) -> dict[Writer, New]:
        """Of the writers of segments that came together, those of which the offset is new."""
        last = {(each.job_id, each.writer): each.lines[-1].event for of_job in some for each in of_job}
        now = self._clock()
        return {
            key: New(offset_s, moment_after(noted.at, now), last[key])
            for key, noted in self._noted.of(list(last)).items()
            if is_noteworthy(offset_s, noted.offset_s)
        }

    def segments(self, news: Mapping[Writer, New]) -> list[Segment]:
        """The events that tell it, to be kept."""
        return by_writer(map(self._line, news.values()))

    def _line(self, new: New) -> Line:
        with self._lock:
            seq = self._seqs.get(new.of.job_id, 0)
            self._seqs[new.of.job_id] = seq + 1
        event = clock_event(new.of, writer=self._writer, seq=seq, now=new.at, offset_s=new.offset_s)
        return raw_line(event)
