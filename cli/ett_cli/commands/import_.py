"""`ett import`: logs of jobs that were never instrumented, as events. Reads files, prints or sends."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import tempfile
import threading
import time
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ett_cli.token_file import add_token_file

if TYPE_CHECKING:
    from ett_cli.imports.formats import Imported, Log
    from ett_core.events import AnyEvent

AUTO = "auto"
FORMATS = ("torchrun", "torchtitan", "sacct", "philly", "acme")
STDIN = "-"
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
        return _complain(str(error), 2)
    logs, unread = _read(
        arguments.logs, stdin, clock() if latest is None else latest, is_given=latest is not None
    )
    for reason in unread:
        _complain(reason, 1)
    parts = list(_imported(logs, arguments.format, zone, arguments.job_id or ""))
    for _, part in parts:
        for bad in part.bad:
            print(bad, file=sys.stderr)
    events = [event for _, part in parts for event in part.events]
    try:
        sent = _deliver(events, arguments)
    except OSError as error:
        return _complain(f"{error.filename or arguments.out}: {error.strerror}", 1)
    print(f"ett import: {summary(parts)}", file=sys.stderr)
    return 0 if events and sent else 1


def summary(parts: Sequence[tuple[str, Imported]]) -> str:
    """What was made of what.

    >>> summary([])
    '0 jobs, 0 events from 0 lines; nothing was left out'
    """
    from ett_cli.commands.ship import counted

    jobs = {event.job_id for _, part in parts for event in part.events}
    events = sum(len(part.events) for _, part in parts)
    bad = sum(len(part.bad) for _, part in parts)
    lines = sum(part.lines for _, part in parts)
    formats = " and ".join(sorted({name for name, _ in parts}))
    read = f"{counted(lines, 'line')} of {formats}" if formats else counted(lines, "line")
    left_out = f"{counted(bad, 'remark')} on what could not be used" if bad else "nothing was left out"
    return f"{counted(len(jobs), 'job')}, {counted(events, 'event')} from {read}; {left_out}"


def _imported(
    logs: Iterable[Log], wanted: str, zone: dt.tzinfo | None, job_id: str
) -> Iterator[tuple[str, Imported]]:
    """The logs by their format, each format with what it holds."""
    from ett_cli.imports.formats import imported, recognised

    by_format: dict[str, list[Log]] = {}
    for log in logs:
        name = recognised(log.data) if wanted == AUTO else wanted
        if name is None:
            known = ", ".join(FORMATS)
            _complain(f"{log.name}: its format is not recognised; say --format (one of {known})", 1)
        else:
            by_format.setdefault(name, []).append(log)
    for name, members in by_format.items():
        yield name, imported(name, members, zone, job_id)


def _read(
    names: Iterable[str], stdin: Callable[[], BinaryIO], latest: float, *, is_given: bool
) -> tuple[list[Log], list[str]]:
    """The logs, and why others could not be read. `latest` dates standard input, or all where it is given."""
    from ett_cli.imports.formats import Log

    logs: list[Log] = []
    unread: list[str] = []
    for name in names:
        try:
            if name == STDIN:
                logs.append(Log("<stdin>", stdin().read(), latest))
                continue
            for path in _files(Path(name)):
                written_at = latest if is_given else path.stat().st_mtime
                logs.append(Log(str(path), path.read_bytes(), written_at))
        except OSError as error:
            unread.append(f"{error.filename or name}: {(error.strerror or str(error)).lower()}")
    return logs, unread


def _files(path: Path) -> list[Path]:
    """The file, or the files of a directory at any depth, in the order of their names."""
    if not path.is_dir():
        return [path]
    found = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sorted(file for file in found if file.is_file() and not file.name.startswith("."))


def _deliver(events: Sequence[AnyEvent], arguments: argparse.Namespace) -> bool:
    """Print, write or send the events; whether all of them arrived.

    Raises:
        OSError: they cannot be written.
    """
    from ett_core.events import encode

    if arguments.exporter is not None:
        return not events or _send(events, arguments.exporter, arguments.token_file, arguments.timeout_s)
    lines = b"".join(encode(event) + b"\n" for event in events)
    if arguments.out is None:
        sys.stdout.buffer.write(lines)
        sys.stdout.flush()
        return True
    if arguments.out.exists() and not arguments.out.is_file():
        arguments.out.write_bytes(lines)
        return True
    fresh = arguments.out.with_name(f".{arguments.out.name}.{os.getpid()}")
    fresh.write_bytes(lines)
    fresh.replace(arguments.out)
    return True


def _send(events: Iterable[AnyEvent], exporter_url: str, token_file: Path | None, timeout_s: float) -> bool:
    """Ship the events, those of each writer as a journal; whether all of them were taken."""
    from ett_core.credentials import token_source
    from ett_core.events import encode
    from ett_trainer_hooks.guard import Guard
    from ett_trainer_hooks.shipping.shipper import Shipper
    from ett_trainer_hooks.shipping.transport import exporter_address, poster

    address = exporter_address(exporter_url)
    journals: dict[str, list[bytes]] = {}
    for event in events:
        journals.setdefault(event.writer, []).append(encode(event) + b"\n")
    with tempfile.TemporaryDirectory(prefix="ett-import-") as folder:
        for writer, lines in journals.items():
            Path(folder, f"{writer}-0.jsonl").write_bytes(b"".join(lines))
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
        _complain(f"{tally.rejected:,} events rejected, the first: {tally.first_reason}", 1)
    if left:
        _complain(f"{left:,} bytes not acknowledged; the last answer: {tally.last_answer}", 1)
    return not left and not tally.rejected


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


def _complain(text: str, status: int) -> int:
    print(f"ett import: {text}", file=sys.stderr)
    return status
