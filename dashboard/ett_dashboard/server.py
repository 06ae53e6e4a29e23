"""Serves the app in this process: Streamlit's ASGI application, Plotly from its package, tables and reports.

`serve` blocks until the process is told to stop. Settings reach the page scripts, which run in
threads of this process, through the environment.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl

import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from streamlit import config, file_util

from ett_core.reasons import listening_reason
from ett_dashboard.chart import PLOTLY_SOURCE, plotly_file
from ett_dashboard.client import ExporterError, LacksError, UnknownJobError
from ett_dashboard.csv_files import FILES
from ett_dashboard.document import Shell, document, shell
from ett_dashboard.live import shared_reads
from ett_dashboard.report.reading import fleet_report, job_report
from ett_dashboard.settings import Address, Settings, of_app
from ett_dashboard.theme import STREAMLIT_OPTIONS
from ett_dashboard.views.first import first_view
from ett_dashboard.views.frame import zone_of
from ett_dashboard.views.page import Page
from ett_dashboard.views.pages import PAGES

SCRIPT = Path(__file__).with_name("app.py")
PLOTLY_PATH = f"/{PLOTLY_SOURCE}"
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
"""What no name of a file holds."""
LONGEST_NAME = 80


class ServeError(RuntimeError):
    """The address cannot be listened on; the message says why."""


def serve(settings: Settings, address: Address, announce: Callable[[str], None]) -> None:
    """Serve the app at `address` until SIGINT or SIGTERM; `announce` gets its URL once it is bound.

    Raises:
        ServeError: the address cannot be listened on.
    """
    check(address)
    os.environ.update(settings.to_environment())

    @asynccontextmanager
    async def lifespan(_app: st.App) -> AsyncIterator[None]:
        announce(f"http://{_bracketed(address.host)}:{config.get_option('server.port')}")
        yield

    parts = _shell()
    documents = [Route(f"/{page.path}", _document_of(page, parts)) for page in PAGES] if parts else []
    files = [Route("/csv/{name}", _csv), Route("/report", _report)]
    routes = [Route(PLOTLY_PATH, _plotly), *files, *documents]
    app = st.App(SCRIPT, routes=routes, lifespan=lifespan)
    app.run(config={**STREAMLIT_OPTIONS, "server.address": address.host, "server.port": address.port})


def check(address: Address) -> None:
    """Listen at the address for a moment: Streamlit, which does so next, says less where it cannot.

    Raises:
        ServeError: the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.create_server((address.host, address.port), family=family).close()
    except (OSError, UnicodeError) as error:
        where = f"{_bracketed(address.host)}:{address.port}"
        raise ServeError(f"cannot listen on {where}: {listening_reason(error)}") from error


async def _plotly(_request: Request) -> Response:
    headers = {"Cache-Control": "public, immutable, max-age=31536000", "X-Content-Type-Options": "nosniff"}
    return FileResponse(plotly_file(), media_type="text/javascript", headers=headers)


def _shell() -> Shell | None:
    index = Path(file_util.get_static_dir()) / "index.html"
    return shell(index.read_text(encoding="utf-8"))


def _document_of(page: Page, parts: Shell) -> Callable[[Request], Response]:
    """What answers with the document of a page; its figures grow old, so that it is kept nowhere."""

    def answer(request: Request) -> Response:
        asked = dict(parse_qsl(request.url.query))
        told = document(parts, first_view(page, PAGES, asked, shared_reads))
        return HTMLResponse(told, headers={"Cache-Control": "no-store"})

    return answer


def _csv(request: Request) -> Response:
    name = request.path_params["name"]
    make = FILES.get(name)
    if make is None:
        return PlainTextResponse(f"no table is called {name!r}; there are: {', '.join(FILES)}\n", 404)
    told = partial(make, shared_reads(), request.query_params)
    return _file(told, f"{name}.csv", "text/csv; charset=utf-8")


def _report(request: Request) -> Response:
    """A job, or all jobs within a window, as one file of HTML."""
    asked = dict(parse_qsl(request.url.query))
    job_id, window = asked.get("id", ""), asked.get("window", "7d")
    zone = zone_of(asked.get("zone"), of_app().zone)

    def make() -> bytes:
        api = shared_reads().api
        return job_report(api, job_id, zone) if job_id else fleet_report(api, window, zone, time.time())

    name = _NO_NAME.sub("-", job_id or f"jobs-{window}")[:LONGEST_NAME]
    return _file(make, f"{name}.html", "text/html")


def _file(make: Callable[[], bytes], name: str, media_type: str) -> Response:
    """A file to keep, or one sentence that says why there is none."""
    try:
        content = make()
    except UnknownJobError as error:
        return PlainTextResponse(f"{error}\n", 404)
    except LacksError as error:
        return PlainTextResponse(f"{error}\n", 501)
    except ExporterError as error:
        return PlainTextResponse(f"{error}\n", 503)
    except ValueError as error:
        return PlainTextResponse(f"{error}\n", 400)
    return Response(
        content,
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
