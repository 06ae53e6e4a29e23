"""`ett grafana`: make boards and rules, and check that files are what would be made."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, what in (
        ("build", "write boards and rules into a directory"),
        ("check", "say which files of a directory differ from what build would write"),
    ):
        own = commands.add_parser(name, help=what, description=f"{what.capitalize()}.")
        own.add_argument(
            "--directory",
            type=Path,
            default=Path("grafana"),
            metavar="DIR",
            help="where the files are (default: %(default)s)",
        )
        own.add_argument(
            "--app-url",
            default="http://127.0.0.1:8501",
            metavar="URL",
            help="where those who look at the boards reach the app (default: %(default)s)",
        )
        own.add_argument(
            "--scrape-job",
            default="ettwatch",
            metavar="NAME",
            help="job_name under which Prometheus scrapes the exporters (default: %(default)s)",
        )
        own.add_argument(
            "--runbooks-url",
            default="docs/runbooks.md",
            metavar="URL",
            help="where the page of runbooks is reached, for alerts (default: %(default)s)",
        )


def run(arguments: argparse.Namespace) -> int:
    """Do it; 1 where files differ or cannot be written, 2 for settings that cannot work."""
    from ett_grafana.build import differing, generated, write
    from ett_grafana.config import Config

    try:
        config = Config(
            app_url=arguments.app_url,
            scrape_job=arguments.scrape_job,
            runbooks_url=arguments.runbooks_url,
        )
    except ValueError as error:
        return _complain(str(error), 2)
    files = generated(config)
    if arguments.command == "check":
        differ = differing(files, arguments.directory)
        for name in differ:
            print(f"{arguments.directory / name}: not what 'ett grafana build' writes", file=sys.stderr)
        return 1 if differ else 0
    try:
        write(files, arguments.directory)
    except OSError as error:
        return _complain(f"{error.filename}: {error.strerror}", 1)
    print(f"{len(files)} files written into {arguments.directory}")
    return 0


def _complain(text: str, status: int) -> int:
    print(f"ett grafana: {text}", file=sys.stderr)
    return status
