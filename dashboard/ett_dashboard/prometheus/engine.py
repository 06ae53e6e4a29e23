"""One server of the query API of Prometheus over HTTP: Prometheus, VictoriaMetrics, Mimir, Thanos.

Shared by all threads of the app. Every query is one request, sent as a form because the names of many
jobs are too long for an address. A part of an answer is worse than none: servers that would leave out what
a store of theirs does not answer are told to refuse. Whatever goes wrong comes out as `ExporterError`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import httpx

from ett_core.credentials import bearer, token_source
from ett_core.reasons import reason_of
from ett_dashboard.client import ExporterError, why
from ett_dashboard.prometheus.answers import Line, Sample, matrix, refusal, vector
from ett_dashboard.prometheus.settings import TOKEN_VARIABLE, PrometheusSettings, user_and_password

TIMEOUT_S = 15.0
WHOLE: Mapping[str, str] = {
    "timeout": f"{TIMEOUT_S - 1:.0f}s",
    "partial_response": "false",
    "deny_partial_response": "1",
    "latency_offset": "1ms",
    "nocache": "1",
}
"""The first is known to all, the next is Thanos's, the others VictoriaMetrics's: those that do not know them
do not mind. Without the last two VictoriaMetrics holds back what is younger than 30 s."""
MOST_SAID = 200


class Engine:
    """The server that the settings name.

    Raises:
        ValueError: the certificates or the token cannot be read.
    """

    def __init__(self, settings: PrometheusSettings, transport: httpx.BaseTransport | None = None) -> None:
        self.url = settings.url.rstrip("/")
        self._basic_auth_file = settings.basic_auth_file
        self._token = token_source(settings.token_file, variable=TOKEN_VARIABLE)
        self._tenant = {"X-Scope-OrgID": settings.tenant} if settings.tenant else {}
        self._http = httpx.Client(
            base_url=self.url, timeout=TIMEOUT_S, transport=transport, verify=settings.trusted()
        )

    def instant(self, query: str, at: float | None = None) -> list[Sample]:
        """The vector of a query at a moment (Unix seconds), now where none is given.

        Raises:
            ExporterError: no usable answer.
        """
        moment = {} if at is None else {"time": f"{at:.3f}"}
        body = self._post("/api/v1/query", {"query": query, **moment})
        try:
            return vector(body)
        except (ValueError, RecursionError) as error:
            raise self._strange(error) from error

    def over_time(self, query: str, begin: float, end: float, step_s: float) -> list[Line]:
        """The lines of a query at `begin` and every `step_s` after it up to `end`.

        Raises:
            ExporterError: no usable answer.
        """
        span = {"start": f"{begin:.3f}", "end": f"{end:.3f}", "step": f"{step_s:.3f}"}
        body = self._post("/api/v1/query_range", {"query": query, **span})
        try:
            return matrix(body)
        except (ValueError, RecursionError) as error:
            raise self._strange(error) from error

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def _post(self, path: str, asked: Mapping[str, str]) -> bytes:
        try:
            told = self._http.post(path, data={**asked, **WHOLE}, headers=self._headers())
        except OSError as error:
            raise ExporterError(f"what it is asked with cannot be read: {reason_of(error)}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ExporterError(why(error, self.url)) from error
        if told.status_code != httpx.codes.OK:
            said = refusal(told.content)[:MOST_SAID]
            raise ExporterError(f"{self.url} answers {told.status_code} {said}".rstrip())
        return told.content

    def _headers(self) -> dict[str, str]:
        if self._basic_auth_file is None:
            return {**bearer(self._token()), **self._tenant}
        word = ":".join(user_and_password(self._basic_auth_file)).encode()
        return {"Authorization": f"Basic {base64.b64encode(word).decode()}", **self._tenant}

    def _strange(self, error: Exception) -> ExporterError:
        return ExporterError(f"{self.url} answers something else than expected: {error}")
