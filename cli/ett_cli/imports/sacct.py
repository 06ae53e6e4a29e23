"""Slurm's accounting, as `sacct --parsable2` prints it.

One line a job, a start of it (`--duplicates` shows each requeue) or a step. Steps are left out, as the
line of the job holds their time. The start of a line is when Slurm gave the nodes.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ett_cli.imports.runs import Job, Run, is_job_id
from ett_cli.imports.tables import count, records
from ett_cli.imports.times import moment
from ett_core.lines import BadLine

NAME = "sacct"
LARGEST_SIGNAL = 64
"""Slurm puts numbers of its own above, such as 125 for a lack of memory."""
WANTED = ("JobID", "State", "Start", "End")
STATUSES = {
    "COMPLETED": "succeeded",
    "FAILED": "failed",
    "NODE_FAIL": "failed",
    "OUT_OF_MEMORY": "failed",
    "BOOT_FAIL": "failed",
    "LAUNCH_FAILED": "failed",
    "RECONFIG_FAIL": "failed",
    "TIMEOUT": "timed_out",
    "DEADLINE": "timed_out",
    "CANCELLED": "cancelled",
    "PREEMPTED": "preempted",
    "REQUEUED": "preempted",
    "SPECIAL_EXIT": "failed",
}
"""State to the status of an attempt; a job that was requeued lost its nodes to the scheduler."""
GOING_ON = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT")
NOT_BEGUN = ("PENDING", "CONFIGURING", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "REVOKED")
LABELS = {
    "job_name": "JobName",
    "user": "User",
    "account": "Account",
    "partition": "Partition",
    "cluster": "Cluster",
    "qos": "QOS",
}
_JOB = re.compile(r"(\d+(?:_\d+)?)(?:\+(\d+))?")
_STEP = re.compile(r"\d+(?:_\d+|_\[[^\]]*\])?(?:\+\d+)?\..+")
_WAITING_ARRAY = re.compile(r"\d+_\[[^\]]*\]")
_GPU = re.compile(r"gres/gpu(?::([^=,]+))?=(\d{1,9})")
_ELAPSED = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?")


class _Row(msgspec.Struct, frozen=True):
    line: int
    state: str
    start: float
    end: float | None
    fields: Mapping[str, str]


def jobs(lines: Iterable[str], source: str, zone: dt.tzinfo | None) -> Iterator[Job | BadLine]:
    """The jobs of a table, and the lines that could not be used.

    Args:
        lines: of the table, the header first.
        source: what it is called in reports.
        zone: of its times; None is that of this machine.
    """
    rows: dict[tuple[str, str], dict[int, list[_Row]]] = {}
    waiting: set[tuple[str, str]] = set()
    for record in records(lines, source, "|", WANTED, quoted=False):
        if isinstance(record, BadLine):
            yield record
            continue
        number, fields = record
        job = _JOB.fullmatch(fields["JobID"])
        if _STEP.fullmatch(fields["JobID"]):
            continue
        try:
            if job is None and not _WAITING_ARRAY.fullmatch(fields["JobID"]):
                raise ValueError(f"JobID {fields['JobID'][:40]!r} is none")  # noqa: TRY301 - told as the others
            row = _row(number, fields, zone)
        except ValueError as error:
            yield BadLine(source, number, str(error))
            if job and _state(fields) in NOT_BEGUN:
                waiting.add((fields.get("Cluster", ""), job[1]))
            continue
        if job is None:
            yield BadLine(source, number, "an array task that has not begun")
            continue
        parts = rows.setdefault((fields.get("Cluster", ""), job[1]), {})
        parts.setdefault(int(job[2] or 0), []).append(row)
    for (cluster, name), parts in rows.items():
        yield from _job(source, cluster, name, parts, is_waiting=(cluster, name) in waiting)


def _row(number: int, fields: Mapping[str, str], zone: dt.tzinfo | None) -> _Row:
    state = _state(fields)
    if state not in STATUSES and state not in GOING_ON and state not in NOT_BEGUN:
        raise ValueError(f"State {fields['State'][:40]!r} is not known")
    start = None if state in NOT_BEGUN else moment(fields["Start"], zone)
    if start is None:
        raise ValueError(f"it never started ({fields['State'][:40]})")
    end = moment(fields["End"], zone, not_before=start)
    if end is not None and end < start:
        raise ValueError(f"it ends ({fields['End']}) before it starts ({fields['Start']})")
    return _Row(number, state, start, None if state in GOING_ON else end, fields)


def _state(fields: Mapping[str, str]) -> str:
    """The state without what follows it, as in `CANCELLED by 1000`.

    >>> _state({"State": "CANCELLED by 1000"})
    'CANCELLED'
    """
    return (fields["State"].split() or [""])[0].removesuffix("+")


def _job(
    source: str, cluster: str, name: str, parts: Mapping[int, list[_Row]], *, is_waiting: bool
) -> Iterator[Job | BadLine]:
    """The job of the lines that carry one id; `parts` are its components where it is heterogeneous."""
    leader = sorted(parts[min(parts)], key=lambda row: (row.start, row.line))
    job_id = f"slurm-{cluster}-{name}" if cluster else f"slurm-{name}"
    if not is_job_id(job_id):
        yield BadLine(source, leader[0].line, f"{job_id[:60]!r} is no name for a job")
        return
    for row in leader:
        if row.end is None and row.state not in GOING_ON:
            yield BadLine(
                source, row.line, f"its end is unknown though it is {row.state}; no time is counted"
            )
    followers = [rows for part, rows in parts.items() if part != min(parts)]
    runs = _runs(leader, followers)
    last = leader[-1]
    is_over = not is_waiting and last.state != "REQUEUED"
    labels = {
        label: text[:1024]
        for label, column in LABELS.items()
        if (text := last.fields.get(column, "").strip())
    }
    yield Job(
        job_id=job_id,
        runs=runs,
        status=STATUSES.get(last.state, "") if is_over else "",
        labels={"scheduler": "slurm", **labels},
    )


def _runs(leader: Sequence[_Row], followers: Sequence[Sequence[_Row]]) -> list[Run]:
    runs: list[Run] = []
    for place, row in enumerate(leader):
        own = [row, *(rows[place] for rows in followers if place < len(rows))]
        held = [accelerators(part.fields.get("AllocTRES", "")) for part in own]
        kinds = {kind for number, kind in held if number}
        told = row.fields.get("Restarts", "").strip()
        number = count(told) if told.isdecimal() else place
        if runs and number <= runs[-1].number:
            number = runs[-1].number + 1
        gap_is_known = not runs or runs[-1].ended_at is not None
        exit_code, signal = _exit(row.fields.get("ExitCode", ""))
        status = STATUSES.get(row.state, "")
        runs.append(
            Run(
                number=number,
                started_at=row.start,
                allocated_at=row.start if gap_is_known else None,
                ended_at=row.end,
                alive_at=_alive_at(row),
                status=status,
                exit_code=exit_code if exit_code or status == "succeeded" else None,
                signal=signal,
                message=f"Slurm: {row.fields['State'].strip()}" if row.state != "FAILED" else "",
                evidence="" if status == "succeeded" else f"Slurm: {row.fields['State'].strip()}",
                node=first_node(row.fields.get("NodeList", "")),
                accelerators=sum(number for number, _ in held),
                accelerator_type=kinds.pop() if len(kinds) == 1 else "",
            )
        )
    return runs


def _alive_at(row: _Row) -> float | None:
    """When `sacct` was asked, of a job that went on; None where the table does not tell."""
    if row.state not in GOING_ON:
        return None
    seconds = count(row.fields.get("ElapsedRaw", "")) or _elapsed_s(row.fields.get("Elapsed", ""))
    return row.start + seconds if seconds else None


def _elapsed_s(text: str) -> int:
    """Seconds of `days-hours:minutes:seconds`.

    >>> _elapsed_s("1-02:03:04"), _elapsed_s("03:04"), _elapsed_s("")
    (93784, 184, 0)
    """
    found = _ELAPSED.fullmatch(text.strip())
    if not found:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _exit(text: str) -> tuple[int | None, int | None]:
    """Exit code and signal of `code:signal`.

    >>> _exit("1:0"), _exit("0:9"), _exit("")
    ((1, None), (None, 9), (None, None))
    """
    code, _, signal = text.strip().partition(":")
    number = count(signal)
    if number:
        return None, number if number <= LARGEST_SIGNAL else None
    return (count(code), None) if code.isdecimal() else (None, None)


def accelerators(tres: str) -> tuple[int, str]:
    """Number and type of the GPUs in a list of allocated resources.

    >>> accelerators("billing=16,cpu=128,gres/gpu:a100=8,gres/gpu=8,mem=1T,node=2")
    (8, 'a100')
    >>> accelerators("cpu=4,mem=8G")
    (0, '')
    """
    found = _GPU.findall(tres)
    typed = {kind: int(number) for kind, number in found if kind}
    total = sum(int(number) for kind, number in found if not kind)
    return total or sum(typed.values()), next(iter(typed)) if len(typed) == 1 else ""


def first_node(nodes: str) -> str:
    """The first of a list of nodes, on which the batch script runs.

    >>> first_node("gpu-[007-009,012],cpu1"), first_node("a1"), first_node("None assigned")
    ('gpu-007', 'a1', '')
    """
    if not nodes.strip() or nodes.strip().lower() in ("none assigned", "none", "(null)"):
        return ""
    text = re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", nodes.strip())
    return text.partition(",")[0]
