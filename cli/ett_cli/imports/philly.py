"""The job log of the Philly traces: one JSON array of jobs with their attempts.

The scheduler retries a job that failed, so an attempt that another one follows has failed. Attempts
may be missing, lack their end, or lack their start.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator

import msgspec

from ett_cli.imports.runs import Job, Run, is_job_id
from ett_cli.imports.texts import elements_of
from ett_cli.imports.times import moment
from ett_core.lines import BadLine

NAME = "philly"
STATUSES = {"Pass": "succeeded", "Failed": "failed", "Killed": "cancelled"}


class _Detail(msgspec.Struct, frozen=True):
    ip: str = ""
    gpus: list[str] = []


class _Attempt(msgspec.Struct, frozen=True):
    start_time: str | None = None
    end_time: str | None = None
    detail: list[_Detail] = []


class _Row(msgspec.Struct, frozen=True):
    jobid: str
    status: str
    attempts: list[_Attempt] = []
    vc: str | None = None
    user: str | None = None


def jobs(pieces: Iterable[bytes], source: str, zone: dt.tzinfo | None) -> Iterator[Job | BadLine]:
    """The jobs of a log, and what could not be used of it; rows count as lines.

    Args:
        pieces: of the log, in order.
        source: what it is called in reports.
        zone: of its times; None is that of this machine.
    """
    seen: set[str] = set()
    number = 1
    try:
        for number, element in elements_of(pieces):
            yield from _of_element(element, BadLine(source, number, ""), zone, seen)
    except ValueError as error:
        yield BadLine(source, number, f"not a JSON array of jobs ({error})")


def _of_element(
    element: bytes, where: BadLine, zone: dt.tzinfo | None, seen: set[str]
) -> Iterator[Job | BadLine]:
    try:
        row = msgspec.json.decode(element, type=_Row)
    except (ValueError, RecursionError) as error:
        yield _bad(where, str(error))
        return
    yield from _job(row, where, zone, seen)


def _job(row: _Row, where: BadLine, zone: dt.tzinfo | None, seen: set[str]) -> Iterator[Job | BadLine]:
    job_id = f"philly-{row.jobid}"
    if not is_job_id(job_id) or job_id in seen:
        yield _bad(where, f"jobid {row.jobid[:60]!r} is no name for a job, or stands here for a second time")
        return
    if row.status not in STATUSES:
        yield _bad(where, f"status {row.status[:40]!r} is not known")
        return
    seen.add(job_id)
    runs: list[Run] = []
    for place, attempt in enumerate(row.attempts):
        is_last = place == len(row.attempts) - 1
        status = STATUSES[row.status] if is_last else "failed"
        found = _run(place, attempt, status, zone, runs)
        if isinstance(found, str):
            yield _bad(where, f"attempt {place}: {found}")
            continue
        if found.started_at is None or found.ended_at is None:
            missing = "start" if found.started_at is None else "end"
            yield _bad(where, f"attempt {place}: its {missing} is unknown and left out")
        runs.append(found)
    if not runs:
        yield _bad(where, "it has no attempt that could be used")
        return
    labels = {"vc": row.vc or "", "user": row.user or ""}
    yield Job(
        job_id=job_id,
        runs=runs,
        status=STATUSES[row.status],
        labels={label: text[:1024] for label, text in labels.items() if text},
    )


def _run(place: int, attempt: _Attempt, status: str, zone: dt.tzinfo | None, before: list[Run]) -> Run | str:
    """The run of an attempt, or why there is none."""
    try:
        start = moment(attempt.start_time or "", zone)
        end = moment(attempt.end_time or "", zone, not_before=start)
    except ValueError as error:
        return str(error)
    if start is None and end is None:
        return "it has neither a start nor an end"
    if start is not None and end is not None and end < start:
        return f"it ends ({attempt.end_time}) before it starts ({attempt.start_time})"
    return Run(
        number=place,
        started_at=start,
        allocated_at=start if not before or before[-1].ended_at is not None else None,
        ended_at=end,
        status=status if end is not None else "",
        node=attempt.detail[0].ip if attempt.detail else "",
        accelerators=sum(len(detail.gpus) for detail in attempt.detail),
    )


def _bad(where: BadLine, reason: str) -> BadLine:
    return BadLine(where.source, where.line, reason)
