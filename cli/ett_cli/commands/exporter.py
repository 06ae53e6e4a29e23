"""`ett exporter`: serve ingest, /metrics and the query API until told to stop."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from ett_cli.commands import exporter_backup


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the settings of the exporter."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=9410, help="port to listen on, 0 for a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--database",
        default="ettwatch.sqlite",
        metavar="PATH",
        help="SQLite file or SQLAlchemy URL (default: %(default)s)",
    )
    parser.add_argument(
        "--shard",
        metavar="I/N",
        help="account for the I-th of N shares of the jobs (from 0); all replicas share one PostgreSQL",
    )
    parser.add_argument(
        "--watch",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="follow the *.jsonl journals of a directory; may be given several times",
    )
    parser.add_argument(
        "--ended-grace-s",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="how long an ended job stays on /metrics (default: %(default)s)",
    )
    parser.add_argument(
        "--retain",
        dest="retain_days",
        type=float,
        default=90.0,
        metavar="DAYS",
        help="how long the events of a job are kept after its last one; its account stays;"
        " 0 keeps all (default: %(default)s)",
    )
    commands = parser.add_subparsers(dest="command", metavar="backup", help="instead of serving")
    exporter_backup.add_arguments(commands.add_parser("backup", description=exporter_backup.ABOUT))


def run(arguments: argparse.Namespace) -> int:
    """Serve; 0 after SIGTERM or SIGINT, 1 where it cannot start, 2 for settings that cannot work."""
    if arguments.command == "backup":
        return exporter_backup.run(arguments)
    from ett_exporter.database import shown
    from ett_exporter.errors import StoreError
    from ett_exporter.owners import Shard
    from ett_exporter.server import ServeError, serve
    from ett_exporter.settings import Settings

    logging.basicConfig(level=logging.WARNING, format="ett exporter: %(message)s")
    try:
        settings = Settings(
            host=arguments.host,
            port=arguments.port,
            database=arguments.database,
            shard=Shard.parse(arguments.shard) if arguments.shard else None,
            watch=tuple(arguments.watch),
            ended_grace_s=arguments.ended_grace_s,
            retain_days=arguments.retain_days,
        )
    except ValueError as error:
        return _complain(error, 2)
    try:
        serve(settings, lambda url: _say_ready(url, shown(arguments.database)))
    except (ServeError, StoreError) as error:
        return _complain(error, 1)
    return 0


def _complain(error: Exception, status: int) -> int:
    print(f"ett exporter: {error}", file=sys.stderr)
    return status


def _say_ready(url: str, database: str) -> None:
    print(f"ett exporter: serving {url} (database {database})", flush=True)
