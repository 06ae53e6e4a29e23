"""Who is speaking: job, attempt, rank and node, read from what surrounds a process.

Reads a mapping, `/proc`, the files of Kubernetes' downward API, and the note of a torchrun agent's
starts (the only thing that is written here). Which variable counts for what stands in `placement`.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Callable, Mapping
from itertools import islice

import msgspec

from ett_core.events import LABEL_CHARACTERS, MOST_LABELS
from ett_trainer_hooks.guard import warn_on_stderr
from ett_trainer_hooks.identity import placement
from ett_trainer_hooks.identity.elastic_starts import starts_before
from ett_trainer_hooks.identity.kubernetes import with_podinfo
from ett_trainer_hooks.identity.values import Values
from ett_trainer_hooks.procfs import process_started_at

LABEL_PREFIX = "ETT_LABEL_"
MAX_JOB_ID = 128
LABELS_BYTES = 32 << 10
"""Of all labels together, names and values: half of what a line may have."""
LABELS_CUT = (
    f"the labels of this job are more than {MOST_LABELS}, or longer than {LABEL_CHARACTERS} characters "
    f"or {LABELS_BYTES >> 10} KiB together; what is beyond that is left out"
)


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


def identity_from_env(  # noqa: PLR0913 - the world is injected
    environ: Mapping[str, str],
    *,
    node: str | None = None,
    pid: int | None = None,
    writer: str | None = None,
    warn: Callable[[str], object] = warn_on_stderr,
    surrounded: Callable[[Mapping[str, str]], Mapping[str, str]] = with_podinfo,
) -> Identity:
    """The identity of this process.

    Args:
        environ: the variables of the process.
        node: the name of the machine, where it is known better.
        pid: of the process.
        writer: the name of the writing process; a new one by default.
        warn: takes a sentence for each variable of a scheduler or launcher that cannot be understood
            and is left out; only the first rank of a node warns.
        surrounded: adds what is known besides the variables.

    Raises:
        ValueError: there is no job id, or a variable of ours cannot be understood; the message names it.
    """
    environ = surrounded(environ)
    values = Values(environ)
    job_id = placement.job_id(values)
    if not job_id:
        raise ValueError("ETT_JOB_ID is not set, and no scheduler names the job")
    process = os.getpid() if pid is None else pid
    accelerators, accelerator_type = placement.accelerators(values)
    said = {**placement.labels(values), **labels_from_env(environ)}
    labels = labels_taken(said)
    who = Identity(
        job_id=sanitised_job_id(job_id),
        writer=new_writer() if writer is None else writer,
        attempt=_attempt(values, starts_before(environ, process)),
        rank=placement.rank(values),
        node=placement.node(values, socket.gethostname()) if node is None else node,
        world_size=placement.world_size(values),
        accelerators=accelerators,
        accelerator_type=accelerator_type,
        allocated_at=placement.allocated_at(values),
        process_started_at=process_started_at(started_as(environ, process)),
        labels=labels,
    )
    if values.number("LOCAL_RANK") in (None, 0):
        for sentence in (*values.ignored.values(), *(() if labels == said else (LABELS_CUT,))):
            warn(sentence)
    return who


def started_as(environ: Mapping[str, str], process: int) -> int:
    """The process whose start counts: the one that a standby runs in the place of, else `process`.

    >>> started_as({"ETT_STANDS_FOR": "70:4711"}, 70), started_as({"ETT_STANDS_FOR": "70:4711"}, 71)
    (4711, 71)
    """
    standby, _, rank = environ.get("ETT_STANDS_FOR", "").partition(":")
    return int(rank) if standby == str(process) and rank.isdecimal() else process


def new_writer() -> str:
    """A random name for a writing process: 64 bits in hexadecimal digits."""
    return secrets.token_hex(8)


def _attempt(values: Values, starts: int) -> int:
    """Which start of the job this is: scheduler restarts in thousands, and elastic ones.

    It grows across every kind of restart; `starts` also counts those that other nodes caused.

    >>> _attempt(Values({"SLURM_RESTART_COUNT": "2", "TORCHELASTIC_RESTART_COUNT": "1"}), 0)
    2001
    >>> _attempt(Values({"ETT_ATTEMPT": "7", "SLURM_RESTART_COUNT": "2"}), 0)
    7
    """
    elastic = values.number("TORCHELASTIC_RESTART_COUNT") or 0
    return placement.attempt_base(values) + max(elastic, starts)


def job_id_from_env(environ: Mapping[str, str]) -> str:
    """The name that our variable or a scheduler gives the job; nothing where none does.

    >>> job_id_from_env({"SLURM_JOB_ID": "77"}), job_id_from_env({})
    ('slurm-77', '')
    """
    return placement.job_id(Values(with_podinfo(environ)))


def launch_from_env(environ: Mapping[str, str]) -> int:
    """The number that our variable or a scheduler gives this start of the job, before elastic restarts.

    Raises:
        ValueError: `ETT_ATTEMPT` is no number.

    >>> launch_from_env({"SLURM_RESTART_COUNT": "2"}), launch_from_env({})
    (2000, 0)
    """
    return placement.attempt_base(Values(with_podinfo(environ)))


def is_first_node(environ: Mapping[str, str]) -> bool:
    """Whether this launcher is the first, or the only, one of its job.

    Raises:
        ValueError: `ETT_NODE_RANK` is no number.

    >>> is_first_node({}), is_first_node({"SLURM_NODEID": "0"}), is_first_node({"NODE_RANK": "3"})
    (True, True, False)
    """
    return placement.is_first(Values(with_podinfo(environ)))


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


def labels_taken(said: Mapping[str, str]) -> dict[str, str]:
    """Labels so many and so long that a reader takes them: what describes a job costs no word of its start.

    >>> {name: len(value) for name, value in labels_taken({"team": "ads", "notes": "x" * 5000}).items()}
    {'team': 3, 'notes': 1024}
    """
    labels: dict[str, str] = {}
    room = LABELS_BYTES
    for name, value in islice(said.items(), MOST_LABELS):
        name_kept, value_kept = name[:LABEL_CHARACTERS], value[:LABEL_CHARACTERS]
        room -= len((name_kept + value_kept).encode("utf-8", "replace"))
        if room >= 0:
            labels[name_kept] = value_kept
    return labels


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
