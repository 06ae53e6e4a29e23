"""Turns: how many requests work at once, and whose is next.

Used by the coroutines of one event loop. Senders take turns: while many wait, each gets as many
as the others, however many requests it has brought; alone, a sender may have all of them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec


class CrowdedError(RuntimeError):
    """Too many requests wait already; `of_sender` tells whether they are this sender's own."""

    def __init__(self, message: str, *, of_sender: bool) -> None:
        super().__init__(message)
        self.of_sender = of_sender


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """How many may work at once, and wait: altogether, and of one sender."""

    at_once: int
    waiting: int
    waiting_of_sender: int


class Turns:
    """Gives turns to requests by their senders."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._free = room.at_once
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._count = 0

    @asynccontextmanager
    async def turn(self, sender: str) -> AsyncIterator[None]:
        """Hold a turn.

        Raises:
            CrowdedError: too many wait for one.
        """
        await self._take(sender)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, sender: str) -> None:
        if self._free and not self._count:
            self._free -= 1
            return
        own = self._waiting.get(sender, ())
        if len(own) >= self._room.waiting_of_sender:
            raise CrowdedError(f"{len(own)} requests of this sender are waiting already", of_sender=True)
        if self._count >= self._room.waiting:
            raise CrowdedError(f"{self._count} requests are waiting already", of_sender=False)
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(sender, deque()).append(ticket)
        self._count += 1
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():
                self._give_back()
            raise

    def _give_back(self) -> None:
        """Let the next one in: the first request of the sender whose last turn was longest ago."""
        self._free += 1
        while self._free and self._waiting:
            sender, tickets = next(iter(self._waiting.items()))
            ticket = tickets.popleft()
            self._count -= 1
            del self._waiting[sender]
            if tickets:
                self._waiting[sender] = tickets
            if not ticket.cancelled():
                self._free -= 1
                ticket.set_result(None)
