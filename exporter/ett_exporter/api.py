"""The HTTP interface: one Starlette application over a service.

The event loop only reads bodies and sends answers; decoding, storing, folding and rendering run
in worker threads. Whatever is sent, the answer is a clear JSON error or a success.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from ett_exporter.answers import jobs_answer, page_answer
from ett_exporter.clocks import parse_sent_at
from ett_exporter.errors import StoreError
from ett_exporter.exposition import Exposition
from ett_exporter.ingest import RefusedError, TooLargeError, decompress
from ett_exporter.service import BusyError, Service

SENT_AT_HEADER = "x-ett-sent-at"
RETRY_AFTER_S = 2


FRONT = """\
This is an ettwatch exporter. It answers:
  /metrics               for Prometheus
  /api/v1/jobs           every job, as JSON
  /api/v1/jobs/{job_id}  one job in full
  /api/v1/segments       takes events (POST)
  /healthz               ok, once it listens
  /readyz                ready, once every job is folded; 503 before
The app for people is `ett dashboard`.
"""


def make_app(service: Service, exposition: Exposition | None = None) -> Starlette:
    """The application that serves `service`, and `exposition` on /metrics."""
    api = _Api(service, exposition or Exposition(service))
    return Starlette(
        routes=[
            Route("/", _front),
            Route("/api/v1/segments", api.take_segment, methods=["POST"]),
            Route("/api/v1/jobs", api.jobs),
            Route("/api/v1/jobs/{job_id:path}", api.job),
            Route("/metrics", api.metrics),
            Route("/healthz", _healthz),
            Route("/readyz", api.readyz),
        ],
        exception_handlers={HTTPException: _http_error, StoreError: _store_error},
    )


class _Api:
    def __init__(self, service: Service, exposition: Exposition) -> None:
        self._service = service
        self._exposition = exposition
        self._in_progress = 0

    async def take_segment(self, request: Request) -> Response:
        offset_s = self._clock_offset_s(request)
        if self._in_progress >= self._service.settings.limits.concurrent_segments:
            return self._refuse(503, "too many segments at once")
        self._in_progress += 1
        try:
            return await self._take(request, offset_s)
        except RefusedError as error:
            return self._refuse(error.status, str(error))
        except ClientDisconnect:
            return self._refuse(400, "the sender left before the end of the body")
        except (BusyError, StoreError) as error:
            return self._refuse(503, str(error))
        finally:
            self._in_progress -= 1

    def jobs(self, _request: Request) -> Response:
        now = self._service.clock()
        return _json(jobs_answer(self._service.views(now), now))

    def job(self, request: Request) -> Response:
        job_id = request.path_params["job_id"]
        try:
            begin, end = (_moment(request, name) for name in ("begin", "end"))
        except ValueError as error:
            return _json({"error": str(error)}, 400)
        page = self._service.page(job_id, self._service.clock(), begin, end)
        if page is None:
            return _json({"error": f"no job {job_id[:128]!r} is known here"}, 404)
        return _json(page_answer(page))

    def readyz(self, _request: Request) -> Response:
        if self._service.is_ready:
            return PlainTextResponse("ready")
        return PlainTextResponse("folding the jobs of the database", 503, {"Retry-After": str(RETRY_AFTER_S)})

    def metrics(self, request: Request) -> Response:
        headers = request.headers
        answer = self._exposition.answer(headers.get("accept", ""), headers.get("accept-encoding", ""))
        encoding = {"Content-Encoding": answer.encoding} if answer.encoding else {}
        described = {"Content-Type": answer.content_type, "Vary": "Accept, Accept-Encoding"}
        length = {"Content-Length": str(sum(map(len, answer.parts)))}
        return StreamingResponse(_one_by_one(answer.parts), headers={**described, **length, **encoding})

    async def _take(self, request: Request, offset_s: float | None) -> Response:
        limits = self._service.settings.limits
        encoding = request.headers.get("content-encoding", "").strip().lower()
        body = await _read_body(request, limits.body_bytes)

        def work() -> Response:
            return _json(self._service.ingest(decompress(body, encoding, limits), offset_s))

        return await run_in_threadpool(work)

    def _clock_offset_s(self, request: Request) -> float | None:
        sent_at = parse_sent_at(request.headers.get(SENT_AT_HEADER))
        return None if sent_at is None else sent_at - self._service.clock()

    def _refuse(self, status: int, error: str) -> Response:
        self._service.count_refused()
        again = {"Retry-After": str(RETRY_AFTER_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
        return _json({"error": error}, status, again)


async def _one_by_one(parts: Sequence[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def _read_body(request: Request, limit_bytes: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit_bytes:
            raise TooLargeError(f"the body is larger than {limit_bytes} bytes")
        parts.append(part)
    return b"".join(parts)


def _moment(request: Request, name: str) -> float | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        moment = float(text)
    except ValueError:
        moment = math.nan
    if not abs(moment) < 1e11:  # noqa: PLR2004 - the range of times in events
        raise ValueError(f"{name} is not a time in Unix seconds")
    return moment


def _json(answer: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(answer), status, headers, media_type="application/json")


def _front(_request: Request) -> Response:
    return PlainTextResponse(FRONT)


def _healthz(_request: Request) -> Response:
    return PlainTextResponse("ok")


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
    return _json({"error": _sentence(request, error)}, error.status_code, error.headers)


def _sentence(request: Request, error: HTTPException) -> str:
    path = request.url.path[:128]
    if error.status_code == HTTPStatus.NOT_FOUND:
        return f"There is nothing at {path!r} here; / says what there is."
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "other methods")
        return f"{path!r} takes {allowed}, not {request.method[:32]}."
    return error.detail


def _store_error(_request: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, 503, {"Retry-After": str(RETRY_AFTER_S)})
