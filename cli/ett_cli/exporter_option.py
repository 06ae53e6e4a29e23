"""`--exporter`, the same option wherever a command asks one."""

from __future__ import annotations

import argparse
import os


def add_exporter(parser: argparse.ArgumentParser, which: str) -> None:
    """Declare the option; `which` says what is asked of the exporter."""
    parser.add_argument(
        "--exporter",
        default=os.environ.get("ETT_EXPORTER_URL") or "http://127.0.0.1:9410",
        metavar="URL",
        help=f"{which} (default: $ETT_EXPORTER_URL, else %(default)s)",
    )
