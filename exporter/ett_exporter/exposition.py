"""/metrics: the lines of every job, of the fleet and of the exporter itself, as one answer.

Called in worker threads, never in the event loop. A job's lines are made anew when its view
is. An answer renews views for a bounded time, the oldest first, so that a scrape of very many
jobs stays quick; `tick` goes on with that between scrapes, every `TICK_EVERY_S` seconds.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.metadata import version

import msgspec

from ett_core.metrics import FAMILIES
from ett_exporter.breath import breathe
from ett_exporter.chunks import gzip_piece, gzip_stream
from ett_exporter.fleet_series import fleet_samples
from ett_exporter.negotiation import OPENMETRICS, content_type, wants_gzip
from ett_exporter.service import Service
from ett_exporter.shown import Shown
from ett_exporter.text import EOF, JobText, Sample, Samples, head, summary

RENEW_FOR_S = 0.2
MEET_SHARE = 0.6
"""Of the time that a scraper waits, for the first views of jobs; the rest is for writing and sending."""
TICK_FOR_S = 0.0125
TICK_EVERY_S = 0.05
"""Between scrapes a fifth of one processor, at most, goes into renewing."""
LATE_S, LATE_TICK_FOR_S = 10.0, 0.05
"""And half of one as long as a view is older than this, or a job has none yet, as after a start."""
BLOCK_BYTES = 256 * 1024
WHOLE_BYTES = 32 * 1024
"""Parts of this size are sent as they are: to copy them costs more than another piece to send."""
YOUNG_S = 5.0
"""Views younger than this are left to the scrapes."""


class Answer(msgspec.Struct, frozen=True):
    """What is sent, in parts. `encoding` is empty or `gzip`."""

    parts: Sequence[bytes]
    content_type: str
    encoding: str = ""

    @property
    def body(self) -> bytes:
        """The parts as one."""
        return b"".join(self.parts)


class Exposition:
    """The lines of all jobs of one service, kept between scrapes; any thread may call."""

    def __init__(self, service: Service, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._shown = Shown(service.settings.limits.series)
        self._own = JobText()
        """Lines of the fleet and of the exporter itself."""
        self._number = 0
        """Of the latest view that is shown."""
        self._last_s = 0.0

    def answer(self, accept: str = "", accept_encoding: str = "", within_s: float = math.inf) -> Answer:
        """The answer to a scrape with these headers, which waits for it for `within_s` seconds.

        Jobs whose first view cannot be made in that time are left to the next answer.
        """
        kind = content_type(accept)
        packed = wants_gzip(accept_encoding)
        began_s = self._monotonic()
        with self._lock:
            waited_s = self._monotonic() - began_s
            self._renew(RENEW_FOR_S, meet_for_s=max(MEET_SHARE * within_s - waited_s, RENEW_FOR_S))
            self._let_go()
            texts, pieces = self._parts(openmetrics=kind == OPENMETRICS, packed=packed)
            self._last_s = self._monotonic() - began_s
        if packed:
            return Answer(blocks(gzip_stream(pieces, texts)), kind, "gzip")
        return Answer(blocks(texts), kind)

    def tick(self) -> None:
        """Renew some of the oldest views, where there are old ones; a scrape that is on goes first."""
        if self._lock.acquire(blocking=False):
            try:
                age_s = self._service.clock() - self._service.roster.oldest_as_of()
                self._renew(LATE_TICK_FOR_S if age_s > LATE_S else TICK_FOR_S, YOUNG_S)
            finally:
                self._lock.release()

    def _renew(self, for_s: float, older_than_s: float = 0.0, *, meet_for_s: float = 0.0) -> None:
        now, roster, shown = self._service.clock(), self._service.roster, self._shown
        roster.renew(now, for_s, older_than_s, meet_for_s=meet_for_s)
        self._number, views = roster.since(self._number)
        for view in views:
            shown.put(view)
            breathe()
        shown.fit()

    def _let_go(self) -> None:
        """Show no more the jobs that ended longer than the grace ago."""
        now = self._service.clock()
        for view in self._shown.over():
            if not self._service.is_shown(view, now):
                self._shown.drop(view.account.job_id)
        self._shown.fit()

    def _parts(self, *, openmetrics: bool, packed: bool) -> tuple[list[bytes], list[bytes]]:
        """The texts of an answer in their order, and where `packed` the same as pieces of a gzip stream."""
        of_jobs = self._shown.chunks.refresh()
        with self._service.roster.sums() as ledger:
            of_fleet = [*self._shown.states(ledger.names), *fleet_samples(ledger)]
        others = [*of_fleet, *self._own_samples()]
        series: Sample = ("ett_exporter_series", (), self._shown.chunks.series + len(others))
        own = self._own.update([*others, series])
        texts: list[bytes] = []
        pieces: list[bytes] = []
        for family, lines in zip(FAMILIES, own, strict=True):
            if family in of_jobs or lines:
                first = head(family, openmetrics=openmetrics) + lines
                texts += [first, *self._shown.chunks.texts(family)]
                if packed:
                    pieces += [gzip_piece(first), *self._shown.chunks.pieces(family)]
        end = EOF if openmetrics else b""
        return [*texts, end], [*pieces, gzip_piece(end)]

    def _own_samples(self) -> Samples:
        stats, now = self._service.stats, self._service.clock()
        yield ("ett_exporter_build_info", (_version(),), 1)
        yield ("ett_exporter_jobs", ("true",), len(self._shown) - self._shown.left_out)
        yield ("ett_exporter_jobs", ("false",), self._service.job_count - len(self._shown))
        yield ("ett_exporter_jobs_left_out", (), self._shown.left_out)
        yield ("ett_exporter_broken_jobs", (), self._service.broken_jobs)
        age_s = now - self._service.roster.oldest_as_of()
        yield ("ett_exporter_view_age_seconds", (), max(age_s, 0.0) if math.isfinite(age_s) else 0)
        yield ("ett_exporter_scrape_seconds", (), self._last_s)
        yield ("ett_exporter_ingested_events_total", (), stats.events)
        yield ("ett_exporter_ingested_segments_total", (), stats.segments)
        yield ("ett_exporter_duplicate_events_total", (), stats.duplicates)
        yield ("ett_exporter_rejected_lines_total", (), stats.rejected_lines)
        yield ("ett_exporter_refused_requests_total", (), stats.refused_requests)
        yield from summary("ett_exporter_store_write_seconds", (), stats.store_writes, stats.store_write_s)


def blocks(parts: Iterable[bytes], size: int = BLOCK_BYTES, whole: int = WHOLE_BYTES) -> list[bytes]:
    """Small parts joined to blocks of about `size` bytes: what the event loop sends costs by the piece.

    >>> blocks([b"ab", b"c", b"long", b"d", b"e", b"f", b"g"], 3, 4)
    [b'abc', b'long', b'def', b'g']
    """
    found: list[bytes] = []
    waiting: list[bytes] = []
    length = 0
    for part in parts:
        if len(part) < whole:
            waiting.append(part)
            length += len(part)
        if waiting and (length >= size or len(part) >= whole):
            found.append(b"".join(waiting))
            waiting, length = [], 0
        if len(part) >= whole:
            found.append(part)
    return [*found, b"".join(waiting)] if waiting else found


@cache
def _version() -> str:
    return version("ettwatch")
