"""`ett grafana push`, `deploy` and `failures`: the subcommands that talk to a Grafana."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ett_cli.commands.failures import WINDOWS
from ett_cli.exporter_option import add_exporter
from ett_cli.saying import complain

if TYPE_CHECKING:
    from ett_grafana.config import Config
    from ett_grafana.publishing.connection import Grafana
    from ett_grafana.publishing.steps import Step

TOKEN_VARIABLE = "ETT_GRAFANA_TOKEN"  # noqa: S105 - a name
DIFF_LINES = 40
WORDS = {
    "push": "publish folder and boards (data source and alert rules if told) to a Grafana",
    "deploy": "mark a deploy on the boards",
    "failures": "mark the failures that an exporter knows, for boards that show annotations",
}
"""Subcommand to what it does."""


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Options of every command that talks to Grafana."""
    parser.add_argument(
        "--url",
        default=os.environ.get("ETT_GRAFANA_URL"),
        metavar="URL",
        help="address of Grafana, with its sub-path (default: $ETT_GRAFANA_URL)",
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"file of the token of a service account (default: ${TOKEN_VARIABLE}_FILE, else the token in "
        f"${TOKEN_VARIABLE})",
    )
    parser.add_argument(
        "--ca-file", metavar="FILE", help="certificates to trust (default: those of the system)"
    )
    parser.add_argument("--timeout-s", type=float, default=15.0, metavar="S", help="default: %(default)s")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")


def add_push(parser: argparse.ArgumentParser) -> None:
    """Options of `ett grafana push`."""
    add_connection(parser)
    parser.add_argument("--force", action="store_true", help="overwrite boards that were edited by hand")
    parser.add_argument(
        "--data-source", action="store_true", help="publish the data sources, too (needs the role Admin)"
    )
    parser.add_argument(
        "--alert-rules", action="store_true", help="publish the alerts as rules that Grafana evaluates, too"
    )
    parser.add_argument(
        "--source-uid",
        default="ettwatch-prometheus",
        metavar="UID",
        help="data source that those rules ask (default: %(default)s)",
    )


def add_deploy(parser: argparse.ArgumentParser) -> None:
    """Options of `ett grafana deploy`."""
    add_connection(parser)
    parser.add_argument("text", metavar="TEXT", help='what was deployed, for example "torch 2.13 on c1"')
    parser.add_argument(
        "--at", metavar="TIME", help="ISO 8601, of this machine's zone if none (default: now)"
    )
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="a further tag; repeatable")


def add_failures(parser: argparse.ArgumentParser) -> None:
    """Options of `ett grafana failures`."""
    add_connection(parser)
    add_exporter(
        parser, "the exporter that knows them; its token: $ETT_EXPORTER_TOKEN_FILE, $ETT_EXPORTER_TOKEN"
    )
    parser.add_argument(
        "--window", choices=WINDOWS, default="24h", help="how far back (default: %(default)s)"
    )


def push(arguments: argparse.Namespace, config: Config) -> int:
    """Publish; 1 where something was refused or Grafana cannot be reached, 2 for a wrong setting."""
    from ett_grafana.publishing.push import Wishes, planned

    wishes = Wishes(
        with_source=arguments.data_source,
        with_rules=arguments.alert_rules,
        source_uid=arguments.source_uid,
        force=arguments.force,
    )
    return _carried_out(arguments, lambda grafana: planned(grafana, config, wishes))


def deploy(arguments: argparse.Namespace, *, now: Callable[[], float] = time.time) -> int:
    """Mark a deploy; statuses as of `push`."""
    from ett_grafana.publishing.marks import deploy_mark

    try:
        at = (
            dt.datetime.fromisoformat(arguments.at.replace("Z", "+00:00")).timestamp()
            if arguments.at
            else now()
        )
    except ValueError:
        return complain("grafana", f"--at {arguments.at!r} is no time such as 2026-11-30T08:15:00", 2)
    return _carried_out(arguments, lambda grafana: [deploy_mark(grafana, arguments.text, at, arguments.tag)])


def failures(arguments: argparse.Namespace, *, ask: Callable[..., Any] | None = None) -> int:
    """Mark failures; statuses as of `push`."""
    from ett_cli.asking import AskError, getter
    from ett_core.credentials import token_source
    from ett_grafana.publishing.marks import failure_marks

    try:
        get = ask or getter(arguments.exporter, token_source())
        answer = get("/api/v1/failures", {"window": arguments.window, "limit": "1000"})
    except ValueError as error:
        return complain("grafana", error, 2)
    except AskError as error:
        return complain("grafana", error, 1)
    return _carried_out(arguments, lambda grafana: failure_marks(grafana, answer["failures"]))


def _carried_out(arguments: argparse.Namespace, plan: Callable[[Grafana], Iterable[Step]]) -> int:
    """Connect, find out the steps, take them unless only asked for, and tell them."""
    from ett_grafana.publishing.errors import PublishError
    from ett_grafana.publishing.steps import CHANGES, REFUSE, told

    try:
        grafana = _connection(arguments)
    except ValueError as error:
        return complain("grafana", error, 2)
    done = 0
    try:
        steps = list(plan(grafana))
        for step in steps:
            if step.kind in CHANGES and not arguments.dry_run:
                step.take()
                done += 1
            print("\n".join(told(step, lines=DIFF_LINES if arguments.dry_run else 0)))
    except PublishError as error:
        return complain("grafana", f"{error}{f' ({done} changes were made before)' if done else ''}", 1)
    refused = sum(step.kind == REFUSE for step in steps)
    changes = sum(step.kind in CHANGES for step in steps)
    print(f"{changes} changes {'would be made' if arguments.dry_run else 'made'}, {refused} refused")
    return 1 if refused else 0


def _connection(arguments: argparse.Namespace) -> Grafana:
    """The Grafana of the command line.

    Raises:
        ValueError: a setting is missing or cannot work; the message names it.
    """
    from ett_core.credentials import token_source
    from ett_grafana.publishing.connection import Grafana

    if not arguments.url:
        raise ValueError("--url URL is needed (or ETT_GRAFANA_URL)")
    if not arguments.timeout_s > 0:
        raise ValueError(f"--timeout-s {arguments.timeout_s}: has to be above 0")
    if arguments.ca_file and not Path(arguments.ca_file).is_file():
        raise ValueError(f"--ca-file {arguments.ca_file}: there is no such file")
    token = token_source(arguments.token_file, variable=TOKEN_VARIABLE)
    if not token():
        raise ValueError(f"a token is needed: {TOKEN_VARIABLE}, or a file named by --token-file")
    return Grafana(arguments.url, token, verify=arguments.ca_file or True, timeout_s=arguments.timeout_s)
