"""Which logs can be read, how they are recognised, and what becomes of files of one kind.

Pure: takes the contents of files in pieces that the caller reads. What is held does not grow with the
length of a log, but with the number of jobs in a table of them, and of processes of torchtitan.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TypeAlias

import msgspec

from ett_cli.imports import acme, philly, runs, sacct, torchrun, torchtitan
from ett_cli.imports.texts import lines_of
from ett_core.events import AnyEvent
from ett_core.lines import BadLine

HEAD = 1 << 16
"""Bytes that are looked at to recognise a format."""
NAMES = (torchrun.NAME, torchtitan.NAME, sacct.NAME, philly.NAME, acme.NAME)


class Log(msgspec.Struct, frozen=True):
    """A log: its name, its contents, and when it was last written (Unix seconds).

    `pieces` gives the contents from their beginning, each time it is called; some formats are read twice.
    """

    name: str
    pieces: Callable[[], Iterable[bytes]]
    written_at: float


Found: TypeAlias = AnyEvent | BadLine
"""What a log holds: events, and what could not be used."""


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


def imported(name: str, logs: Sequence[Log], zone: dt.tzinfo | None, job_id: str = "") -> Iterator[Found]:
    """What logs of one format hold, as it is read; the events of a writer come in the order of their numbers.

    Args:
        name: of the format, one of `NAMES`.
        logs: of one job where the format holds one job a file.
        zone: of times that name none; None is that of this machine.
        job_id: the name of the job where the logs do not tell it.
    """
    return _READERS[name](logs, zone, job_id)


def in_order(event: AnyEvent) -> tuple[str, float, int, str, int]:
    """The key by which events of a job are in the order of their time."""
    return event.job_id, event.time, event.attempt, event.writer, event.seq


def _of_torchrun(logs: Sequence[Log], zone: dt.tzinfo | None, job_id: str) -> Iterator[Found]:
    stated = [torchrun.stated(_text_lines(log), zone) for log in logs]
    named = next((each.run_id for each in stated if each.run_id), "")
    job = job_id or f"torchrun-{named or _stem(logs[0])}"
    if not runs.is_job_id(job):
        job = f"torchrun-{_allowed(named)}"
    for place, log in enumerate(logs):
        node = _stem(log) if len(logs) > 1 else ""
        latest = stated[place].latest
        years = torchrun.Years(log.written_at if latest is None else latest, zone)
        agent = torchrun.Agent(job, log.name, years, node=node, key=str(place))
        for number, line in enumerate(_text_lines(log), 1):
            yield from agent.take(number, line)


def _of_torchtitan(logs: Sequence[Log], _zone: dt.tzinfo | None, job_id: str) -> Iterator[Found]:
    def records() -> Iterator[torchtitan.Record | BadLine]:
        return (found for log in logs for found in torchtitan.records(lines_of(log.pieces()), log.name))

    folder = PurePath(logs[0].name).parent if logs else PurePath()
    outer = folder.parent.name if folder.name == "structured_logs" else folder.name
    return torchtitan.events_of(job_id or f"torchtitan-{_allowed(outer) or 'job'}", records)


def _of_jobs(source: str, found: Iterable[runs.Job | BadLine]) -> Iterator[Found]:
    """The events of the jobs; of two records of one job the one that knows how it ended counts."""
    jobs: dict[str, runs.Job] = {}
    for job in found:
        if isinstance(job, BadLine):
            yield job
        elif job.job_id not in jobs or job.status or not jobs[job.job_id].status:
            jobs[job.job_id] = job
    for job in jobs.values():
        yield from runs.events_of(job, source)


def _of_sacct(logs: Sequence[Log], zone: dt.tzinfo | None, _job_id: str) -> Iterator[Found]:
    jobs = (job for log in logs for job in sacct.jobs(_text_lines(log), log.name, zone))
    return _of_jobs(sacct.NAME, jobs)


def _of_acme(logs: Sequence[Log], zone: dt.tzinfo | None, _job_id: str) -> Iterator[Found]:
    jobs = (job for log in logs for job in acme.jobs(_text_lines(log), log.name, zone))
    return _of_jobs(acme.NAME, jobs)


def _of_philly(logs: Sequence[Log], zone: dt.tzinfo | None, _job_id: str) -> Iterator[Found]:
    jobs = (job for log in logs for job in philly.jobs(log.pieces(), log.name, zone))
    return _of_jobs(philly.NAME, jobs)


_Reader = Callable[[Sequence[Log], dt.tzinfo | None, str], Iterator[Found]]
_READERS: Mapping[str, _Reader] = {
    torchrun.NAME: _of_torchrun,
    torchtitan.NAME: _of_torchtitan,
    sacct.NAME: _of_sacct,
    acme.NAME: _of_acme,
    philly.NAME: _of_philly,
}


def _text_lines(log: Log) -> Iterator[str]:
    return (line.decode("utf-8", "replace") for line in lines_of(log.pieces()))


def _stem(log: Log) -> str:
    return _allowed(PurePath(log.name).stem) or "job"


def _allowed(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:100].strip("-")
