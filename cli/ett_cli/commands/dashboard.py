"""`ett dashboard`: serves the Streamlit app over an exporter's query API."""

from __future__ import annotations

import argparse
import os
import sys

from ett_cli.token_file import add_token_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--exporter",
        default=os.environ.get("ETT_EXPORTER_URL") or "http://127.0.0.1:9410",
        metavar="URL",
        help="the exporter whose jobs are shown (default: $ETT_EXPORTER_URL, else %(default)s)",
    )
    add_token_file(parser)
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
    parser.add_argument(
        "--price", type=float, metavar="AMOUNT", help="price of an accelerator-hour (default: the exporter's)"
    )
    parser.add_argument(
        "--zone", metavar="NAME", help="time zone of all times (default: that of each viewer's browser)"
    )
    parser.add_argument(
        "--grafana",
        default=os.environ.get("ETT_GRAFANA_URL") or None,
        metavar="URL",
        help="the Grafana whose boards pages link to (default: $ETT_GRAFANA_URL)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted; 1 where it cannot listen, 2 for settings that cannot work."""
    from ett_dashboard.settings import Address, Settings

    try:
        settings = Settings(
            exporter_url=arguments.exporter,
            token_file=arguments.token_file,
            refresh_s=arguments.refresh_s,
            price_per_hour=arguments.price,
            zone=arguments.zone,
            grafana_url=arguments.grafana,
        )
        address = Address(host=arguments.host, port=arguments.port)
    except ValueError as error:
        return _complain(error, 2)

    from ett_dashboard.server import ServeError, serve

    def announce(url: str) -> None:
        print(f"ett dashboard: {url} shows the jobs of {settings.exporter_url}", flush=True)

    try:
        serve(settings, address, announce)
    except ServeError as error:
        return _complain(error, 1)
    return 0


def _complain(error: Exception, status: int) -> int:
    print(f"ett dashboard: {error}", file=sys.stderr)
    return status
