"""Answers of the HTTP interface: JSON, errors as sentences, entity tags."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from http import HTTPStatus
from typing import TypeAlias

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ett_exporter.answer_types import Answer, Problem
from ett_exporter.cache_types import JobCaches
from ett_exporter.errors import StoreError
from ett_exporter.failure_types import FailureDetail
from ett_exporter.job_types import Job

Timed: TypeAlias = Answer | Job | JobCaches | FailureDetail
"""Answers that tell their moment."""

RETRY_AFTER_S = 2
AS_OF_HEADER = "X-Ett-As-Of"
"""The moment for which an answer holds, Unix seconds."""
WAITS = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
"""Statuses that waiting cures."""


class ApiError(Exception):
    """A request is answered with an error: its status, a sentence, headers."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers


def json_response(answer: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer as JSON."""
    return Response(msgspec.json.encode(answer), status, headers, media_type="application/json")


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error as JSON; with `Retry-After` where waiting cures it."""
    again = {"Retry-After": str(RETRY_AFTER_S)} if status in WAITS else {}
    return json_response(Problem(sentence), status, {**again, **(headers or {})})


def tagged(request: Request, answer: Timed) -> Response:
    """An answer with its entity tag; 304 without a body where the reader has it already.

    The tag covers everything but `as_of`, the moment of the answer, which a header tells in both cases.
    """
    timeless = msgspec.json.encode(msgspec.structs.replace(answer, as_of=0.0))
    tag = f'W/"{blake2b(timeless, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache", AS_OF_HEADER: repr(answer.as_of)}
    if _matches(request.headers.get("if-none-match", ""), tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return json_response(answer, 200, headers)


def _matches(if_none_match: str, tag: str) -> bool:
    """Whether an `If-None-Match` header names a tag; weak and strong ones compare alike."""
    given = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return tag.removeprefix("W/") in given or given == ["*"]


def on_api_error(_request: Request, error: Exception) -> Response:
    """The answer to an `ApiError`."""
    assert isinstance(error, ApiError)  # noqa: S101 - registered for this class only
    return problem(error.status, str(error), error.headers)


def on_http_error(request: Request, error: Exception) -> Response:
    """The answer to what the routing refuses."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
    return problem(error.status_code, _sentence(request, error), error.headers)


def on_store_error(_request: Request, error: Exception) -> Response:
    """The answer while the store cannot be read."""
    assert isinstance(error, StoreError)  # noqa: S101 - registered for this class only
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error))


def _sentence(request: Request, error: HTTPException) -> str:
    path = request.url.path[:128]
    if error.status_code == HTTPStatus.NOT_FOUND:
        return f"There is nothing at {path!r} here; / says what there is."
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "other methods")
        return f"{path!r} takes {allowed}, not {request.method[:32]}."
    return error.detail
