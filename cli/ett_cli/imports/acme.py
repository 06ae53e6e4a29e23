"""Rows of the Acme and Helios traces (CSV): one start of one job each.

`duration` and `queue` are left alone: of some clusters the published durations count from the
submission. The start is when the hardware was given; the time in the queue before it is not of the job.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping

from ett_cli.imports.runs import Job, Run, is_job_id
from ett_cli.imports.tables import count, records
from ett_cli.imports.times import moment
from ett_core.lines import BadLine

NAME = "acme"
WANTED = ("job_id", "state", "start_time", "end_time")
STATUSES = {
    "COMPLETED": "succeeded",
    "FAILED": "failed",
    "NODE_FAIL": "failed",
    "OUT_OF_MEMORY": "failed",
    "TIMEOUT": "timed_out",
    "CANCELLED": "cancelled",
}
LABELS = {"user": "user", "cluster": "source", "type": "type", "vc": "vc", "vc_or_type": "vc_or_type"}


def jobs(lines: Iterable[str], source: str, zone: dt.tzinfo | None) -> Iterator[Job | BadLine]:
    """The jobs of a table, and the lines that could not be used.

    Args:
        lines: of the table, the header first.
        source: what it is called in reports.
        zone: of times that name none; None is that of this machine.
    """
    seen: set[str] = set()
    for record in records(lines, source, ",", WANTED, quoted=True):
        if isinstance(record, BadLine):
            yield record
            continue
        number, fields = record
        try:
            job = _job(fields, zone)
            if job.job_id in seen:
                raise ValueError(f"job {fields['job_id']} stands here for a second time")  # noqa: TRY301
        except ValueError as error:
            yield BadLine(source, number, str(error))
            continue
        seen.add(job.job_id)
        yield job


def _job(fields: Mapping[str, str], zone: dt.tzinfo | None) -> Job:
    cluster = fields.get("source", "").strip() or "acme"
    job_id = f"{cluster}-{fields['job_id'].strip()}"
    if not fields["job_id"].strip() or not is_job_id(job_id):
        raise ValueError(f"job_id {fields['job_id'][:40]!r} is no name for a job")
    state = fields["state"].strip().upper()
    if state not in STATUSES:
        raise ValueError(f"state {fields['state'][:40]!r} is not known")
    start = moment(fields["start_time"], zone)
    if start is None:
        raise ValueError(f"it never started ({state})")
    end = moment(fields["end_time"], zone, not_before=start)
    if end is None:
        raise ValueError(f"its end is unknown though it is {state}")
    if end < start:
        raise ValueError(f"it ends ({fields['end_time']}) before it starts ({fields['start_time']})")
    failed_at = moment(fields.get("fail_time", ""), zone, not_before=start)
    status = STATUSES[state]
    run = Run(
        number=0,
        started_at=start,
        allocated_at=start,
        ended_at=end,
        failed_at=failed_at if failed_at is not None and start <= failed_at <= end else None,
        status=status,
        message="" if status != "failed" else f"the scheduler says {state}",
        accelerators=count(fields.get("gpu_num", "")),
    )
    labels = {
        label: text[:1024] for label, column in LABELS.items() if (text := fields.get(column, "").strip())
    }
    return Job(job_id=job_id, runs=[run], status=status, labels=labels)
