"""`ett diagnose`: why a job ended, from its logs alone.

Reads logs of any job, instrumented or not, and prints the cause with the lines that it rests on.
"""

from __future__ import annotations

import argparse
import sys

EPILOG = """\
PATH is a log, a directory with the logs of many ranks (at any depth, .gz too), or - for standard
input. All of them are taken as the logs of one attempt of one job: what came first in time wins,
whichever file it stands in. Exit status: 0 if something was read, 1 if nothing was.
"""
WIDTH = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett diagnose`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("paths", nargs="+", metavar="PATH", help="logs, directories of logs, or -")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the diagnosis; returns the exit status."""
    import msgspec

    from ett_cli.diagnosis import report
    from ett_cli.logs import Unread, read_logs
    from ett_core.failures import Where, judge, scan

    sightings, read = [], 0
    for log in read_logs(arguments.paths):
        if isinstance(log, Unread):
            print(f"ett diagnose: {log.name}: {log.reason}", file=sys.stderr)
            continue
        read += 1
        sightings += scan(log.data, Where(source=log.name, rank=log.rank, date=log.date))
    if not read:
        return 1
    diagnosis = judge(sightings)
    print(msgspec.json.encode(diagnosis).decode() if arguments.json else report(diagnosis, WIDTH))
    return 0
