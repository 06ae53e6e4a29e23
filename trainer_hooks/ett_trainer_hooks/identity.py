"""Who is speaking: job, attempt, rank and node, read from the environment of a process.

Pure functions over a mapping and a `/proc` root; nothing here writes.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

ATTEMPTS_PER_RESTART = 1000
"""A restart by the scheduler counts this much, so that elastic restarts fit between two."""

LABEL_PREFIX = "ETT_LABEL_"
MAX_JOB_ID = 128
RANK_VARIABLES = ("RANK", "SLURM_PROCID")
WORLD_SIZE_VARIABLES = ("WORLD_SIZE", "SLURM_NTASKS")
NODE_VARIABLES = ("GROUP_RANK", "PET_NODE_RANK", "NODE_RANK", "SLURM_NODEID", "JOB_COMPLETION_INDEX")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What every event of one process has in common, and what its `attempt_start` says."""

    job_id: str
    writer: str
    attempt: int = 0
    rank: int = 0
    node: str = ""
    world_size: int = 0
    accelerators: int = 0
    accelerator_type: str = ""
    allocated_at: float | None = None
    process_started_at: float | None = None
    labels: dict[str, str] = {}


def identity_from_env(
    environ: Mapping[str, str], *, node: str | None = None, pid: int | None = None, writer: str | None = None
) -> Identity:
    """The identity of this process; `ETT_JOB_ID` must be set.

    Raises:
        ValueError: a variable that must be a number is none; the message names it.
    """
    return Identity(
        job_id=sanitised_job_id(environ["ETT_JOB_ID"]),
        writer=new_writer() if writer is None else writer,
        attempt=attempt_number(environ),
        rank=_first_number(environ, RANK_VARIABLES) or 0,
        node=socket.gethostname() if node is None else node,
        world_size=_first_number(environ, WORLD_SIZE_VARIABLES) or 0,
        accelerators=_number(environ, "ETT_ACCELERATORS"),
        accelerator_type=environ.get("ETT_ACCELERATOR_TYPE", ""),
        allocated_at=_seconds(environ, "ETT_ALLOCATED_AT"),
        process_started_at=process_started_at(os.getpid() if pid is None else pid),
        labels=labels_from_env(environ),
    )


def new_writer() -> str:
    """A random name for a writing process: 64 bits in hexadecimal digits."""
    return secrets.token_hex(8)


def attempt_number(environ: Mapping[str, str]) -> int:
    """Which start of the job this is; it grows across every kind of restart.

    >>> attempt_number({"SLURM_RESTART_COUNT": "2", "TORCHELASTIC_RESTART_COUNT": "1"})
    2001
    >>> attempt_number({"ETT_ATTEMPT": "7", "SLURM_RESTART_COUNT": "2"})
    7
    """
    base = _number(environ, "SLURM_RESTART_COUNT") * ATTEMPTS_PER_RESTART
    if environ.get("ETT_ATTEMPT"):
        base = _number(environ, "ETT_ATTEMPT")
    return base + _number(environ, "TORCHELASTIC_RESTART_COUNT")


def is_first_node(environ: Mapping[str, str]) -> bool:
    """Whether this is the first, or the only, node of its job.

    >>> is_first_node({}), is_first_node({"SLURM_NODEID": "0"}), is_first_node({"NODE_RANK": "3"})
    (True, True, False)
    """
    return not _first_number(environ, NODE_VARIABLES)


def labels_from_env(environ: Mapping[str, str]) -> dict[str, str]:
    """Labels given as `ETT_LABEL_<NAME>`, under their lower-case names.

    >>> labels_from_env({"ETT_LABEL_TEAM": "ads", "HOME": "/root"})
    {'team': 'ads'}
    """
    return {
        name[len(LABEL_PREFIX) :].lower(): value
        for name, value in sorted(environ.items())
        if name.startswith(LABEL_PREFIX) and len(name) > len(LABEL_PREFIX)
    }


def label_variable(name: str) -> str:
    """The environment variable that carries a label.

    >>> label_variable("job-name")
    'ETT_LABEL_JOB_NAME'
    """
    return LABEL_PREFIX + re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def sanitised_job_id(text: str) -> str:
    """The text with everything that a job id may not hold replaced by `-`, at most 128 long.

    >>> sanitised_job_id("ads rank/v2 (köln)")
    'ads-rank/v2--k-ln-'
    """
    return re.sub(r"[^A-Za-z0-9._:/@-]", "-", text)[:MAX_JOB_ID] or "-"


def process_started_at(pid: int, proc: Path = Path("/proc")) -> float | None:
    """Unix seconds at which a process started, to 10 ms; None where `/proc` does not tell."""
    ticks = start_ticks(pid, proc)
    try:
        uptime_s = float((proc / "uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    if ticks is None:
        return None
    return time.time() - max(uptime_s - ticks / os.sysconf("SC_CLK_TCK"), 0.0)


def start_ticks(pid: int, proc: Path = Path("/proc")) -> int | None:
    """Start of a live process in clock ticks since boot; None where it is gone or a zombie."""
    try:
        after_name = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return None if after_name[0] in "ZX" else int(after_name[19])
    except (OSError, ValueError, IndexError):
        return None


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "").strip() or "0"
    if not text.isdecimal():
        raise ValueError(f"{name}={text!r} is not a whole number of 0 or more")
    return int(text)


def _first_number(environ: Mapping[str, str], names: Sequence[str]) -> int | None:
    """The number in the first of the variables that is set, None where none is."""
    return next((_number(environ, name) for name in names if environ.get(name, "").strip()), None)


def _seconds(environ: Mapping[str, str], name: str) -> float | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    try:
        moment = float(text)
    except ValueError:
        moment = -1.0
    if not 0 < moment < 4e9:  # noqa: PLR2004 - the range of UnixSeconds
        raise ValueError(f"{name}={text!r} is not a time in Unix seconds")
    return moment
