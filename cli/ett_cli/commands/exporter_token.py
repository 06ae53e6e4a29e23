"""`ett exporter token`: make a token for an exporter, and the line of its file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ett_cli.saying import complain

ABOUT = (
    "Makes a token. It is printed once, alone on standard output; the line for the file of --tokens, "
    "which holds its hash only, goes to standard error, or is added to --file."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", help="who it is for; stands in messages")
    parser.add_argument(
        "--scope",
        action="append",
        choices=("ingest", "read", "admin"),
        help="what it is good for; may be given several times (default: ingest)",
    )
    parser.add_argument("--jobs", default="", metavar="PREFIX", help="it may send these jobs only")
    parser.add_argument("--team", default="", metavar="TEAM", help="it may send jobs of this team only")
    parser.add_argument("--file", metavar="FILE", help="add the line to this file")


def run(arguments: argparse.Namespace) -> int:
    """Print a token; 0 where that went well, 1 where the file cannot take it, 2 for a wrong word."""
    from ett_exporter.tokens import TokensError, add, grant, line_of, new_token

    try:
        granted = grant(arguments.name, arguments.scope or ["ingest"], arguments.jobs, arguments.team)
    except ValueError as error:
        return complain("exporter token", error, 2)
    token = new_token()
    line = line_of(token, granted)
    if arguments.file is None:
        print(line, file=sys.stderr)
    else:
        try:
            add(Path(arguments.file), line)
        except TokensError as error:
            return complain("exporter token", error, 1)
    print(token)
    return 0
