"""`ett dashboard`: serves the Streamlit app over an exporter's query API."""

from __future__ import annotations

import argparse
import os
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--exporter",
        default=os.environ.get("ETT_EXPORTER_URL") or "http://127.0.0.1:9410",
        metavar="URL",
        help="the exporter whose jobs are shown (default: $ETT_EXPORTER_URL, else %(default)s)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=8501, help="port to listen on, 0 for a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--refresh-s",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="time between two refreshes of an open page (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted; 2 for settings that cannot work."""
    from ett_dashboard.server import serve
    from ett_dashboard.settings import Settings

    try:
        settings = Settings(exporter_url=arguments.exporter, refresh_s=arguments.refresh_s)
    except ValueError as error:
        print(f"ett dashboard: {error}", file=sys.stderr)
        return 2

    def announce(url: str) -> None:
        print(f"ett dashboard: {url} shows the jobs of {settings.exporter_url}", flush=True)

    serve(settings, arguments.host, arguments.port, announce)
    return 0
