"""Which logs can be read, how they are recognised, and what becomes of files of one kind.

Pure: takes the contents of files that the caller has read.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

import msgspec

from ett_cli.imports import acme, philly, runs, sacct, torchrun, torchtitan
from ett_core.events import AnyEvent
from ett_core.lines import BadLine

HEAD = 1 << 16
"""Characters that are looked at to recognise a format."""
NAMES = (torchrun.NAME, torchtitan.NAME, sacct.NAME, philly.NAME, acme.NAME)


class Log(msgspec.Struct, frozen=True):
    """A file that was read: its name, its contents, and when it was last written (Unix seconds)."""

    name: str
    data: bytes
    written_at: float


class Imported(msgspec.Struct, frozen=True):
    """What a log held: events in the order of time of each job, and what could not be used."""

    events: Sequence[AnyEvent]
    bad: Sequence[BadLine]
    lines: int


def recognised(data: bytes) -> str | None:
    r"""The format of a log by its beginning; None where it is none of ours.

    >>> recognised(b"JobID|State|Start|End\n")
    'sacct'
    """
    text = data[:HEAD].decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    first = text.partition("\n")[0]
    if text.startswith("{") and '"log_type_name"' in first:
        return torchtitan.NAME
    if text.startswith("[") and re.search(r'"(?:jobid|attempts)"', text):
        return philly.NAME
    columns = {name.strip() for name in first.split("|")}
    if {"JobID", "State"} <= columns:
        return sacct.NAME
    if {"job_id", "state", "start_time"} <= {name.strip() for name in first.split(",")}:
        return acme.NAME
    return torchrun.NAME if re.search(r"torch[/.]distributed[/.](?:elastic|run|launcher)", text) else None


def imported(name: str, logs: Sequence[Log], zone: dt.tzinfo | None, job_id: str = "") -> Imported:
    """The events of logs of one format.

    Args:
        name: of the format, one of `NAMES`.
        logs: of one job where the format holds one job a file.
        zone: of times that name none; None is that of this machine.
        job_id: the name of the job where the logs do not tell it.
    """
    bad: list[BadLine] = []
    lines = sum(log.data.count(b"\n") + bool(log.data and not log.data.endswith(b"\n")) for log in logs)
    found = _READERS[name](logs, zone, job_id, bad)
    ordered = sorted(
        found, key=lambda event: (event.job_id, event.time, event.attempt, event.writer, event.seq)
    )
    return Imported(ordered, bad, lines)


def _of_torchrun(
    logs: Sequence[Log], zone: dt.tzinfo | None, job_id: str, bad: list[BadLine]
) -> Iterator[AnyEvent]:
    named = job_id or next(filter(None, (torchrun.run_id(_text_lines(log)) for log in logs)), "")
    for place, log in enumerate(logs):
        job = job_id or (f"torchrun-{named}" if named else f"torchrun-{_stem(logs[0])}")
        node = _stem(log) if len(logs) > 1 else ""
        latest = torchrun.stated(log.data.decode("utf-8", "replace"), zone)
        years = torchrun.Years(log.written_at if latest is None else latest, zone)
        agent = torchrun.Agent(job, log.name, years, node=node, key=str(place))
        for number, line in enumerate(_text_lines(log), 1):
            yield from agent.take(number, line)
        bad += agent.problems


def _of_torchtitan(
    logs: Sequence[Log], _zone: dt.tzinfo | None, job_id: str, bad: list[BadLine]
) -> Iterator[AnyEvent]:
    found: list[torchtitan.Record] = []
    for log in logs:
        for record in torchtitan.records(log.data.split(b"\n"), log.name):
            if isinstance(record, BadLine):
                bad.append(record)
            else:
                found.append(record)
    folder = PurePath(logs[0].name).parent if logs else PurePath()
    outer = folder.parent.name if folder.name == "structured_logs" else folder.name
    yield from torchtitan.events_of(job_id or f"torchtitan-{_allowed(outer) or 'job'}", found)


def _of_jobs(source: str, found: Iterable[runs.Job | BadLine], bad: list[BadLine]) -> Iterator[AnyEvent]:
    """The events of the jobs; of two records of one job the one that knows how it ended counts."""
    jobs: dict[str, runs.Job] = {}
    for job in found:
        if isinstance(job, BadLine):
            bad.append(job)
        elif job.job_id not in jobs or job.status or not jobs[job.job_id].status:
            jobs[job.job_id] = job
    for job in jobs.values():
        yield from runs.events_of(job, source)


def _of_sacct(
    logs: Sequence[Log], zone: dt.tzinfo | None, _job_id: str, bad: list[BadLine]
) -> Iterator[AnyEvent]:
    jobs = (job for log in logs for job in sacct.jobs(_text_lines(log), log.name, zone))
    return _of_jobs(sacct.NAME, jobs, bad)


def _of_acme(
    logs: Sequence[Log], zone: dt.tzinfo | None, _job_id: str, bad: list[BadLine]
) -> Iterator[AnyEvent]:
    jobs = (job for log in logs for job in acme.jobs(_text_lines(log), log.name, zone))
    return _of_jobs(acme.NAME, jobs, bad)


def _of_philly(
    logs: Sequence[Log], zone: dt.tzinfo | None, _job_id: str, bad: list[BadLine]
) -> Iterator[AnyEvent]:
    jobs = (job for log in logs for job in philly.jobs(log.data, log.name, zone))
    return _of_jobs(philly.NAME, jobs, bad)


_Reader = Callable[[Sequence[Log], dt.tzinfo | None, str, list[BadLine]], Iterator[AnyEvent]]
_READERS: Mapping[str, _Reader] = {
    torchrun.NAME: _of_torchrun,
    torchtitan.NAME: _of_torchtitan,
    sacct.NAME: _of_sacct,
    acme.NAME: _of_acme,
    philly.NAME: _of_philly,
}


def _text_lines(log: Log) -> Iterator[str]:
    return (line.decode("utf-8", "replace") for line in log.data.split(b"\n"))


def _stem(log: Log) -> str:
    return _allowed(PurePath(log.name).stem) or "job"


def _allowed(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:100].strip("-")
