"""`ett dashboard`: serves the Streamlit app over an exporter's query API, or over metrics."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ett_cli.exporter_option import add_exporter
from ett_cli.saying import complain
from ett_cli.token_file import add_token_file

if TYPE_CHECKING:
    from ett_dashboard.prometheus.settings import PrometheusSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_exporter(parser, "the exporter whose jobs are shown")
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
    _add_metrics(parser)


def _add_metrics(parser: argparse.ArgumentParser) -> None:
    metrics = parser.add_argument_group(
        "instead of an exporter", "its metrics in a server of the query API of Prometheus: fewer details"
    )
    metrics.add_argument(
        "--prometheus",
        default=os.environ.get("ETT_PROMETHEUS_URL") or None,
        metavar="URL",
        help="Prometheus, VictoriaMetrics, Mimir or Thanos, with its path (default: $ETT_PROMETHEUS_URL)",
    )
    metrics.add_argument(
        "--prometheus-matcher",
        action="append",
        default=[],
        metavar="MATCHER",
        help='a label that all series of the fleet bear there, such as env="prod"; again for more',
    )
    metrics.add_argument(
        "--prometheus-token-file",
        type=Path,
        metavar="FILE",
        help="file of its token (default: $ETT_PROMETHEUS_TOKEN_FILE, else $ETT_PROMETHEUS_TOKEN, else none)",
    )
    metrics.add_argument(
        "--prometheus-basic-auth-file", type=Path, metavar="FILE", help="file of user:password instead"
    )
    metrics.add_argument(
        "--prometheus-ca-file",
        type=Path,
        metavar="FILE",
        help="certificates to trust (default: the system's)",
    )
    metrics.add_argument(
        "--prometheus-tenant", metavar="NAME", help="the tenant that is asked, sent as X-Scope-OrgID"
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
            prometheus=_prometheus(arguments),
        )
        address = Address(host=arguments.host, port=arguments.port)
    except ValueError as error:
        return complain("dashboard", error, 2)

    from ett_dashboard.server import ServeError, serve

    def announce(url: str) -> None:
        print(f"ett dashboard: {url} shows the jobs of {settings.source.url}", flush=True)

    try:
        serve(settings, address, announce)
    except ServeError as error:
        return complain("dashboard", error, 1)
    return 0


def _prometheus(arguments: argparse.Namespace) -> PrometheusSettings | None:
    from ett_dashboard.prometheus.settings import PrometheusSettings

    if arguments.prometheus is None:
        if arguments.prometheus_matcher:
            raise ValueError("--prometheus-matcher chooses series of --prometheus, which is not given")
        return None
    return PrometheusSettings(
        url=arguments.prometheus,
        token_file=arguments.prometheus_token_file,
        basic_auth_file=arguments.prometheus_basic_auth_file,
        ca_file=arguments.prometheus_ca_file,
        tenant=arguments.prometheus_tenant,
        matchers=tuple(arguments.prometheus_matcher),
    )
