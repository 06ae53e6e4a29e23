"""Posts segments to an exporter over HTTP, with the standard library only.

One connection a request, made by the thread that calls; a request ends within `timeout_s` of
silence, and within a minute whatever the other side sends. Of an answer a bounded part is kept.
"""

from __future__ import annotations

import gzip
import http.client
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from urllib.parse import urlsplit

import msgspec

from ett_core.credentials import TokenSource, bearer, token_source
from ett_core.redaction import without_secrets
from ett_trainer_hooks.clock import later
from ett_trainer_hooks.guard import type_and_text

CLOCK_HEADER = "X-Ett-Clock-Offset"
SEGMENTS_PATH = "/api/v1/segments"
STRANGERS_SAY = (
    http.HTTPStatus.NOT_FOUND,
    http.HTTPStatus.METHOD_NOT_ALLOWED,
    http.HTTPStatus.NOT_IMPLEMENTED,
)
"""What servers of another kind answer to a segment."""
ANSWER_BYTES = 8 << 20
"""More than an exporter says of the longest segment."""
LONGEST_POST_S = 60.0
SHOWN_CHARACTERS = 200
LONGEST_WAIT_S = 300.0
"""Whatever an exporter asks for, a sender comes back after this."""


class Reply(msgspec.Struct, frozen=True):
    """What an exporter answered.

    `retry_after_s`: seconds that it asked to wait, `received_at`: when it got the request by its own
    clock, if it said so.
    """

    status: int
    body: bytes = b""
    retry_after_s: float | None = None
    received_at: float | None = None


class Verdict(msgspec.Struct, frozen=True):
    """The body of an answer: lines `rejected` by number, or why all of it was refused.

    `accepted` is None where the answer is not one to a segment.
    """

    accepted: int | None = None
    duplicates: int = 0
    rejected: list[RejectedLine] = []
    error: str = ""


class RejectedLine(msgspec.Struct, frozen=True):
    """A line (from 1) that no exporter will take, and why."""

    line: int
    reason: str = ""


Post = Callable[[bytes, float], Reply]
"""Sends NDJSON lines with the Unix seconds of sending; raises OSError where nobody answers."""


def poster(
    exporter_url: str,
    timeout_s: float = 10.0,
    token: TokenSource | None = None,
    *,
    longest_s: float = LONGEST_POST_S,
) -> Post:
    """A `Post` to the exporter at `exporter_url`, such as `http://127.0.0.1:9410`.

    It carries the token of `token`, or of the environment. From the second request on it tells how
    far the clock here was ahead of the exporter's during the one before. It gives up after
    `timeout_s` of silence, and after `longest_s` in any case.

    Raises:
        ValueError: that is no http or https address, or the environment's token is none.
    """
    token = token or token_source()
    measured: dict[str, str] = {}
    scheme, host, port, path = _parts(exporter_url)
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    path += SEGMENTS_PATH

    def post(lines: bytes, sent_at: float) -> Reply:
        began_s = time.monotonic()
        credentials = bearer(token())
        body = gzip.compress(lines, 6)
        connection = kind(host, port, timeout=timeout_s)
        try:
            connection.connect()
            with _for_at_most(longest_s, connection.sock):
                sent_s = time.monotonic()
                sent_at += sent_s - began_s
                headers = {**_headers(sent_at), **credentials, **measured}
                measured.clear()
                connection.request("POST", path, body, headers)
                reply = _reply(connection.getresponse())
        except http.client.HTTPException as error:
            raise ConnectionError(type_and_text(error)) from error
        finally:
            connection.close()
        if reply.received_at is not None:
            took_s = time.monotonic() - sent_s
            measured[CLOCK_HEADER] = clock_offset(sent_at, took_s, reply.received_at)
        return reply

    return post


def clock_offset(sent_at: float, took_s: float, received_at: float) -> str:
    """How far the clock here is ahead, and within how much, from an exchange and the other's clock.

    >>> clock_offset(1000.0, 0.5, 990.0)
    '10.250000;within=0.250000'
    """
    return f"{sent_at + took_s / 2 - received_at:.6f};within={took_s / 2:.6f}"


def _reply(response: http.client.HTTPResponse) -> Reply:
    return Reply(
        status=response.status,
        body=response.read(ANSWER_BYTES),
        retry_after_s=_retry_after(response.getheader("Retry-After")),
        received_at=_number(response.getheader("X-Ett-Received-At")),
    )


def _for_at_most(longest_s: float, connected: socket.socket) -> AbstractContextManager[None]:
    """Cut a connection after so many seconds, however busily the other side keeps it."""

    def cut() -> None:
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    return later(longest_s, cut)


def exporter_address(exporter_url: str) -> str:
    """The address of an exporter, always written alike and without a password.

    Raises:
        ValueError: that is no http or https address.

    >>> exporter_address("http://me:secret@Host:9410/"), exporter_address("https://[::1]/ett")
    ('http://host:9410', 'https://[::1]/ett')
    """
    scheme, host, port, path = _parts(exporter_url)
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}{'' if port is None else f':{port}'}{path}"


def is_acknowledgement(reply: Reply) -> bool:
    """An exporter says that it holds the lines; a server of another kind may answer 200 as well.

    >>> is_acknowledgement(Reply(200, b'{"accepted": 3}')), is_acknowledgement(Reply(200, b"<html>"))
    (True, False)
    """
    return reply.status == http.HTTPStatus.OK and verdict_of(reply).accepted is not None


def answer_in_words(reply: Reply) -> str:
    """What an exporter answered, for a person.

    >>> answer_in_words(Reply(503, b'{"error": "the disk is full"}'))
    '503 Service Unavailable: the disk is full'
    >>> answer_in_words(Reply(404, b"<html>nothing here</html>"))
    '404 Not Found: is that an ettwatch exporter?'
    """
    status = f"{reply.status} {http.client.responses.get(reply.status, '')}".rstrip()
    if is_acknowledgement(reply):
        return status
    if reply.status < http.HTTPStatus.BAD_REQUEST or reply.status in STRANGERS_SAY:
        return f"{status}: is that an ettwatch exporter?"
    why = " ".join(without_secrets(verdict_of(reply).error[:SHOWN_CHARACTERS]).split())
    return f"{status}: {why}" if why and not why.startswith("<") else status


def verdict_of(reply: Reply) -> Verdict:
    """What the body of a reply says; empty where it is not of the protocol."""
    try:
        return msgspec.json.decode(reply.body, type=Verdict)
    except (msgspec.DecodeError, RecursionError):
        return Verdict(error=reply.body[:200].decode("utf-8", "replace"))


def _parts(exporter_url: str) -> tuple[str, str, int | None, str]:
    """Scheme, host, port and path of an address.

    Raises:
        ValueError: that is no http or https address.
    """
    problem = f"exporter address {without_secrets(exporter_url)!r} is not of the form http://host:port"
    try:
        parts = urlsplit(exporter_url)
        port = parts.port
    except ValueError as error:
        raise ValueError(problem) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(problem)
    return parts.scheme, parts.hostname, port, parts.path.rstrip("/")


def _headers(sent_at: float) -> dict[str, str]:
    return {
        "Content-Type": "application/x-ndjson",
        "Content-Encoding": "gzip",
        "X-Ett-Sent-At": f"{sent_at:.6f}",
    }


def _retry_after(text: str | None) -> float | None:
    """Seconds from a Retry-After header, at most `LONGEST_WAIT_S`.

    Its date form is not used by an exporter.

    >>> _retry_after("2"), _retry_after("inf"), _retry_after("nan"), _retry_after("soon")
    (2.0, 300.0, None, None)
    """
    seconds = _number(text)
    return None if seconds is None else min(seconds, LONGEST_WAIT_S)


def _number(text: str | None) -> float | None:
    """A number from 0 on in a header, None where it is none."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if number >= 0 else None
