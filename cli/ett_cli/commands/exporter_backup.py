"""`ett exporter backup`: copy the database of an exporter that goes on running."""

from __future__ import annotations

import argparse
from pathlib import Path

from ett_cli.saying import complain

ABOUT = "Copies an SQLite database as it is at one moment, also while an exporter writes to it."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="where the copy goes; must not be there yet")
    parser.add_argument(
        "--database",
        default="ettwatch.sqlite",
        metavar="PATH",
        help="the database to copy (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Copy; 0 once the copy is on the disk, 1 where it cannot be made."""
    from ett_exporter.backup import back_up
    from ett_exporter.errors import StoreError

    try:
        size = back_up(arguments.database, arguments.file)
    except StoreError as error:
        return complain("exporter backup", error, 1)
    print(f"{arguments.file}: {size} bytes")
    return 0
