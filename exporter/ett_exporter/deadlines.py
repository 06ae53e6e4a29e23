"""Clients that are slow to ask, or never come to an end of it: their connections are closed.

A connection of uvicorn that has the head of a request within `HEAD_S` seconds, at its beginning
and after each answer, is left alone: the time that a body may take, and its size, are the application's
matter. What comes beside bodies (heads, the sizes of chunks, trailers) uvicorn keeps without a bound.
Nor does it ever give up a client that reads nothing of its answer, which is held for it.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_S = 20.0
"""Seconds for the head of a request, counted from its first byte or from the connection."""
HEAD_BYTES = 64 * 1024
"""Bytes for the head of a request; the same for what comes beside its body later."""
SEND_S = 60.0
"""Seconds in which a client that has stopped reading must read on."""
PIPELINED = 100
"""Requests of a connection that wait for the answers to those before them."""
BESIDE_A_BYTE = 8
"""Bytes that may come along with each of the body: chunks of one byte have five."""
REFUSED_HEAD = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n"
)


class PatientProtocol(HttpToolsProtocol):
    """HTTP over one connection, whose patience with half a request has an end."""

    head_s = HEAD_S
    head_bytes = HEAD_BYTES
    send_s = SEND_S
    _beside_bytes = 0
    """Bytes that came of a request beside its body and what that allows."""
    _head_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes; the first ones of a request begin the wait for its head."""
        if self._head_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._await_head()
        self._beside_bytes += len(data)
        super().data_received(data)
        if self._beside_bytes > self.head_bytes and not self.transport.is_closing():
            self._refuse()

    def on_headers_complete(self) -> None:
        """The head is there; where too many requests wait behind each other, nothing more is taken in."""
        self._stop_waiting()
        if len(self.pipeline) >= PIPELINED:
            self.transport.close()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body, which is the application's matter."""
        self._beside_bytes = max(self._beside_bytes - BESIDE_A_BYTE * len(body), 0)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is there to its end."""
        self._beside_bytes = 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client reads slower than it is answered."""
        super().pause_writing()
        self._send_timer = self.loop.call_later(self.send_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It has read on."""
        self._stop_sending()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is waited for."""
        self._stop_waiting()
        self._stop_sending()
        super().connection_lost(exc)

    def _refuse(self) -> None:
        """Too much came beside a body; there is an answer where nobody else is about to give one."""
        self._stop_waiting()
        if self.cycle is None or self.cycle.response_complete:
            text = f'{{"error":"the head of the request is larger than {self.head_bytes} bytes"}}'.encode()
            self.transport.write(REFUSED_HEAD % len(text) + text)
        self.transport.close()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_sending(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()


def patient(head_s: float, head_bytes: int, send_s: float = SEND_S) -> type[PatientProtocol]:
    """The protocol class with a patience of `head_s` and `send_s` seconds and `head_bytes` bytes."""
    own = {"head_s": head_s, "head_bytes": head_bytes, "send_s": send_s}
    return type("PatientProtocol", (PatientProtocol,), own)
