"""`ett ship`: send the journals of a directory to an exporter."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett ship`."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory of journals")
    parser.add_argument(
        "--exporter",
        default=os.environ.get("ETT_EXPORTER_URL"),
        metavar="URL",
        help="for example http://127.0.0.1:9410 (default: $ETT_EXPORTER_URL)",
    )
    parser.add_argument("--once", action="store_true", help="send what is there, then stop")
    parser.add_argument(
        "--timeout-s",
        type=float,
        default=60.0,
        metavar="S",
        help="with --once: seconds to keep trying (default: %(default)g)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Ship; returns 0 where everything was acknowledged, 1 where not, 2 for a wrong setting."""
    from ett_trainer_hooks.shipper import Shipper
    from ett_trainer_hooks.transport import poster

    if not arguments.exporter:
        return _complain("--exporter URL is needed (or ETT_EXPORTER_URL)")
    if not arguments.directory.is_dir():
        return _complain(f"{arguments.directory} is no directory")
    try:
        shipper = Shipper(arguments.directory, poster(arguments.exporter))
    except ValueError as error:
        return _complain(str(error))
    stop = threading.Event()
    if arguments.once:
        stop.set()
    else:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda _number, _frame: stop.set())
    shipper.run(stop, arguments.timeout_s if arguments.once else 5.0)
    left = shipper.unsent_bytes()
    print(f"ett ship: {left} bytes are not acknowledged" if left else "ett ship: everything is acknowledged")
    return 1 if left else 0


def _complain(text: str) -> int:
    print(f"ett ship: {text}", file=sys.stderr)
    return 2
