"""Serves the app in this process: Streamlit's ASGI application plus Plotly from its package.

`serve` blocks until the process is told to stop. Settings reach the page scripts, which run in
threads of this process, through the environment.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from streamlit import config

from ett_dashboard.chart import PLOTLY_SOURCE
from ett_dashboard.settings import Settings
from ett_dashboard.theme import STREAMLIT_OPTIONS

SCRIPT = Path(__file__).with_name("app.py")
PLOTLY_PATH = f"/{PLOTLY_SOURCE}"


def serve(settings: Settings, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve the app on `host` and `port` (0 takes a free one) until SIGINT or SIGTERM.

    `announce` gets the address once the port is bound. A port that is taken ends the process
    with status 1 and a line that says so.
    """
    os.environ.update(settings.to_environment())

    @asynccontextmanager
    async def lifespan(_app: st.App) -> AsyncIterator[None]:
        announce(f"http://{_bracketed(host)}:{config.get_option('server.port')}")
        yield

    app = st.App(SCRIPT, routes=[Route(PLOTLY_PATH, _plotly)], lifespan=lifespan)
    app.run(config={**STREAMLIT_OPTIONS, "server.address": host, "server.port": port})


def plotly_file() -> Path:
    """plotly.min.js of the installed Plotly package."""
    return Path(str(files("plotly") / "package_data" / "plotly.min.js"))


async def _plotly(_request: Request) -> Response:
    headers = {"Cache-Control": "public, max-age=86400", "X-Content-Type-Options": "nosniff"}
    return FileResponse(plotly_file(), media_type="text/javascript", headers=headers)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
