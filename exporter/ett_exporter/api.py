"""The HTTP interface: one Starlette application over a service.

The event loop only reads bodies and sends answers; decoding, storing, folding and rendering run
in worker threads. Whatever is sent, the answer is a clear JSON error or a success. A token is
looked at before anything else of a request is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from http import HTTPStatus
from typing import TypeAlias, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from ett_exporter.endpoints import ENDPOINTS, Endpoint
from ett_exporter.errors import StoreError
from ett_exporter.exposition import Exposition
from ett_exporter.failure_reads import FailureReads
from ett_exporter.fleet_reads import FleetReads
from ett_exporter.fleet_spans import FleetSpans
from ett_exporter.history import FleetHistory
from ett_exporter.intake import Intake
from ett_exporter.lever_reads import LeverReads
from ett_exporter.negotiation import patience_s
from ett_exporter.openapi import description, page
from ett_exporter.queries import ChangesQuery, Nothing, QueryError, SpanQuery, from_pairs
from ett_exporter.reads import Reads, UnknownJobError
from ett_exporter.responses import (
    ApiError,
    Timed,
    json_response,
    on_api_error,
    on_http_error,
    on_store_error,
    tagged,
)
from ett_exporter.service import Service
from ett_exporter.tokens import EVERYTHING, Grant, Tokens

Handler: TypeAlias = Callable[[Request, Grant], Awaitable[Response]]
T = TypeVar("T", bound=msgspec.Struct)
REALM = 'Bearer realm="ettwatch"'

FRONT = """\
This is an ettwatch exporter. It answers:
  /metrics               for Prometheus
  /api/v1/jobs           every job, as JSON
  /api/v1/jobs/{job_id}  one job in full
  /api/v1/docs           every address of the API
  /api/v1/segments       takes events (POST)
  /healthz               ok
The app for people is `ett dashboard`.
"""


def make_app(
    service: Service,
    exposition: Exposition | None = None,
    tokens: Tokens | None = None,
    spans: FleetSpans | None = None,
) -> Starlette:
    """The application that serves `service`, and `exposition` on /metrics; None of `tokens` opens all.

    `spans` are the sums over jobs that somebody keeps up, if anybody does.
    """
    handlers = _Handlers(service, exposition or Exposition(service), spans).by_name()
    return Starlette(
        routes=[_route(endpoint, handlers[endpoint.name], tokens) for endpoint in ENDPOINTS],
        exception_handlers={
            HTTPException: on_http_error,
            StoreError: on_store_error,
            ApiError: on_api_error,
        },
    )


def _route(endpoint: Endpoint, handler: Handler, tokens: Tokens | None) -> Route:
    async def answer(request: Request) -> Response:
        grant = EVERYTHING
        if tokens is not None and endpoint.scope:
            grant = _grant(request, tokens, endpoint.scope)
        return await handler(request, grant)

    path = endpoint.path.replace("_id}", "_id:path}")
    return Route(path, answer, methods=[endpoint.method], name=endpoint.name)


def _grant(request: Request, tokens: Tokens, scope: str) -> Grant:
    """What the token of a request allows.

    Raises:
        ApiError: it has none, one that is unknown, or one that is not good for this.
    """
    authorization = request.headers.get("authorization", "")
    if not authorization:
        raise ApiError(401, "this needs a token: Authorization: Bearer ...", {"WWW-Authenticate": REALM})
    grant = tokens.grant_of(authorization)
    if grant is None:
        unknown = {"WWW-Authenticate": f'{REALM}, error="invalid_token"'}
        raise ApiError(401, "this token is not known here", unknown)
    if not grant.allows(scope):
        narrow = {"WWW-Authenticate": f'{REALM}, error="insufficient_scope", scope="{scope}"'}
        raise ApiError(403, f"the token {grant.name!r} is not good for {scope!r}", narrow)
    return grant


class _Handlers:
    """What answers at each address."""

    def __init__(self, service: Service, exposition: Exposition, spans: FleetSpans | None) -> None:
        self._service = service
        self._exposition = exposition
        self._reads = Reads(service)
        history = FleetHistory()
        self._all_reads = (
            self._reads,
            FleetReads(service, spans),
            FailureReads(service, history),
            LeverReads(service, history),
        )
        self._intake = Intake(service)
        self._polls = 0

    def by_name(self) -> Mapping[str, Handler]:
        """The handler of each endpoint."""
        special: dict[str, Handler] = {
            "segment": self._intake.segment,
            "events": self._intake.events,
            "changes": self._changes,
            "openapi": _openapi,
            "docs": _docs,
            "metrics": self._metrics,
            "healthz": _healthz,
            "readyz": self._readyz,
            "front": _front,
        }
        return {e.name: special.get(e.name) or self._reader(e) for e in ENDPOINTS}

    def _reader(self, endpoint: Endpoint) -> Handler:
        """Answers from the reads of the same name, in a worker thread."""
        reads = next(each for each in self._all_reads if hasattr(each, endpoint.name))
        read: Callable[..., Timed] = getattr(reads, endpoint.name)
        of_one = "{" in endpoint.path
        view = endpoint.path.rpartition("{job_id}")[2] if "{job_id}" in endpoint.path else ""

        def work(request: Request) -> Response:
            query = _query(request, endpoint.query)
            if not of_one:
                return tagged(request, _asked(read, query))
            (name,) = request.path_params.values()
            if view and self._service.knows(name + view):
                return tagged(request, _asked(self._reads.job, name + view, SpanQuery()))
            return tagged(request, _asked(read, name, query))

        async def answer(request: Request, _grant: Grant) -> Response:
            return await run_in_threadpool(work, request)

        return answer

    async def _changes(self, request: Request, _grant: Grant) -> Response:
        query = _query(request, ChangesQuery)
        if query.wait and self._polls < self._service.settings.limits.polls:
            self._polls += 1
            try:
                if not await _stays(request, self._service.changes.wait(query.since, query.wait)):
                    return Response(status_code=HTTPStatus.NO_CONTENT)
            finally:
                self._polls -= 1
        answer = await run_in_threadpool(self._reads.changes, query)
        return json_response(answer)

    async def _metrics(self, request: Request, _grant: Grant) -> Response:
        headers = request.headers
        accept, encoding = headers.get("accept", ""), headers.get("accept-encoding", "")
        within_s = patience_s(headers.get("x-prometheus-scrape-timeout-seconds", ""))
        answer = await run_in_threadpool(self._exposition.answer, accept, encoding, within_s)
        packed = {"Content-Encoding": answer.encoding} if answer.encoding else {}
        described = {"Content-Type": answer.content_type, "Vary": "Accept, Accept-Encoding"}
        length = {"Content-Length": str(sum(map(len, answer.parts)))}
        return StreamingResponse(_one_by_one(answer.parts), headers={**described, **length, **packed})

    async def _readyz(self, _request: Request, _grant: Grant) -> Response:
        if self._service.upkeep.is_ready:
            return PlainTextResponse("ready")
        return PlainTextResponse("folding jobs after the start", HTTPStatus.SERVICE_UNAVAILABLE)


async def _healthz(_request: Request, _grant: Grant) -> Response:
    return PlainTextResponse("ok")


async def _front(_request: Request, _grant: Grant) -> Response:
    return PlainTextResponse(FRONT)


async def _openapi(request: Request, _grant: Grant) -> Response:
    _query(request, Nothing)
    return json_response(description())


async def _docs(request: Request, _grant: Grant) -> Response:
    _query(request, Nothing)
    return HTMLResponse(page(description()))


async def _stays(request: Request, waiting: Coroutine[None, None, None]) -> bool:
    """Wait as long as the reader does; whether it is there at the end: one that has left takes no room."""
    waits, leaves = asyncio.ensure_future(waiting), asyncio.ensure_future(_has_left(request))
    try:
        await asyncio.wait((waits, leaves), return_when=asyncio.FIRST_COMPLETED)
        return not leaves.done()
    finally:
        waits.cancel()
        leaves.cancel()
        await asyncio.gather(waits, leaves, return_exceptions=True)


async def _has_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _query(request: Request, kind: type[T]) -> T:
    """The parameters of a request.

    Raises:
        ApiError: one of them is unknown or not understood.
    """
    try:
        return from_pairs(kind, request.query_params.multi_items())
    except QueryError as error:
        raise ApiError(400, str(error)) from error


def _asked(read: Callable[..., Timed], *parameters: object) -> Timed:
    """What a read answers.

    Raises:
        ApiError: there is no such job, or what was asked for is not to be had.
    """
    try:
        return read(*parameters)
    except UnknownJobError as error:
        raise ApiError(404, str(error.args[0])) from error
    except QueryError as error:
        raise ApiError(400, str(error)) from error


async def _one_by_one(parts: Sequence[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
