"""`ett exporter`: serve ingest, /metrics and the query API until told to stop."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ett_cli.commands import exporter_backup, exporter_token
from ett_cli.saying import complain


class AddPrice(argparse.Action):
    """Collects `TYPE=AMOUNT` into a mapping."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        """Add one price."""
        kind, _, amount = str(values).rpartition("=")
        try:
            price = float(amount)
        except ValueError:
            kind = ""
        if not kind:
            parser.error(f"{option_string} {values}: not of the form TYPE=AMOUNT")
        setattr(namespace, self.dest, {**getattr(namespace, self.dest), kind: price})


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
        help="follow the journals of a directory (*.jsonl, *.jsonl.gz); may be given several times",
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
    parser.add_argument(
        "--tokens",
        type=Path,
        metavar="FILE",
        help="who may send and read: a line a token, as 'ett exporter token' prints it",
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="listen beyond this machine without --tokens: everybody there may read and write",
    )
    parser.add_argument(
        "--price",
        action=AddPrice,
        default={},
        dest="prices",
        metavar="TYPE=AMOUNT",
        help="what an hour of one accelerator costs, for example H200=3.5; may be given several times",
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="the log as text or as one JSON object a line (default: %(default)s)",
    )
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", help="instead of serving: backup, token"
    )
    exporter_backup.add_arguments(commands.add_parser("backup", description=exporter_backup.ABOUT))
    exporter_token.add_arguments(commands.add_parser("token", description=exporter_token.ABOUT))


def run(arguments: argparse.Namespace) -> int:
    """Serve; 0 after SIGTERM or SIGINT, 1 where it cannot start, 2 for settings that cannot work."""
    if arguments.command == "backup":
        return exporter_backup.run(arguments)
    if arguments.command == "token":
        return exporter_token.run(arguments)
    from ett_exporter.database import shown
    from ett_exporter.errors import StoreError
    from ett_exporter.logs import log_as
    from ett_exporter.owners import Shard
    from ett_exporter.server import ServeError, serve
    from ett_exporter.settings import Settings
    from ett_exporter.tokens import TokensError

    try:
        settings = Settings(
            host=arguments.host,
            port=arguments.port,
            database=arguments.database,
            shard=Shard.parse(arguments.shard) if arguments.shard else None,
            watch=tuple(arguments.watch),
            ended_grace_s=arguments.ended_grace_s,
            retain_days=arguments.retain_days,
            tokens=arguments.tokens,
            insecure=arguments.insecure,
            prices=arguments.prices,
            log_format=arguments.log_format,
        )
    except ValueError as error:
        return complain("exporter", error, 2)
    log_as(settings.log_format)
    try:
        serve(settings, lambda url: _say_ready(url, shown(arguments.database)))
    except TokensError as error:
        return complain("exporter", error, 2)
    except (ServeError, StoreError) as error:
        return complain("exporter", error, 1)
    return 0


def _say_ready(url: str, database: str) -> None:
    print(f"ett exporter: serving {url} (database {database})", flush=True)
