"""`ett failures`: what the failures of a fleet cost, and what is to blame. Asks an exporter, prints."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ett_cli.exporter_option import add_exporter
from ett_cli.saying import complain
from ett_cli.token_file import add_token_file

Get: TypeAlias = Callable[[str, Mapping[str, str]], Any]
"""Asks the query API for a path with parameters; raises `AskError`."""

WINDOWS = ("1h", "24h", "7d", "30d", "90d")
GROUPS = (
    "failure_class", "domain", "ending", "node", "cluster", "team", "model", "accelerator_type", "job_id"
)  # fmt: skip
FILTERS = ("cluster", "team", "model", "failure_class", "domain", "node")
OF_JOBS = ("cluster", "team", "model")
"""Filters that choose jobs, not failures."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett failures`."""
    add_exporter(parser, "the exporter that is asked")
    add_token_file(parser)
    parser.add_argument("--window", choices=WINDOWS, default="7d", help="how far back (default: %(default)s)")
    parser.add_argument(
        "--by", choices=GROUPS, default="failure_class", help="what to group by (default: %(default)s)"
    )
    parser.add_argument(
        "--order",
        choices=("lost", "count"),
        default="lost",
        help="largest by this first (default: %(default)s)",
    )
    for name in FILTERS:
        words = f"only of this {name.replace('_', ' ')} (several: with commas)"
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="NAME", help=words)
    parser.add_argument("--json", action="store_true", help="print the answers as one JSON object")


def run(arguments: argparse.Namespace, *, get: Get | None = None) -> int:
    """Print the analysis; 1 where the exporter gives no answer, 2 for a wrong setting."""
    from ett_cli.asking import AskError, getter
    from ett_cli.failure_report import report
    from ett_core.credentials import token_source

    try:
        ask = get or getter(arguments.exporter, token_source(arguments.token_file))
    except ValueError as error:
        return complain("failures", error, 2)
    chosen = {name: value for name in FILTERS if (value := getattr(arguments, name))}
    jobs = {name: chosen[name] for name in OF_JOBS if name in chosen} | {"window": arguments.window}
    grouped = {"group_by": arguments.by, "order": arguments.order, "limit": "1"}
    try:
        answers = {
            "failures": ask("/api/v1/failures", {**chosen, "window": arguments.window, **grouped}),
            "nodes": ask("/api/v1/nodes", jobs),
            "regressions": ask("/api/v1/regressions", jobs),
        }
    except AskError as error:
        return complain("failures", error, 1)
    print(json.dumps(answers, indent=1) if arguments.json else report(answers, arguments.window))
    return 0
