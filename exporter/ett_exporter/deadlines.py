"""Clients that are slow to ask, or never come to an end of it: their connections are closed.

A connection of uvicorn that has the head of a request within `HEAD_S` seconds, at its beginning
and after each answer, is left alone: the time that a body may take, and its size, are the application's
matter. What comes beside bodies (heads, the sizes of chunks, trailers) uvicorn keeps without a bound.
Nor does it ever give up a client that reads nothing of its answer, or a byte now and then: the answer is
held for it. Here the patience with a client that is waited for lasts `SEND_S` seconds; each second of waiting
takes one of them, and each `READ_BYTES_PER_S` bytes that it reads meanwhile give one back.
"""

from __future__ import annotations

import asyncio
from array import array
from contextlib import suppress
from fcntl import ioctl
from termios import TIOCOUTQ
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

HEAD_S = 20.0
"""Seconds for the head of a request, counted from its first byte or from the connection."""
HEAD_BYTES = 64 * 1024
"""Bytes for the head of a request; the same for what comes beside its body later."""
SEND_S = 60.0
"""Seconds in which a client that has stopped reading must read on."""
READ_BYTES_PER_S = 8 * 1024
"""A client that reads this much a second is waited for without an end."""
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
    read_bytes_per_s = READ_BYTES_PER_S
    _beside_bytes = 0
    """Bytes that came of a request beside its body and what that allows."""
    _head_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None
    _answered: RequestResponseCycle | None = None
    """The request that is being answered; others wait behind it."""
    _patience_s = 0.0
    """What is left of it, as of a moment of the loop when so much was unread."""
    _waited_at_s = 0.0
    _unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._patience_s = self.send_s
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
        self._waited_at_s, self._unread_bytes = self.loop.time(), unread_bytes(self.transport)
        self._wait_on()

    def resume_writing(self) -> None:
        """It has read on."""
        self._stop_sending()
        self._look_on()
        super().resume_writing()

    def _wait_on(self) -> None:
        self._send_timer = self.loop.call_later(self._patience_s, self._give_up_sending)

    def _give_up_sending(self) -> None:
        """The patience has come to an end, unless something was read since."""
        self._look_on()
        if self._patience_s > 0.0:
            self._wait_on()
        else:
            self.transport.abort()

    def _look_on(self) -> None:
        """Reckon what is left of the patience."""
        now_s, left_bytes = self.loop.time(), unread_bytes(self.transport)
        read_s = (self._unread_bytes - left_bytes) / self.read_bytes_per_s
        self._patience_s = min(self._patience_s - (now_s - self._waited_at_s) + read_s, self.send_s)
        self._waited_at_s, self._unread_bytes = now_s, left_bytes

    def _unsupported_upgrade_warning(self) -> None:
        """Another protocol is not spoken: the request is answered as it is, and nobody needs to know."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is waited for, nor answered: uvicorn tells so only the request that came last."""
        self._stop_waiting()
        self._stop_sending()
        if self._answered is not None:
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Begin to answer a request."""
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

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


def unread_bytes(transport: asyncio.Transport) -> int:
    """Bytes that are written to a connection and have not come to the other side, as far as is known.

    The kernel holds megabytes of them, and takes further ones only once much of it is empty: of a slow
    client the connection alone would see nothing for minutes.
    """
    held = array("i", [0])
    with suppress(OSError):
        ioctl(transport.get_extra_info("socket").fileno(), TIOCOUTQ, held)
    return int(transport.get_write_buffer_size()) + held[0]


def patient(
    head_s: float, head_bytes: int, send_s: float = SEND_S, read_bytes_per_s: int = READ_BYTES_PER_S
) -> type[PatientProtocol]:
    """The protocol class with a patience of its own."""
    own = {
        "head_s": head_s,
        "head_bytes": head_bytes,
        "send_s": send_s,
        "read_bytes_per_s": read_bytes_per_s,
    }
    return type("PatientProtocol", (PatientProtocol,), own)
