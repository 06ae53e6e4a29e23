"""Serving one exporter from this process until it is told to stop.

The main thread runs the event loop (uvloop), requests work in threads; further threads follow
watched journals and other replicas, fold the jobs that the store holds, and keep views and sums up.
SIGTERM and SIGINT let running requests finish, then close the store.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from types import FrameType

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ett_core.reasons import listening_reason
from ett_exporter.api import make_app
from ett_exporter.collecting import LOOK_EVERY_S, Collector
from ett_exporter.deadlines import patient
from ett_exporter.errors import TakenError
from ett_exporter.exposition import TICK_EVERY_S, Exposition
from ett_exporter.fleet_spans import KEEP_UP_EVERY_S, FleetSpans
from ett_exporter.keeper import Keeper
from ett_exporter.repeated import Repeated
from ett_exporter.responses import problem
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import Store
from ett_exporter.tokens import Tokens, read
from ett_exporter.watch import Watcher

BACKLOG = 1024
SHUTDOWN_S = 5


class ServeError(RuntimeError):
    """The address cannot be listened on; the message says why."""


def serve(settings: Settings, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `on_ready` is given the URL once requests are answered.

    Raises:
        ServeError: the address cannot be listened on.
        TokensError: the file of tokens cannot be used.
        StoreError: the database cannot be opened; `TakenError`: another exporter has taken it over.
    """
    tokens = tokens_of(settings)
    with _listening(settings) as listener, _service(settings) as service:
        exposition, spans = Exposition(service), FleetSpans(service)
        server = _Server(_config(service, make_app(service, exposition, tokens, spans)), service)
        _stop_on_signals(server)
        renewing = Repeated("renewing", exposition.tick, TICK_EVERY_S)
        keeping_up = Repeated("sums", spans.keep_up, KEEP_UP_EVERY_S)
        collector = Repeated("collector", Collector().look, LOOK_EVERY_S)
        with renewing, keeping_up, collector:
            on_ready(url_of(listener))
            server.run(sockets=[listener])
        if taken := service.store.transactions.taken:
            raise TakenError(taken)


def url_of(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        raise ServeError(
            f"cannot listen on {settings.host}:{settings.port}: {listening_reason(error)}"
        ) from error
    with listener:
        yield listener


@contextmanager
def _service(settings: Settings) -> Iterator[Service]:
    with closing(Store(settings.database, settings.shard)) as store:
        service = Service(store, settings)
        watcher = Watcher(service, settings.watch, settings.watch_interval_s)
        keeper = Keeper(service)
        watcher.start()
        keeper.start()
        try:
            yield service
        finally:
            watcher.stop()
            keeper.stop()


class _Server(uvicorn.Server):
    """uvicorn, which at its end lets go first who waits for changes, and ends when others have its jobs."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def on_tick(self, counter: int) -> bool:
        """Whether to end: asked ten times a second."""
        return bool(self._service.store.transactions.taken) or await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let running requests finish."""
        self._service.changes.close()
        await super().shutdown(sockets)


def leaving(app: ASGIApp) -> ASGIApp:
    """`app`, whose requests that the end of the server cuts off are answered 503: uvicorn cancels those.

    An answer that is under way ends early. What was being stored is stored; sent again it counts once.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await app(scope, receive, noted)
        except asyncio.CancelledError:
            if not has_begun:
                stopping = problem(HTTPStatus.SERVICE_UNAVAILABLE, "the exporter is stopping; try again")
                await stopping(scope, receive, send)

    return answer


def tokens_of(settings: Settings) -> Tokens | None:
    """The tokens of the file that is set; None without one."""
    return None if settings.tokens is None else read(settings.tokens)


def _config(service: Service, app: ASGIApp) -> uvicorn.Config:
    limits = service.settings.limits
    return uvicorn.Config(
        leaving(app),
        loop="uvloop",
        http=patient(limits.head_s, limits.head_bytes, limits.send_s, limits.read_bytes_per_s),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )


def _stop_on_signals(server: uvicorn.Server) -> None:
    """Stop `server` on a signal; uvicorn raises the signal again at its end, which is then nothing new."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
