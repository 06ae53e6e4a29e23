"""Reads the query API of an exporter.

One `Client` is shared by all threads of the app; each call is one bounded request. Whatever goes
wrong on the way comes out as `ExporterError`, whose message can be shown to a person.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from ett_core.credentials import TokenSource, bearer, token_source
from ett_dashboard.rows import JobDetail

DEFAULT_TIMEOUT_S = 4.0
ROW = TypeVar("ROW")


class ExporterError(Exception):
    """The exporter gave no usable answer; the message says why in one sentence."""


class UnknownJobError(ExporterError):
    """The exporter answers, but knows no such job."""


class Question(msgspec.Struct, Generic[ROW], frozen=True):
    """What is asked of the query API: an address with its parameters, and the type of the answer.

    `keep_s`: an answer that is younger than this need not be asked for again.
    """

    path: str
    answer: type[ROW]
    parameters: tuple[tuple[str, str], ...] = ()
    keep_s: float = 0.0


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
    """

    def __init__(
        self,
        base_url: str,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
        token: TokenSource | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._token = token or token_source()
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
        return self._read(question.path, question.answer, question.parameters)

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def _read(self, path: str, row: type[ROW], parameters: tuple[tuple[str, str], ...]) -> ROW:
        try:
            answer = self._http.get(path, params=parameters or None, headers=bearer(self._token()))
        except OSError as error:
            raise ExporterError(f"the token cannot be read: {error.strerror or error}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ExporterError(_why(error, self.base_url)) from error
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise UnknownJobError(_message(answer) or f"{self.base_url} knows nothing at {path}")
        if answer.status_code != httpx.codes.OK:
            raise ExporterError(f"{self.base_url} answers {answer.status_code} {_message(answer)}".rstrip())
        try:
            return msgspec.json.decode(answer.content, type=row, strict=False)
        except ValueError as error:
            raise ExporterError(f"{self.base_url} answers something else than expected: {error}") from error


def in_path(name: str) -> str:
    """A name as part of an address; slashes stay.

    >>> in_path("a/b@1 ?")
    'a/b@1%20%3F'
    """
    return quote(name, safe="/:@~")


def _why(error: Exception, base_url: str) -> str:
    if isinstance(error, httpx.ConnectError):
        return f"nothing answers at {base_url}"
    if isinstance(error, httpx.TimeoutException):
        return f"{base_url} does not answer in time"
    if isinstance(error, httpx.TransportError):
        return f"the connection to {base_url} broke"
    return f"reading {base_url} failed: {error or type(error).__name__}"


def _message(answer: httpx.Response) -> str:
    try:
        body = answer.json()
    except ValueError:
        return ""
    return str(body.get("error", "")) if isinstance(body, dict) else ""
