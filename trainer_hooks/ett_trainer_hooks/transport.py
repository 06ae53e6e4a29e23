"""Posts segments to an exporter over HTTP, with the standard library only.

One connection a request, made by the thread that calls; a request ends within `timeout_s` of
silence.
"""

from __future__ import annotations

import gzip
import http.client
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

SEGMENTS_PATH = "/api/v1/segments"
LONGEST_WAIT_S = 300.0
"""Whatever an exporter asks for, a sender comes back after this."""


class Reply(msgspec.Struct, frozen=True):
    """What an exporter answered. `retry_after_s`: seconds that it asked to wait, if it did."""

    status: int
    body: bytes = b""
    retry_after_s: float | None = None


class Verdict(msgspec.Struct, frozen=True):
    """The body of an answer: lines `rejected` by number, or why all of it was refused."""

    accepted: int = 0
    duplicates: int = 0
    rejected: list[RejectedLine] = []
    error: str = ""


class RejectedLine(msgspec.Struct, frozen=True):
    """A line (from 1) that no exporter will take, and why."""

    line: int
    reason: str = ""


Post = Callable[[bytes, float], Reply]
"""Sends NDJSON lines with the Unix seconds of sending; raises OSError where nobody answers."""


def poster(exporter_url: str, timeout_s: float = 10.0) -> Post:
    """A `Post` to the exporter at `exporter_url`, such as `http://127.0.0.1:9410`.

    Raises:
        ValueError: that is no http or https address.
    """
    parts = urlsplit(exporter_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"exporter address {exporter_url!r} is not of the form http://host:port")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    host, port, path = parts.hostname, parts.port, parts.path.rstrip("/") + SEGMENTS_PATH

    def post(lines: bytes, sent_at: float) -> Reply:
        began_s = time.monotonic()
        body = gzip.compress(lines, 6)
        connection = kind(host, port, timeout=timeout_s)
        try:
            connection.connect()
            connection.request("POST", path, body, _headers(sent_at + time.monotonic() - began_s))
            response = connection.getresponse()
            return Reply(response.status, response.read(), _retry_after(response.getheader("Retry-After")))
        except http.client.HTTPException as error:
            raise ConnectionError(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()

    return post


def verdict_of(reply: Reply) -> Verdict:
    """What the body of a reply says; empty where it is not of the protocol."""
    try:
        return msgspec.json.decode(reply.body, type=Verdict)
    except msgspec.DecodeError:
        return Verdict(error=reply.body[:200].decode("utf-8", "replace"))


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
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return min(seconds, LONGEST_WAIT_S) if seconds >= 0 else None
