"""`ett grafana`: make boards and rules, check files, publish to a Grafana, mark deploys and failures."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ett_cli import grafana_publishing as publishing
from ett_cli.saying import complain

if TYPE_CHECKING:
    from ett_grafana.config import Config

SITE = (
    ("app_url", "http://127.0.0.1:8501", "where those who look at the boards reach the app"),
    ("scrape_job", "ettwatch", "job_name under which Prometheus scrapes the exporters"),
    ("runbooks_url", "docs/runbooks.md", "where the page of runbooks is reached, for alerts"),
    ("prometheus_url", "http://prometheus:9090", "where Grafana reaches Prometheus"),
    ("alertmanager_url", "http://alertmanager:9093", "where Grafana reaches Alertmanager"),
)
"""Settings of a site: field of `Config`, default, words."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, what in (
        ("build", "write boards and rules into a directory"),
        ("check", "say which files of a directory differ from what build would write"),
    ):
        own = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        own.add_argument(
            "--directory",
            type=Path,
            default=Path("grafana"),
            metavar="DIR",
            help="where the files are (default: %(default)s)",
        )
        _add_site(own)
    for name, what in publishing.WORDS.items():
        own = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        getattr(publishing, f"add_{name}")(own)
        if name == "push":
            _add_site(own)


def _add_site(parser: argparse.ArgumentParser) -> None:
    for field, default, words in SITE:
        parser.add_argument(
            f"--{field.replace('_', '-')}",
            default=default,
            metavar="NAME" if field == "scrape_job" else "URL",
            help=f"{words} (default: %(default)s)",
        )


def run(arguments: argparse.Namespace) -> int:
    """Do it; 1 where it did not work or files differ, 2 for settings that cannot work."""
    from ett_grafana.config import Config

    if arguments.command == "deploy":
        return publishing.deploy(arguments)
    if arguments.command == "failures":
        return publishing.failures(arguments)
    try:
        config = Config(**{name: getattr(arguments, name) for name, _, _ in SITE})
    except ValueError as error:
        return complain("grafana", error, 2)
    if arguments.command == "push":
        return publishing.push(arguments, config)
    return _files(arguments, config)


def _files(arguments: argparse.Namespace, config: Config) -> int:
    """Write the files, or compare them."""
    from ett_grafana.build import differing, generated, write

    files = generated(config)
    if arguments.command == "check":
        differ = differing(files, arguments.directory)
        for name in differ:
            print(f"{arguments.directory / name}: not what 'ett grafana build' writes", file=sys.stderr)
        return 1 if differ else 0
    try:
        write(files, arguments.directory)
    except OSError as error:
        return complain("grafana", f"{error.filename}: {error.strerror}", 1)
    print(f"{len(files)} files written into {arguments.directory}")
    return 0
