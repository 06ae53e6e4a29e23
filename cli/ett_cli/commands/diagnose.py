"""`ett diagnose`: why a job ended, from its logs alone.

Reads logs of any job, instrumented or not, and prints the cause with the lines that it rests on. Where
journals say that the job succeeded, what failed on the way was not its end.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ett_cli.saying import say

if TYPE_CHECKING:
    from ett_core.events import AnyEvent

EPILOG = """\
PATH is a log, a directory with the logs of many ranks (at any depth, .gz too), or - for standard
input. All of them are taken as the logs of one attempt of one job: what came first in time wins,
whichever file it stands in. The directory that `ett run` has named will do: where its journals
say that the job succeeded, that is said. Exit status: 0 if something was read, 1 if nothing was.
"""
WIDTH = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett diagnose`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("paths", nargs="+", metavar="PATH", help="logs, directories of logs, or -")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace, *, clock: Callable[[], float] = time.time) -> int:
    """Print the diagnosis; returns the exit status."""
    import msgspec

    from ett_cli.commands.account import by_job
    from ett_cli.diagnosis import got_over, report
    from ett_cli.logs import Unread, read_logs
    from ett_cli.told import ended_well
    from ett_core.failures import Where, judge, scan
    from ett_core.plain_text import plain_json

    sightings, read = [], 0
    events: list[AnyEvent] = []
    for log in read_logs(arguments.paths):
        if isinstance(log, Unread):
            say("diagnose", f"{log.name}: {log.reason}")
            continue
        read += 1
        events += log.events
        sightings += scan(log.data, Where(source=log.name, rank=log.rank, date=log.date))
    if not read:
        return 1
    diagnosis = judge(sightings)
    if (ended_at := ended_well(by_job(events), clock())) is not None:
        diagnosis = got_over(diagnosis, ended_at)
    print(plain_json(msgspec.json.encode(diagnosis).decode()) if arguments.json else report(diagnosis, WIDTH))
    return 0
