"""The runs of a job as a scheduler's records tell of them, and the events that they are.

A scheduler sees allocations, not training: each run is an attempt about which only a launcher
speaks, so its time is unobserved. Pure functions over frozen rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ett_core import events
from ett_core.events import JOB_ID_PATTERN, LAUNCHER_RANK, AnyEvent

ATTEMPTS_PER_RESTART = 1000
SLOTS_PER_RUN = 8
START, ALIVE, EVIDENCE, FAILURE, END, JOB_END = range(6)
"""Places of the events of a run among its sequence numbers: a longer log changes no earlier number."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a job. Times are Unix seconds, None where the log does not tell them.

    `status` is one of `attempt_end`, empty while the run goes on or where nobody tells.
    `allocated_at` is given only where the hardware was not held before.
    """

    number: int
    started_at: float | None = None
    allocated_at: float | None = None
    ended_at: float | None = None
    alive_at: float | None = None
    failed_at: float | None = None
    status: str = ""
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    evidence: str = ""
    node: str = ""
    accelerators: int = 0
    accelerator_type: str = ""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job and its runs in order; `status` is how it ended, empty where it goes on or nobody tells.

    Where it has ended and nobody tells when, its last run counts no time.
    """

    job_id: str
    runs: Sequence[Run]
    status: str = ""
    labels: Mapping[str, str] = {}


def events_of(job: Job, source: str) -> Iterator[AnyEvent]:
    """The events of a job that a log of the kind `source` tells, the same each time it is read."""
    writer = writer_of(source, job.job_id)
    for place, run in enumerate(_until_the_next(job.runs)):
        is_last = place == len(job.runs) - 1
        for slot, kind, at, fields in _told(job, run, is_last=is_last):
            yield kind(
                job_id=job.job_id,
                writer=writer,
                seq=place * SLOTS_PER_RUN + slot,
                attempt=run.number * ATTEMPTS_PER_RESTART,
                rank=LAUNCHER_RANK,
                node=run.node[:256],
                time=at,
                **fields,
            )


def _until_the_next(runs: Sequence[Run]) -> Iterator[Run]:
    """The runs; where the end of one is unknown, all the time up to the next one is its (and unobserved)."""
    for run, following in zip(runs, [*runs[1:], None], strict=True):
        if run.ended_at is None and following is not None:
            moments = (following.started_at, following.ended_at)
            yield msgspec.structs.replace(run, alive_at=next(filter(None, moments), run.alive_at))
        else:
            yield run


def _told(job: Job, run: Run, *, is_last: bool) -> Iterator[tuple[int, Any, float, dict[str, Any]]]:
    if run.started_at is not None:
        held = {"accelerators": run.accelerators, "accelerator_type": run.accelerator_type}
        about = {"allocated_at": run.allocated_at, "labels": dict(job.labels)}
        yield START, events.AttemptStart, run.started_at, {**held, **about}
    if run.alive_at is not None:
        yield ALIVE, events.Heartbeat, run.alive_at, {}
    if run.ended_at is None:
        if is_last and job.status and run.started_at is not None:
            yield END, events.AttemptEnd, run.started_at, {"status": job.status}
            yield JOB_END, events.JobEnd, run.started_at, {"status": job.status}
        return
    if run.evidence:
        yield EVIDENCE, events.Evidence, run.ended_at, {"source": "scheduler", "text": run.evidence}
    if run.status == "failed":
        why = {"exit_code": run.exit_code, "signal": run.signal, "message": run.message or None}
        yield FAILURE, events.Failure, run.ended_at if run.failed_at is None else run.failed_at, why
    if run.status:
        yield END, events.AttemptEnd, run.ended_at, {"status": run.status, "exit_code": run.exit_code}
    if is_last and job.status:
        yield JOB_END, events.JobEnd, run.ended_at, {"status": job.status}


def writer_of(*parts: object) -> str:
    """The name of a writer that these words, and no others, make.

    >>> writer_of("sacct", "slurm-1") == writer_of("sacct", "slurm-1") != writer_of("sacct", "slurm-2")
    True
    """
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def is_job_id(text: str) -> bool:
    """Whether events can carry it."""
    return JOB_ID_PATTERN.fullmatch(text) is not None
