"""One read of the exporter shared by every open page.

Each thread that draws a page asks here. A reading younger than `keep_s` is handed to all; when
it is older it is read again in the background, once for all. Whoever asks waits for that, but no
longer than `patience_s` where the reading before is not much older. The last good answer stays
when the exporter cannot be reached, so that a page shows old figures, marked as old, and never none.
What only new events can change is read again only after some. At most `limit` readings are kept.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from functools import cache, partial
from typing import Any, Generic, TypeVar

import msgspec

from ett_core.credentials import token_source
from ett_dashboard.client import Api, Client, ExporterError, LacksError, Question, UnknownJobError, at_moment
from ett_dashboard.news import News
from ett_dashboard.paging import PAGE, pages
from ett_dashboard.prometheus.api import PrometheusApi
from ett_dashboard.prometheus.engine import Engine
from ett_dashboard.rows import JobDetail
from ett_dashboard.settings import Settings, of_app

T = TypeVar("T")
METRICS_KEPT_S = 5.0
"""Metrics are scraped more seldom than this: asking for them more often would tell nothing new."""


class Reading(msgspec.Struct, Generic[T], frozen=True):
    """The last good answer, when it was read, and what has gone wrong since.

    `read_at` is Unix seconds; `error` is None where the answer is fresh.
    """

    value: T | None = None
    read_at: float | None = None
    error: str | None = None
    unknown: bool = False
    """True where the exporter answers that it knows no such job."""
    lacks: bool = False
    """True where what is read has no answer to give, to nobody; `error` says what would."""


READERS = 8
PATIENCE_S = 0.1
STILL_GOOD = 3.0
"""A reading of up to so many times the age at which it is read again is shown while that takes its time."""


class _Entry:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reading: Reading[Any] = Reading()
        self.tried_at = float("-inf")
        self.renewal: Future[None] | None = None
        self.mark = 0
        """Of what the reading tells, as it was before it was read."""


class SharedReads:
    """Readings of one exporter, shared by all pages of this process."""

    def __init__(
        self,
        api: Api,
        keep_s: float,
        limit: int = 64,
        clock: Callable[[], float] = time.time,
        patience_s: float | None = None,
    ) -> None:
        """Of `api`; without `patience_s` a reading is waited for however long it takes."""
        self._patience_s = patience_s
        self._readers = ThreadPoolExecutor(READERS, "ett-read")
        self._api, self._keep_s, self._limit, self._clock = api, keep_s, limit, clock
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._news = News(api.ask)
        self._news_lock = threading.Lock()
        self._news_at, self._news_as_of = float("-inf"), 0.0

    @property
    def api(self) -> Api:
        """What is read, to be asked for what no page shares."""
        return self._api

    def job(self, job_id: str) -> Reading[JobDetail]:
        """One job, at most `keep_s` old where the exporter answers."""
        return self._read(("job", job_id), lambda: self._api.job(job_id), about=job_id)

    def ask(self, question: Question[T]) -> Reading[T]:
        """The answer to any question, at most `keep_s` old (its own, if that is longer)."""
        return self._read(question, lambda: self._api.ask(question), question.keep_s, question.about)

    def begin(self, questions: Iterable[Question[Any]], job_id: str = "") -> list[Future[None]]:
        """Have asked at the same time what is about to be asked for, of a job first; waits for none.

        What is still on its way is returned.
        """
        begun = []
        if job_id:
            entry, ask = self._entry(("job", job_id)), partial(self._api.job, job_id)
            begun.append(self._begin(entry, ask, self._keep_s, job_id))
        for question in questions:
            entry, ask_it = self._entry(question), partial(self._api.ask, question)
            begun.append(self._begin(entry, ask_it, max(question.keep_s, self._keep_s), question.about))
        return [renewal for _, renewal, _ in begun if renewal is not None]

    def soon(self, questions: Iterable[Question[Any]], job_id: str = "", within_s: float = 0.0) -> bool:
        """The same, and wait for all of it, but no longer than so; whether all is there, fresh."""
        return not wait(self.begin(questions, job_id), within_s).not_done

    def pages(self, question: Question[PAGE]) -> Iterator[PAGE]:
        """The answers to a question, page by page, read now and shared with nobody.

        Raises:
            LacksError: what is read cannot know.
            ExporterError: no usable answer.
        """
        return pages(self._api.ask, question)

    def _read(self, key: Hashable, ask: Callable[[], T], keep_s: float = 0.0, about: str = "") -> Reading[T]:
        entry, keep_s = self._entry(key), max(keep_s, self._keep_s)
        reading, renewal, since = self._begin(entry, ask, keep_s, about)
        if renewal is None:
            return reading
        now = self._clock()
        is_good = reading.read_at is not None and 0 <= now - reading.read_at < STILL_GOOD * keep_s
        with suppress(NotInTime):
            renewal.result(self._left_s(now - since) if is_good else None)
        return entry.reading

    def _begin(
        self, entry: _Entry, ask: Callable[[], Any], keep_s: float, about: str
    ) -> tuple[Reading[Any], Future[None] | None, float]:
        """Have a reading renewed that is due; the reading as it is, what renews it, and since when."""
        with entry.lock:
            now = self._clock()
            if entry.renewal is None and not 0 <= now - entry.tried_at < keep_s:
                entry.tried_at = now
                entry.renewal = self._readers.submit(self._renew, entry, ask, now, about)
            return entry.reading, entry.renewal, entry.tried_at

    def _left_s(self, waited_s: float) -> float | None:
        """How much longer what takes its time is waited for, whoever waited for it so far."""
        return None if self._patience_s is None else max(self._patience_s - max(waited_s, 0.0), 0.0)

    def _renew(self, entry: _Entry, ask: Callable[[], Any], now: float, about: str) -> None:
        reading, mark = entry.reading, entry.mark
        try:
            until = self._stands_until(entry, now, about)
            mark = self._news.mark(about)
            reading = (
                _ask(ask, reading, now) if until is None else Reading(at_moment(reading.value, until), now)
            )
        finally:
            with entry.lock:
                entry.reading, entry.mark, entry.renewal = reading, mark, None

    def _stands_until(self, entry: _Entry, now: float, about: str) -> float | None:
        """Up to when a reading is known to stand, because nothing came of what it tells; else None."""
        reading = entry.reading
        if reading.value is None or reading.error is not None:
            return None
        if not getattr(reading.value, "lasts", about):
            return None
        until = self._caught_up(now)
        return until if entry.mark == self._news.mark(about) else None

    def _caught_up(self, now: float) -> float | None:
        """Up to when it is known what is new; None where nobody tells. All readings share one question."""
        with self._news_lock:
            if not 0 <= now - self._news_at < self._keep_s:
                try:
                    self._news_as_of, self._news_at = self._news.catch_up(), now
                except ExporterError:
                    return None
            return self._news_as_of

    def _entry(self, key: Hashable) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
            return entry


@cache
def shared_reads() -> SharedReads:
    """The readings of what the environment names; half a refresh old at most, or as metrics are kept."""
    settings = of_app()
    kept_s = settings.refresh_s / 2
    if not settings.source.is_whole:
        kept_s = max(kept_s, METRICS_KEPT_S)
    return SharedReads(api_of(settings), keep_s=kept_s, patience_s=PATIENCE_S)


def api_of(settings: Settings) -> Api:
    """What the settings say is to be read.

    Raises:
        ValueError: what it is to be asked with cannot be read.
    """
    if settings.prometheus is not None:
        return PrometheusApi(Engine(settings.prometheus), settings.prometheus.matchers)
    return Client(settings.exporter_url, token=token_source(settings.token_file))


def known(reading: Reading[T]) -> T:
    """What was read.

    Raises:
        UnknownJobError: the exporter knows no such job.
        LacksError: what is read cannot know.
        ExporterError: nothing was read so far.
    """
    if reading.value is not None:
        return reading.value
    if reading.lacks:
        raise LacksError(reading.error)
    raise (UnknownJobError if reading.unknown else ExporterError)(reading.error or "nothing was read so far")


def _ask(ask: Callable[[], T], before: Reading[T], now: float) -> Reading[T]:
    try:
        return Reading(ask(), now)
    except UnknownJobError as error:
        return Reading(error=str(error), unknown=True)
    except LacksError as error:
        return Reading(error=str(error), lacks=True)
    except ExporterError as error:
        return Reading(before.value, before.read_at, str(error))
