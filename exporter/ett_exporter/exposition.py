"""/metrics: the lines of every job, of the fleet and of the exporter itself, as one answer.

Called in worker threads, never in the event loop. A job's lines are made anew when its view
is. An answer renews views for a bounded time, the oldest first, so that a scrape of very many
jobs stays quick; the `Ticker` thread goes on with that between scrapes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version

import msgspec

from ett_core.metrics import FAMILIES
from ett_exporter.chunks import Chunks, gzip_piece, gzip_stream
from ett_exporter.fleet_series import fleet_samples
from ett_exporter.job_series import job_samples
from ett_exporter.ledger import Ledger
from ett_exporter.live import JobView
from ett_exporter.negotiation import OPENMETRICS, content_type, wants_gzip
from ett_exporter.service import Service
from ett_exporter.text import EOF, JobText, Sample, Samples, head, summary

RENEW_FOR_S = 0.5
TICK_FOR_S = 0.05
TICK_EVERY_S = 0.2
"""Between scrapes a quarter of one processor, at most, goes into renewing."""
YOUNG_S = 5.0
"""Views younger than this are left to the scrapes."""

_log = logging.getLogger("ett_exporter.exposition")


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
        self._chunks = Chunks()
        self._ledger = Ledger()
        self._views: Sequence[JobView] = ()
        self._shown: dict[str, JobView] = {}
        self._made_of: dict[str, JobView] = {}
        self._left_out = 0
        self._last_s = 0.0

    def answer(self, accept: str = "", accept_encoding: str = "") -> Answer:
        """The answer to a scrape with these headers."""
        kind = content_type(accept)
        packed = wants_gzip(accept_encoding)
        began_s = self._monotonic()
        with self._lock:
            self._renew(RENEW_FOR_S)
            texts, pieces = self._parts(openmetrics=kind == OPENMETRICS, packed=packed)
            self._last_s = self._monotonic() - began_s
        if packed:
            return Answer(gzip_stream(pieces, texts), kind, "gzip")
        return Answer(texts, kind)

    def tick(self) -> None:
        """Renew some of the oldest views, where there are old ones; a scrape that is on goes first."""
        if self._lock.acquire(blocking=False):
            try:
                self._renew(TICK_FOR_S, YOUNG_S)
            finally:
                self._lock.release()

    def _renew(self, for_s: float, older_than_s: float = 0.0) -> None:
        now = self._service.clock()
        self._views = self._service.renewed_views(now, for_s, older_than_s)
        shown = {view.account.job_id: view for view in self._service.shown_views(self._views, now)}
        self._shown = shown
        self._enter(self._views)
        self._chunks.keep(shown)
        self._made_of = {job_id: view for job_id, view in self._made_of.items() if job_id in shown}
        room, self._left_out = self._service.settings.limits.series, 0
        for job_id, view in shown.items():
            series = self._series_of(job_id, view)
            if series > room:
                self._chunks.drop(job_id)
                del self._made_of[job_id]
                self._left_out += 1
                room = 0
            room -= min(series, room)

    def _enter(self, views: Sequence[JobView]) -> None:
        for view in views:
            job_id = view.account.job_id
            is_old = self._service.was_known_at_start(job_id)
            self._ledger.put(view, is_old=is_old, is_shown=job_id in self._shown)
        self._ledger.keep({view.account.job_id for view in views})

    def _series_of(self, job_id: str, view: JobView) -> int:
        """The number of a job's series, once its lines are as of `view`."""
        if self._made_of.get(job_id) is not view:
            self._made_of[job_id] = view
            self._chunks.put(job_id, list(job_samples(view)))
        return self._chunks.series_of(job_id)

    def _parts(self, *, openmetrics: bool, packed: bool) -> tuple[list[bytes], list[bytes]]:
        """The texts of an answer in their order, and where `packed` the same as pieces of a gzip stream."""
        of_jobs = self._chunks.refresh()
        others, count = JobText(), JobText()
        others.update([*fleet_samples(self._ledger), *self._own_samples()])
        count.update([Sample("ett_exporter_series", (), self._chunks.series + others.series)])
        texts: list[bytes] = []
        pieces: list[bytes] = []
        for family in FAMILIES:
            lines = others.lines.get(family, "") + count.lines.get(family, "")
            if family in of_jobs or lines:
                first = head(family, openmetrics=openmetrics) + lines.encode()
                texts += [first, *self._chunks.texts(family)]
                if packed:
                    pieces += [gzip_piece(first), *self._chunks.pieces(family)]
        end = EOF if openmetrics else b""
        return [*texts, end], [*pieces, gzip_piece(end)]

    def _own_samples(self) -> Samples:
        stats, now = self._service.stats, self._service.clock()
        yield Sample("ett_exporter_build_info", (_version(),), 1)
        yield Sample("ett_exporter_jobs", ("true",), len(self._shown) - self._left_out)
        yield Sample("ett_exporter_jobs", ("false",), self._service.job_count - len(self._shown))
        yield Sample("ett_exporter_jobs_left_out", (), self._left_out)
        yield Sample("ett_exporter_broken_jobs", (), self._service.broken_jobs)
        oldest = min((view.account.as_of for view in self._shown.values()), default=now)
        yield Sample("ett_exporter_view_age_seconds", (), max(now - oldest, 0.0))
        yield Sample("ett_exporter_scrape_seconds", (), self._last_s)
        yield Sample("ett_exporter_ingested_events_total", (), stats.events)
        yield Sample("ett_exporter_ingested_segments_total", (), stats.segments)
        yield Sample("ett_exporter_duplicate_events_total", (), stats.duplicates)
        yield Sample("ett_exporter_rejected_lines_total", (), stats.rejected_lines)
        yield Sample("ett_exporter_refused_requests_total", (), stats.refused_requests)
        yield from summary("ett_exporter_store_write_seconds", (), stats.store_writes, stats.store_write_s)


class Ticker:
    """The thread that keeps views from growing old; `stop` ends it."""

    def __init__(self, exposition: Exposition, every_s: float = TICK_EVERY_S) -> None:
        self._exposition = exposition
        self._every_s = every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ett-ticker", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the round that is on."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._every_s):
            self._round()

    def _round(self) -> None:
        try:
            self._exposition.tick()
        except Exception:  # noqa: BLE001 - the thread lives as long as the exporter
            _log.exception("a round of renewing failed; the next one tries again")


@cache
def _version() -> str:
    return version("ettwatch")
