"""`ett ship`: send the journals of a directory to an exporter."""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ett_cli.saying import complain, say
from ett_cli.token_file import add_token_file

if TYPE_CHECKING:
    from ett_trainer_hooks.shipping.shipper import Shipper

LAST_LINES_S = 5.0
"""Seconds to go on after a signal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett ship`."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory of journals, at any depth")
    parser.add_argument(
        "--exporter",
        default=os.environ.get("ETT_EXPORTER_URL"),
        metavar="URL",
        help="for example http://127.0.0.1:9410 (default: $ETT_EXPORTER_URL)",
    )
    add_token_file(parser)
    parser.add_argument("--once", action="store_true", help="send what is there, then stop")
    parser.add_argument(
        "--timeout-s",
        type=float,
        default=60.0,
        metavar="S",
        help="with --once: seconds to keep trying (default: %(default)g)",
    )
    parser.add_argument(
        "--prune-hours",
        type=float,
        metavar="H",
        help="with --once: then remove the journals that the exporter holds, that were not written for "
        "H hours and whose process is gone (default: none)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Ship; returns 0 where everything was acknowledged, 1 where not, 2 for a wrong setting."""
    from ett_core.credentials import token_source
    from ett_core.waits import check_wait
    from ett_trainer_hooks.guard import Guard
    from ett_trainer_hooks.journal.segments import journals_below
    from ett_trainer_hooks.shipping.shipper import Shipper
    from ett_trainer_hooks.shipping.transport import exporter_address, poster

    if not arguments.exporter:
        return complain("ship", "--exporter URL is needed (or ETT_EXPORTER_URL)", 2)
    if arguments.prune_hours is not None and not (arguments.once and arguments.prune_hours > 0):
        return complain("ship", "--prune-hours needs a number above 0, and --once", 2)
    try:
        check_wait("--timeout-s", arguments.timeout_s)
        exporter = exporter_address(arguments.exporter)
        post = poster(arguments.exporter, token=token_source(arguments.token_file))
        os.scandir(arguments.directory).close()
    except ValueError as error:
        return complain("ship", error, 2)
    except OSError as error:
        return complain("ship", f"{arguments.directory}: {error.strerror}", 1)
    guard = Guard(_silent) if arguments.once else Guard()
    shipper = Shipper(arguments.directory, post, exporter, find=journals_below, guard=guard)
    shipper.run(_stop(arguments.once), arguments.timeout_s if arguments.once else LAST_LINES_S)
    status = report(arguments.directory, exporter, shipper)
    if arguments.prune_hours is not None:
        status = max(status, remove(shipper.journals(), exporter, arguments.prune_hours))
    return status


def remove(journals: Sequence[Path], exporter: str, hours: float) -> int:
    """Remove the journals that are over for so many hours; the exit status."""
    from ett_trainer_hooks.shipping.pruning import HOUR_S, prune

    try:
        removed = prune(journals, exporter, time.time() - hours * HOUR_S)
    except OSError as error:
        return complain("ship", f"{error.filename}: {error.strerror}", 1)
    print(f"ett ship: {counted(len(removed), 'journal')} removed")
    return 0


def report(directory: Path, exporter: str, shipper: Shipper) -> int:
    """Print what became of the journals; the exit status."""
    from ett_trainer_hooks.journal.segments import packed_below

    tally = shipper.tally
    journals = shipper.journals()
    packed = packed_below(directory, exporter)
    if not journals and not tally.lines and not packed:
        return complain("ship", f"no journal in {directory}", 1)
    known = f", {tally.known} of them known there already" if tally.known else ""
    sent = f"{counted(len(journals), 'journal')}, {counted(tally.lines, 'line')} sent to {exporter}{known}"
    print(f"ett ship: {sent}")
    problems = list(tally.troubles.values())
    if tally.rejected:
        problems.append(f"{counted(tally.rejected, 'line')} rejected, the first: {tally.first_reason}")
    if left := shipper.unsent_bytes():
        problems.append(f"{counted(left, 'byte')} not acknowledged; the last answer: {tally.last_answer}")
    if packed:
        count = counted(len(packed), "packed journal")
        problems.append(f"{count} not sent, the first: {packed[0]}; unpack with gunzip, then send again")
    for problem in problems:
        say("ship", problem)
    return 1 if problems else 0


def counted(count: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "line"), counted(12000, "line")
    ('1 line', '12,000 lines')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _stop(once: bool) -> threading.Event:  # noqa: FBT001 - of a flag
    """Set when it is time to stop: from the beginning, or at SIGINT and SIGTERM."""
    stop = threading.Event()
    if once:
        stop.set()
        return stop
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stop.set())
    return stop


def _silent(_text: str) -> None:
    """Say nothing now: the report at the end says it."""
