"""How Grafana is reached: grafana-api behind one small adapter, with its traps closed.

It raises by status and loses what it cannot decode (an empty 204, the page of a proxy, a text that
holds "message"), follows redirects that turn a POST into a GET, and tries once. Here the answer
itself is looked at, redirects are errors, and what may be repeated is tried again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import requests
from grafana_api.grafana_api import GrafanaAPI, GrafanaException

from ett_core.credentials import TokenSource
from ett_grafana.publishing.errors import PublishError, UnreachableError, refused

TIMEOUT_S = 15.0
TRIES = 4
FIRST_PAUSE_S = 0.5
"""Between tries; doubled after each."""
LONGEST_PAUSE_S = 10.0
PASSING = frozenset({429, 500, 502, 503, 504})
"""Statuses that may be gone a moment later."""
NEVER_DONE = frozenset({429})
"""Those of them with which nothing was done."""


class Grafana:
    """One Grafana, asked with one token.

    Raises:
        ValueError: the address is none of HTTP, or holds a password.
    """

    def __init__(
        self,
        url: str,
        token: TokenSource,
        *,
        verify: bool | str = True,
        timeout_s: float = TIMEOUT_S,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`verify`: whether to check certificates, or the file of those that are trusted."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of Grafana, such as https://grafana.example")
        if parts.username or parts.password:
            raise ValueError("the address of Grafana holds a user or password; give a token instead")
        self.url = url.rstrip("/")
        self._token, self._pause = token, pause
        path = parts.path.strip("/")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self._api = GrafanaAPI(
            token(), host, parts.port, f"{path}/" if path else "", parts.scheme, verify, timeout_s
        )
        self._api.s.max_redirects = 0
        self._api.s.hooks["response"].append(self._keep)
        self._answer: requests.Response | None = None

    def find(self, path: str) -> Any:  # noqa: ANN401 - whatever the JSON says
        """What is at a path; None where nothing is.

        Raises:
            PublishError: Grafana refused, or could not be reached.
        """
        return self._ask("GET", path, may_be_missing=True)

    def get(self, path: str) -> Any:  # noqa: ANN401 - whatever the JSON says
        """What is at a path; as `find`, but an error where nothing is."""
        return self._ask("GET", path)

    def create(self, path: str, body: object) -> Any:  # noqa: ANN401 - as it says
        """POST: tried again only where it surely was not done."""
        return self._ask("POST", path, body)

    def replace(self, path: str, body: object) -> Any:  # noqa: ANN401 - as it says
        """PUT."""
        return self._ask("PUT", path, body)

    def delete(self, path: str) -> None:
        """DELETE; no matter if it is gone already."""
        self._ask("DELETE", path, may_be_missing=True)

    def _keep(self, answer: requests.Response, *_: object, **__: object) -> None:
        self._answer = answer

    def _ask(self, method: str, path: str, body: object = None, *, may_be_missing: bool = False) -> Any:  # noqa: ANN401
        passing = NEVER_DONE if method == "POST" else PASSING
        for tried in range(1, TRIES + 1):
            pause_s = min(FIRST_PAUSE_S * 2 ** (tried - 1), LONGEST_PAUSE_S)
            try:
                answer = self._once(method, path, body)
            except UnreachableError as error:
                if tried == TRIES or (method == "POST" and error.may_have_arrived):
                    raise
            else:
                if answer.status_code == HTTPStatus.NOT_FOUND and may_be_missing:
                    return None
                if answer.status_code < HTTPStatus.BAD_REQUEST:
                    return self._decoded(answer)
                if answer.status_code not in passing or tried == TRIES:
                    raise refused(self.url, method, path, answer.status_code, answer.text)
                pause_s = min(_asked_pause_s(answer) or pause_s, LONGEST_PAUSE_S)
            self._pause(pause_s)
        raise AssertionError("the last try returns or raises")

    def _once(self, method: str, path: str, body: object) -> requests.Response:
        """The answer, whatever its status: it is judged by itself, not by how grafana-api fails on it.

        Raises:
            PublishError: there is none, or it leads elsewhere.
        """
        self._answer = None
        self._api.auth.token = self._token()
        failure: Exception | None = None
        try:
            getattr(self._api, method)(path, json=body)
        except (GrafanaException, requests.RequestException, ValueError, TypeError) as error:
            failure = error
        answer: requests.Response | None = self._answer
        if answer is None:
            raise UnreachableError.of(self.url, failure) from failure
        if answer.is_redirect:
            target = answer.headers["Location"]
            raise PublishError(f"{self.url} sends every request on to {target}: give the address behind it")
        return answer

    def _decoded(self, answer: requests.Response) -> Any:  # noqa: ANN401 - whatever the JSON says
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError as error:
            raise PublishError(
                f"{self.url} answered with something else than JSON: is it the address of a Grafana, "
                "and does nothing in front of it ask for a login?"
            ) from error


def _asked_pause_s(answer: requests.Response) -> float | None:
    """For how long an answer asks to be left alone; None where it does not say in seconds."""
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isdecimal() else None
