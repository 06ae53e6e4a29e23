"""`ett import`: logs of jobs that were never instrumented, as events. Reads files, prints or sends.

Logs are read in pieces, and events put in order with a bounded memory: a log may be larger than that.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import tempfile
import threading
import time
import zoneinfo
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ett_cli.saying import complain, remark, say
from ett_cli.token_file import add_token_file

if TYPE_CHECKING:
    from ett_cli.log_files import LogFile, Sources
    from ett_cli.sorted_events import SortedEvents
    from ett_core.events import AnyEvent

AUTO = "auto"
FORMATS = ("torchrun", "torchtitan", "sacct", "philly", "acme")
WAITING_BYTES = 8 << 20
"""Bytes of lines that wait in memory to be appended to their journals."""
EPILOG = """\
What a log does not tell stays unobserved. Rows that cannot be used are told on standard error as
FILE:LINE: REASON and stop nothing. Importing a log twice counts once. Exit status: 0 if there are
events, 1 if none (or not all could be sent), 2 for a wrong command line.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett import`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help="a log, a directory of logs, or - for standard input"
    )
    parser.add_argument(
        "--format",
        choices=[AUTO, *FORMATS],
        default=AUTO,
        help="of the logs (default: by their contents)",
    )
    parser.add_argument("--job-id", metavar="ID", help="name of the job, for logs of torchrun and torchtitan")
    parser.add_argument(
        "--timezone",
        metavar="NAME",
        help="zone of times that name none, such as UTC or Europe/Berlin (default: of this machine)",
    )
    parser.add_argument(
        "--year", type=int, metavar="YEAR", help="of torchrun's lines, which name none (default: the latest)"
    )
    parser.add_argument(
        "--timeout-s",
        type=float,
        default=60.0,
        metavar="S",
        help="with --exporter: seconds to keep trying (default: %(default)g)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, metavar="FILE", help="write events there, not to standard output")
    where.add_argument("--exporter", metavar="URL", help="send events there")
    add_token_file(parser)


def run(
    arguments: argparse.Namespace,
    *,
    clock: Callable[[], float] = time.time,
    stdin: Callable[[], BinaryIO] = lambda: sys.stdin.buffer,
) -> int:
    """Import; returns 0 where there are events and all arrived, 1 where not, 2 for a wrong setting."""
    try:
        zone = _zone(arguments.timezone)
        latest = None if arguments.year is None else _end_of(arguments.year)
        if arguments.exporter is not None:
            _check_exporter(arguments.exporter, arguments.token_file)
        if arguments.job_id is not None:
            _check_job_id(arguments.job_id)
    except ValueError as error:
        return complain("import", error, 2)
    from ett_cli.log_files import Sources

    try:
        with Sources(stdin, clock() if latest is None else latest, is_given=latest is not None) as sources:
            return _import(sources, zone, arguments)
    except BrokenPipeError:
        raise
    except OSError as error:
        return complain("import", f"{error.filename or arguments.out or 'output'}: {error.strerror}", 1)


def _import(sources: Sources, zone: dt.tzinfo | None, arguments: argparse.Namespace) -> int:
    from ett_cli.imports.formats import imported, in_order
    from ett_cli.sorted_events import SortedEvents
    from ett_core.lines import BadLine

    logs = sources.logs(arguments.logs)
    for reason in sources.unread:
        say("import", reason)
    by_format = _by_format(logs, arguments.format)
    jobs: set[str] = set()
    bad = 0
    with SortedEvents(in_order) as events:
        for name, members in by_format.items():
            for found in imported(name, [log.described() for log in members], zone, arguments.job_id or ""):
                if isinstance(found, BadLine):
                    bad += 1
                    remark("import", found)
                else:
                    jobs.add(found.job_id)
                    events.add(found)
        broken = [log for log in logs if log.trouble]
        for log in broken:
            say("import", f"{log.name}: {log.trouble}; what came before it was used")
        sent = _deliver(events, arguments)
        lines = sum(log.lines for members in by_format.values() for log in members)
        say("import", summary(by_format, jobs=len(jobs), events=events.count, lines=lines, bad=bad))
        return 0 if events.count and sent and not broken else 1


def summary(formats: Iterable[str], *, jobs: int, events: int, lines: int, bad: int) -> str:
    """What was made of what.

    >>> summary([], jobs=0, events=0, lines=0, bad=0)
    '0 jobs, 0 events from 0 lines; nothing was left out'
    """
    from ett_cli.commands.ship import counted

    named = " and ".join(sorted(formats))
    read = f"{counted(lines, 'line')} of {named}" if named else counted(lines, "line")
    left_out = f"{counted(bad, 'remark')} on what could not be used" if bad else "nothing was left out"
    return f"{counted(jobs, 'job')}, {counted(events, 'event')} from {read}; {left_out}"


def _by_format(logs: Iterable[LogFile], wanted: str) -> dict[str, list[LogFile]]:
    """The logs by their format; what is not recognised is told."""
    from ett_cli.imports.formats import HEAD, recognised

    by_format: dict[str, list[LogFile]] = {}
    for log in logs:
        name = recognised(next(log.pieces(HEAD), b"")) if wanted == AUTO else wanted
        if name is None:
            known = ", ".join(FORMATS)
            say("import", f"{log.name}: its format is not recognised; say --format (one of {known})")
        else:
            by_format.setdefault(name, []).append(log)
    return by_format


def _deliver(events: SortedEvents, arguments: argparse.Namespace) -> bool:
    """Print, write or send the events; whether all of them arrived.

    Raises:
        OSError: they cannot be written.
    """
    if arguments.exporter is not None:
        return not events.count or _send(
            events, arguments.exporter, arguments.token_file, arguments.timeout_s
        )
    if arguments.out is None:
        _write(events, sys.stdout.buffer)
        sys.stdout.flush()
        return True
    if arguments.out.exists() and not arguments.out.is_file():
        with arguments.out.open("wb") as device:
            _write(events, device)
        return True
    fresh = arguments.out.with_name(f".{arguments.out.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            _write(events, file)
        fresh.replace(arguments.out)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
    return True


def _write(events: Iterable[AnyEvent], stream: BinaryIO) -> None:
    from ett_core.events import encode

    stream.writelines(encode(event) + b"\n" for event in events)


def _send(events: Iterable[AnyEvent], exporter_url: str, token_file: Path | None, timeout_s: float) -> bool:
    """Ship the events, those of each writer as a journal; whether all of them were taken."""
    from ett_core.credentials import token_source
    from ett_trainer_hooks.guard import Guard
    from ett_trainer_hooks.shipping.shipper import Shipper
    from ett_trainer_hooks.shipping.transport import exporter_address, poster

    address = exporter_address(exporter_url)
    with tempfile.TemporaryDirectory(prefix="ett-import-") as folder:
        _write_journals(events, Path(folder))
        stop = threading.Event()
        stop.set()
        post = poster(exporter_url, token=token_source(token_file))
        shipper = Shipper(Path(folder), post, address, guard=Guard(lambda _text: None))
        shipper.run(stop, timeout_s)
        left = shipper.unsent_bytes()
    tally = shipper.tally
    known = f"{tally.known:,} of them known there already"
    print(f"ett import: {tally.lines:,} events sent to {address}, {known}")
    if tally.rejected:
        say("import", f"{tally.rejected:,} events rejected, the first: {tally.first_reason}")
    if left:
        say("import", f"{left:,} bytes not acknowledged; the last answer: {tally.last_answer}")
    return not left and not tally.rejected


def _write_journals(events: Iterable[AnyEvent], folder: Path) -> None:
    """The events of each writer as a journal."""
    from ett_core.events import encode

    waiting: dict[str, list[bytes]] = {}
    size = 0
    for event in events:
        line = encode(event) + b"\n"
        waiting.setdefault(event.writer, []).append(line)
        size += len(line)
        if size > WAITING_BYTES:
            _append(waiting, folder)
            size = 0
    _append(waiting, folder)


def _append(waiting: dict[str, list[bytes]], folder: Path) -> None:
    for writer, lines in waiting.items():
        with Path(folder, f"{writer}-0.jsonl").open("ab") as journal:
            journal.write(b"".join(lines))
    waiting.clear()


def _zone(name: str | None) -> dt.tzinfo | None:
    """The time zone of a name; None for that of this machine.

    Raises:
        ValueError: there is none of that name.
    """
    if name is None:
        return None
    if name.upper() in ("UTC", "Z"):
        return dt.timezone.utc
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"--timezone {name!r} is not known to this machine") from error


def _end_of(year: int) -> float:
    if not 1970 <= year <= 2090:  # noqa: PLR2004 - the range of times in events
        raise ValueError(f"--year {year} is not from 1970 to 2090")
    return dt.datetime(year, 12, 31, tzinfo=dt.timezone.utc).timestamp()


def _check_exporter(url: str, token_file: Path | None) -> None:
    from ett_core.credentials import token_source
    from ett_trainer_hooks.shipping.transport import exporter_address

    exporter_address(url)
    token_source(token_file)


def _check_job_id(job_id: str) -> None:
    from ett_core.events import JOB_ID_PATTERN

    if not JOB_ID_PATTERN.fullmatch(job_id):
        raise ValueError(f"--job-id {job_id[:40]!r} is not 1 to 128 characters of A-Z a-z 0-9 . _ : / @ -")
