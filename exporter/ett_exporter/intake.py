"""Taking in events over HTTP: reading bodies with bounds in size and time, and turns for the work.

The event loop reads bodies; decoding, storing and folding run in worker threads of their own, so
that readers of the API never wait for senders. Whatever is sent, the answer is a clear JSON
error or a success.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Protocol

import anyio
from anyio.to_thread import run_sync
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ett_exporter.clocks import Sent, parse_measured, parse_sent_at
from ett_exporter.errors import StoreError, UnfitError
from ett_exporter.freeing import give_back
from ett_exporter.ingest import COPIES, RefusedError, TooLargeError, decompress, memory_of
from ett_exporter.jobs import BusyError
from ett_exporter.responses import json_response, problem
from ett_exporter.service import Accepted, Service
from ett_exporter.tokens import Grant
from ett_exporter.turns import CrowdedError, Room, Turns

SENT_AT_HEADER = "x-ett-sent-at"
CLOCK_OFFSET_HEADER = "x-ett-clock-offset"
RECEIVED_AT_HEADER = "X-Ett-Received-At"
CLOSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
"""After these the rest of a body may still be on its way: the connection is of no more use."""

OVER_AFTER_S = 60.0
"""A store that took everything for so long works again: the next failure is told as well."""

_log = logging.getLogger("ett_exporter.intake")


class Take(Protocol):
    """What becomes of the text of a body."""

    def __call__(self, text: bytes, clock_offset_s: float | None, grant: Grant) -> Accepted:
        """Take it in."""


class SlowError(RefusedError):
    """The body did not come in time."""

    status = 408


class FullError(RefusedError):
    """The bodies that are being read take all the room there is."""

    status = 503


class Intake:
    """The addresses that take in events; used by one event loop."""

    def __init__(self, service: Service, monotonic: Callable[[], float] = time.monotonic) -> None:
        limits = service.settings.limits
        self._service = service
        self._limits = limits
        self._threads: anyio.CapacityLimiter | None = None
        self._unread_bytes = 0
        self._monotonic = monotonic
        self._failed_s = -math.inf
        """When a segment was refused last for want of room or because of the store."""
        self._store_failed_s = -math.inf
        """The same of the store alone: who waits for a turn meanwhile is refused as well."""
        self._turns = Turns(
            Room(
                at_once=limits.concurrent_segments,
                waiting=limits.waiting_segments,
                waiting_of_sender=limits.waiting_of_sender,
            )
        )
        self._turns_of_large = Turns(
            Room(
                at_once=limits.concurrent_large,
                waiting=limits.waiting_large,
                waiting_of_sender=limits.waiting_large_of_sender,
            )
        )

    async def segment(self, request: Request, grant: Grant) -> Response:
        """Lines of one writer."""
        return await self._answer(request, grant, self._service.ingest, _as_they_are)

    async def events(self, request: Request, grant: Grant) -> Response:
        """Lines of any writers."""
        return await self._answer(request, grant, self._service.ingest_events, _unprocessable)

    async def _answer(
        self, request: Request, grant: Grant, take: Take, status_of: Callable[[Accepted], int]
    ) -> Response:
        received_at = self._service.clock()
        try:
            accepted = await self._take(request, grant, take, received_at)
        except RefusedError as error:
            return self._refuse(error.status, str(error))
        except ClientDisconnect:
            return self._refuse(HTTPStatus.BAD_REQUEST, "the sender left before the end of the body")
        except CrowdedError as error:
            return self._refuse(429 if error.of_sender else 503, str(error))
        except (BusyError, StoreError) as error:
            self._tell(error)
            return self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        headers = {RECEIVED_AT_HEADER: f"{received_at:.6f}"}
        return json_response(accepted, status_of(accepted), headers)

    async def _take(self, request: Request, grant: Grant, take: Take, received_at: float) -> Accepted:
        encoding = request.headers.get("content-encoding", "").strip().lower()
        offset_s = _clock_offset_s(request, received_at)
        body = await self._read(request)
        sender, asked_s = _sender(request, grant), self._monotonic()

        def small() -> Accepted | None:
            text = self._small_text(body, encoding)
            return None if text is None else take(text, offset_s, grant)

        def large() -> Accepted:
            return take(self._large_text(body, encoding), offset_s, grant)

        try:
            async with self._turns.turn(sender):
                self._check_store(asked_s)
                accepted = await self._in_thread(partial(_outcome, small))
            if accepted is None:
                async with self._turns_of_large.turn(sender):
                    self._check_store(asked_s)
                    if await request.is_disconnected():
                        raise ClientDisconnect
                    accepted = await self._in_thread(partial(_outcome_of_large, large))
            assert accepted is not None  # noqa: S101 - a body that is not small is large
            return accepted
        finally:
            self._unread_bytes -= len(body)

    def _check_store(self, asked_s: float) -> None:
        """Nobody who waited meanwhile tries what has just failed.

        Raises:
            StoreError: the store took nothing since a moment of the monotonic clock.
        """
        if self._store_failed_s > asked_s:
            raise StoreError("the database took nothing of what came before")

    def _small_text(self, body: bytes, encoding: str) -> bytes | None:
        """The text of a body; None where it is no small one, which shows only as it is unpacked."""
        try:
            text = decompress(body, encoding, self._limits.small_bytes // COPIES)
        except TooLargeError:
            return None
        return text if memory_of(text) <= self._limits.small_bytes else None

    def _large_text(self, body: bytes, encoding: str) -> bytes:
        """The text of a body, from its beginning.

        Raises:
            TooLargeError: it is larger than any may be.
        """
        text = decompress(body, encoding, self._limits.segment_bytes)
        if memory_of(text) > self._limits.segment_memory_bytes:
            raise TooLargeError("the lines hold too many values: send fewer of them at once")
        return text

    async def _read(self, request: Request) -> bytes:
        """The body; its bytes count as unread."""
        parts: list[bytes] = []
        size = 0
        self._check_room(_declared_bytes(request))
        try:
            with anyio.fail_after(self._limits.body_s):
                async for part in request.stream():
                    size += len(part)
                    self._unread_bytes += len(part)
                    parts.append(part)
                    self._check_room(size)
        except BaseException as error:
            self._unread_bytes -= size
            if isinstance(error, TimeoutError):
                raise SlowError(f"the body did not come within {self._limits.body_s:g} s") from error
            raise
        return b"".join(parts)

    def _check_room(self, size: int) -> None:
        if size > self._limits.body_bytes:
            raise TooLargeError(f"the body is larger than {self._limits.body_bytes} bytes")
        if self._unread_bytes > self._limits.unread_bytes:
            raise FullError("too many bytes are being read at once")

    async def _in_thread(self, work: Callable[[], Accepted | Exception | None]) -> Accepted | None:
        """What `work` gives in a thread of its own; an error that it gives is raised."""
        if self._threads is None:
            most = self._limits.concurrent_segments + self._limits.concurrent_large
            self._threads = anyio.CapacityLimiter(most)
        outcome = await run_sync(work, limiter=self._threads)
        if isinstance(outcome, Exception):
            try:
                raise outcome
            finally:
                del outcome
        return outcome

    def _tell(self, error: Exception) -> None:
        """Tell the log that nothing is taken in; once, until that was not so for a while."""
        now_s = self._monotonic()
        if now_s - self._failed_s > OVER_AFTER_S:
            _log.warning("segments are refused, their senders try again: %s", error)
        self._failed_s = now_s
        if isinstance(error, StoreError) and not isinstance(error, UnfitError):
            self._store_failed_s = now_s

    def _refuse(self, status: int, sentence: str) -> Response:
        self._service.count_refused()
        closing = {"Connection": "close"} if status in CLOSING else None
        return problem(status, sentence, closing)


def _outcome_of_large(work: Callable[[], Accepted]) -> Accepted | Exception | None:
    try:
        return _outcome(work)
    finally:
        give_back()


def _outcome(work: Callable[[], Accepted | None]) -> Accepted | Exception | None:
    """What `work` gives, or which of the expected errors it raises, as a value.

    One that is raised in one thread and caught in another is part of a cycle with all that its frames
    hold, such as a whole text, which stays until somebody looks for it.
    """
    try:
        return work()
    except (RefusedError, BusyError, StoreError) as error:
        each: BaseException | None = error
        while each is not None:
            each.__traceback__ = None
            each = each.__cause__ or each.__context__
        return error


def _as_they_are(_accepted: Accepted) -> int:
    """A segment is read, whatever its lines are: its sender goes on behind it."""
    return HTTPStatus.OK


def _unprocessable(accepted: Accepted) -> int:
    """A person or script that sends no event at all learns so from the status."""
    is_nothing = accepted.rejected_total and not accepted.accepted and not accepted.duplicates
    return HTTPStatus.UNPROCESSABLE_ENTITY if is_nothing else HTTPStatus.OK


def _declared_bytes(request: Request) -> int:
    """How long the body is, as its head says; 0 where it does not."""
    declared = request.headers.get("content-length", "")
    return int(declared) if declared.isascii() and declared.isdigit() else 0


def _sender(request: Request, grant: Grant) -> str:
    """Who sends: the token, else the address."""
    if grant.name:
        return f"token {grant.name}"
    return request.client.host if request.client else ""


def _clock_offset_s(request: Request, received_at: float) -> float | None:
    sent_at = parse_sent_at(request.headers.get(SENT_AT_HEADER))
    if sent_at is None:
        return None
    measured = parse_measured(request.headers.get(CLOCK_OFFSET_HEADER))
    return Sent(sent_at - received_at, measured).offset_s
