"""Clients that are slow to ask: connections on which no whole request head comes are closed.

A connection of uvicorn that has the head of a request within `HEAD_S` seconds, at its beginning
and after each answer, is left alone: the time that a body may take is the application's matter.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_S = 20.0
"""Seconds for the head of a request, counted from its first byte or from the connection."""


class PatientProtocol(HttpToolsProtocol):
    """HTTP over one connection, whose patience with half a request has an end."""

    head_s = HEAD_S
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes; the first ones of a request begin the wait for its head."""
        if self._head_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._await_head()
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is waited for."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()


def patient(head_s: float) -> type[PatientProtocol]:
    """The protocol class with a patience of `head_s` seconds."""
    return type("PatientProtocol", (PatientProtocol,), {"head_s": head_s})
