"""`--exporter`, the same option wherever a command asks one."""

from __future__ import annotations

import argparse
import os

USUAL = "http://127.0.0.1:9410"


def usual_exporter() -> str:
    """The exporter that commands ask where none is named."""
    return os.environ.get("ETT_EXPORTER_URL") or USUAL


def add_exporter(parser: argparse.ArgumentParser, which: str) -> None:
    """Declare the option; `which` says what is asked of the exporter."""
    parser.add_argument(
        "--exporter",
        default=usual_exporter(),
        metavar="URL",
        help=f"{which} (default: $ETT_EXPORTER_URL, else %(default)s)",
    )
