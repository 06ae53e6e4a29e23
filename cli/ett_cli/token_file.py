"""`--token-file`, the same option wherever a command talks to an exporter."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_token_file(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file of the token for the exporter, read anew for each request "
        "(default: $ETT_EXPORTER_TOKEN_FILE, else the token in $ETT_EXPORTER_TOKEN, else none)",
    )
