"""Reads the query API of an exporter.

One `Client` is shared by all threads of the app; each call is one bounded request, and an answer that
still stands is neither sent nor decoded again. Whatever goes
wrong on the way comes out as `ExporterError`, whose message can be shown to a person.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast
from urllib.parse import quote

import httpx
import msgspec

from ett_core.credentials import TokenSource, bearer, token_source
from ett_core.reasons import reason_of
from ett_dashboard.rows import JobDetail

DEFAULT_TIMEOUT_S = 4.0
LONGEST_ANSWER_S = 60.0
"""An answer is there by then, however busily it still comes."""
ANSWER_BYTES = 256 << 20
AS_OF_HEADER = "X-Ett-As-Of"
MOST_KNOWN = 64
"""Answers that are asked for by their tag, so that one that still stands is not sent again."""
ROW = TypeVar("ROW")
T = TypeVar("T")


class ExporterError(Exception):
    """The exporter gave no usable answer; the message says why in one sentence."""


class UnknownJobError(ExporterError):
    """The exporter answers, but knows no such job."""


class LacksError(ExporterError):
    """What is read has no answer to give, whoever asks: only the query API of an exporter has it."""


class Question(msgspec.Struct, Generic[ROW], frozen=True):
    """What is asked of the query API: an address with its parameters, and the type of the answer.

    `keep_s`: an answer that is younger than this need not be asked for again. `about`: a job that is over,
    of which the answer tells: it stands until something new comes of that job. `is_kept`: whether the answer
    is worth keeping, as it will be asked for again.
    """

    path: str
    answer: type[ROW]
    parameters: tuple[tuple[str, str], ...] = ()
    keep_s: float = 0.0
    about: str = ""
    is_kept: bool = True


class _Known(NamedTuple):
    """What was answered, and the tag under which it was."""

    tag: str
    answer: Any


class _Told(NamedTuple):
    """An answer, all of it."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes


class Api(Protocol):
    """What the pages need from an exporter."""

    def job(self, job_id: str) -> JobDetail:
        """One job in detail."""

    def ask(self, question: Question[ROW]) -> ROW:
        """The answer to any question."""


class Client:
    """The query API at `base_url`, for instance http://127.0.0.1:9410.

    Args:
        base_url: scheme, host and port of the exporter.
        timeout_s: how long to wait for a connection, and again for each part of the answer.
        transport: what carries the requests; the network where none is given.
        token: gives the token of each request; that of the environment where none is given.
        longest_bytes: bytes of an answer, unpacked; more is none.
        monotonic: a clock, for the time that an answer may take.
    """

    def __init__(  # noqa: PLR0913 - the world is injected
        self,
        base_url: str,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
        token: TokenSource | None = None,
        *,
        longest_bytes: int = ANSWER_BYTES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._longest_bytes = longest_bytes
        self._monotonic = monotonic
        self.base_url = base_url.rstrip("/")
        self._token = token or token_source()
        self._known: OrderedDict[Question[Any], _Known] = OrderedDict()
        self._lock = threading.Lock()
        self._http = httpx.Client(base_url=self.base_url, timeout=timeout_s, transport=transport)

    def job(self, job_id: str) -> JobDetail:
        """One job in detail.

        Raises:
            UnknownJobError: the exporter knows no such job.
            ExporterError: no usable answer.
        """
        return self.ask(Question(f"/api/v1/jobs/{in_path(job_id)}", JobDetail))

    def ask(self, question: Question[ROW]) -> ROW:
        """The answer to any question.

        Raises:
            UnknownJobError: the exporter knows nothing of this name.
            ExporterError: no usable answer.
        """
        known = self._known_of(question)
        told = self._get(question, known)
        if told.status_code == httpx.codes.NOT_MODIFIED and known is not None:
            return at_moment(cast("ROW", known.answer), self._moment(told))
        if told.status_code == httpx.codes.NOT_FOUND:
            raise UnknownJobError(_message(told) or f"{self.base_url} knows nothing at {question.path}")
        if told.status_code != httpx.codes.OK:
            raise ExporterError(f"{self.base_url} answers {told.status_code} {_message(told)}".rstrip())
        try:
            answer = msgspec.json.decode(told.content, type=question.answer, strict=False)
        except (ValueError, RecursionError) as error:
            raise self._strange(error) from error
        self._remember(question, told, answer)
        return answer

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def _strange(self, what: object) -> ExporterError:
        return ExporterError(f"{self.base_url} answers something else than expected: {what}")

    def _moment(self, told: _Told) -> float | None:
        """As of when an answer is, in Unix seconds; None where it does not say.

        Raises:
            ExporterError: that is no moment.
        """
        text = told.headers.get(AS_OF_HEADER)
        try:
            moment = None if text is None else float(text)
        except ValueError as error:
            raise self._strange(error) from error
        if moment is not None and not math.isfinite(moment):
            raise self._strange(f"{AS_OF_HEADER}: {text}")
        return moment

    def _get(self, question: Question[ROW], known: _Known | None) -> _Told:
        tag = {} if known is None else {"If-None-Match": known.tag}
        try:
            headers = {**bearer(self._token()), **tag}
            parameters = question.parameters or None
            with self._http.stream("GET", question.path, params=parameters, headers=headers) as answer:
                return _Told(answer.status_code, answer.headers, self._content(answer))
        except OSError as error:
            raise ExporterError(f"the token cannot be read: {reason_of(error)}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ExporterError(why(error, self.base_url)) from error

    def _content(self, answer: httpx.Response) -> bytes:
        """The body of an answer.

        Raises:
            ExporterError: it has no end.
        """
        parts: list[bytes] = []
        left, until_s = self._longest_bytes, self._monotonic() + LONGEST_ANSWER_S
        for part in answer.iter_bytes():
            parts.append(part)
            left -= len(part)
            if left < 0 or self._monotonic() > until_s:
                raise ExporterError(f"{self.base_url} answers without an end")
        return b"".join(parts)

    def _known_of(self, question: Question[ROW]) -> _Known | None:
        with self._lock:
            if question in self._known:
                self._known.move_to_end(question)
            return self._known.get(question)

    def _remember(self, question: Question[ROW], told: _Told, answer: object) -> None:
        tag = told.headers.get("etag", "")
        with self._lock:
            self._known.pop(question, None)
            if question.is_kept and tag and AS_OF_HEADER in told.headers:
                self._known[question] = _Known(tag, answer)
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)


def at_moment(answer: T, moment_s: float | None) -> T:
    """What was answered before, which still stands at a moment (Unix seconds; None: nobody knows when)."""
    if moment_s is None or not isinstance(answer, msgspec.Struct) or "as_of" not in answer.__struct_fields__:
        return answer
    return msgspec.structs.replace(answer, as_of=moment_s)


def in_path(name: str) -> str:
    """A name as part of an address; slashes stay.

    >>> in_path("a/b@1 ?")
    'a/b@1%20%3F'
    """
    return quote(name, safe="/:@~")


def why(error: Exception, base_url: str) -> str:
    """Why a request to an address failed, in a clause."""
    if isinstance(error, httpx.ConnectError):
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return f"the certificate of {base_url} is not trusted here"
        return f"nothing answers at {base_url}"
    if isinstance(error, httpx.TimeoutException):
        return f"{base_url} does not answer in time"
    if isinstance(error, httpx.TransportError):
        return f"the connection to {base_url} broke"
    return f"reading {base_url} failed: {error or type(error).__name__}"


def _message(answer: _Told) -> str:
    try:
        body = msgspec.json.decode(answer.content)
    except (ValueError, RecursionError):
        return ""
    return str(body.get("error", "")) if isinstance(body, dict) else ""
