"""`ett publish`: publish what trainers have handed over, in a process and a job of its own."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ett_cli.label_option import add_label
from ett_cli.saying import complain, say
from ett_cli.token_file import add_token_file
from ett_core.reasons import reason_of

if TYPE_CHECKING:
    from ett_cli.publishing import Order
    from ett_trainer_hooks.pipeline.publishing.handover import HandOver

EPILOG = """\
A trainer leaves what it hands over below publish/ in its directory of checkpoints. Each model is loaded,
exported, compared with what the trainer predicted, and appears in PLACE whole or not at all. Without --to
it is said where each stands. Exit status: 0 where everything is published, 1 where something is not.
"""
REST_S = 300.0
"""A model that could not be published is tried again by a watch after this."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett publish`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "checkpoints", type=Path, nargs="?", metavar="DIR", help="a trainer's checkpoints, or one of them"
    )
    what.add_argument(
        "--watch", type=Path, metavar="DIR", help="publish what is handed over below DIR, until stopped"
    )
    parser.add_argument("--to", metavar="PLACE", help="directory, or URL for fsspec, that models go to")
    parser.add_argument(
        "--tables",
        choices=["plain", "int8"],
        default="plain",
        help="embedding tables as they are, or with 8 bits a weight (default: plain)",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        metavar="X",
        help="largest difference to a recorded prediction (default: 1e-05, with int8 0.01)",
    )
    parser.add_argument(
        "--tries", type=int, default=5, metavar="N", help="starts while that may help (default: 5)"
    )
    parser.add_argument(
        "--delay",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="wait before the second; twice as long before each further one (default: 5)",
    )
    parser.add_argument(
        "--every", type=float, default=10.0, metavar="SECONDS", help="with --watch: between two looks"
    )
    parser.add_argument("--again", action="store_true", help="try once more what has failed")
    add_label(parser)
    parser.add_argument("--exporter", metavar="URL", help="ship the job's events there, as `ett run` does")
    add_token_file(parser)
    parser.add_argument("--journal-dir", type=Path, metavar="DIR", help="as that of `ett run`")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Publish; 1 where something is not published, 2 for a wrong command line."""
    from ett_cli.commands.run import exporter
    from ett_cli.publishing import Order, found_in, publish_all
    from ett_core.waits import check_wait
    from ett_trainer_hooks.pipeline.checkpoint.asking import RemoteError
    from ett_trainer_hooks.pipeline.publishing.places import place_at

    directory = arguments.watch or arguments.checkpoints
    try:
        check_wait("--every", arguments.every)
        os.scandir(directory).close()
        order = None
        if arguments.to:
            place_at(arguments.to).close()
            order = Order(
                address=arguments.to,
                tables=arguments.tables,
                tolerance=arguments.tolerance,
                tries=arguments.tries,
                delay_s=arguments.delay,
                exporter_url=exporter(
                    arguments.exporter, arguments.token_file, os.environ, partial(say, "publish")
                ),
                token_file=arguments.token_file,
                journal_dir=arguments.journal_dir,
                labels=dict(arguments.label),
            )
        if arguments.watch:
            return complain("publish", "--watch needs --to", 2) if order is None else _watch(arguments, order)
        found = found_in(directory)
        if not found:
            return complain("publish", f"nothing was handed over in {directory}", 1)
        if order is not None:
            if arguments.again:
                for handover in found:
                    handover.reopen()
            publish_all(found, order, os.environ, partial(say, "publish"))
    except (ValueError, RemoteError) as error:
        return complain("publish", error, 2)
    except OSError as error:
        return complain("publish", f"{error.filename or directory}: {reason_of(error)}", 1)
    return _tell(found, as_object=arguments.json)


def _watch(arguments: argparse.Namespace, order: Order, wait: Callable[[float], None] = time.sleep) -> int:
    """Publish what is handed over, until somebody stops it; a disk that fails is looked at again."""
    rests_until: dict[Path, float] = {}
    told = ""
    try:
        while True:
            try:
                if not _look(arguments, order, rests_until):
                    return 1
                told = ""
            except OSError as error:
                if told != str(error):
                    told = str(error)
                    say("publish", f"{told}; looks again every {arguments.every:g} s")
            wait(arguments.every)
    except KeyboardInterrupt:
        return 0


def _look(arguments: argparse.Namespace, order: Order, rests_until: dict[Path, float]) -> bool:
    """Publish what is there and does not rest, the oldest first; False where somebody has stopped it.

    Raises:
        OSError: the disk cannot be asked, or a process not be started.
    """
    from ett_cli.publishing import as_json, found_in, publish_all, sentences

    for handover in reversed(found_in(arguments.watch)):
        is_due = rests_until.get(handover.folder, 0.0) <= time.monotonic()
        if is_due and handover.state() == "pending":
            rests_until[handover.folder] = time.monotonic() + REST_S
            going_on = publish_all([handover], order, os.environ, partial(say, "publish"))
            row = as_json(handover)
            print(json.dumps(row) if arguments.json else sentences([row])[0], flush=True)
            if not going_on:
                return False
    return True


def _tell(found: Sequence[HandOver], *, as_object: bool) -> int:
    from ett_cli.publishing import as_json, sentences

    rows = [as_json(handover) for handover in found]
    print(json.dumps({"handovers": rows}, indent=1) if as_object else "\n".join(sentences(rows)))
    return 0 if all(row["state"] == "done" for row in rows) else 1
