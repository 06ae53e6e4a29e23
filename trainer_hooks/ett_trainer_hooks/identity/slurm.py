"""What Slurm says of a process through its environment variables. Pure functions.

The variables are inherited by everything that runs in an allocation, so most of them describe the
job and only some the process: `SLURM_PROCID` is a rank in a task that `srun` started, and no more
than a left-over in a batch script (always 0), in an interactive shell, and in what another
launcher started there.
"""

from __future__ import annotations

import re

from ett_trainer_hooks.identity.values import Values

FIRST_SPECIAL_STEP = 4294967290
"""Steps from here on are no `srun`: the interactive shell, the batch script, and Slurm's own."""
INTERACTIVE_NAMES = ("interactive", "bash", "sh", "zsh", "fish")
LABELS = {
    "job_name": "SLURM_JOB_NAME",
    "cluster": "SLURM_CLUSTER_NAME",
    "partition": "SLURM_JOB_PARTITION",
    "account": "SLURM_JOB_ACCOUNT",
    "user": "SLURM_JOB_USER",
    "qos": "SLURM_JOB_QOS",
}


def is_there(values: Values) -> bool:
    """Whether this process belongs to a Slurm job."""
    return bool(values.text("SLURM_JOB_ID"))


def job_id(values: Values) -> str:
    """One name for the job in all its tasks, nodes and requeues.

    A task of an array is a job of its own; the components of a heterogeneous job are one. In an
    interactive allocation each `srun` is a job, and what runs there without `srun` has no name.
    """
    cluster = values.text("SLURM_CLUSTER_NAME")
    prefix = f"slurm-{cluster}-" if cluster else "slurm-"
    array, task = values.text("SLURM_ARRAY_JOB_ID"), values.text("SLURM_ARRAY_TASK_ID")
    number = f"{array}_{task}" if array and task else _leader(values)
    if not _is_interactive(values):
        return prefix + number
    step = _srun_step(values)
    return "" if step is None else f"{prefix}{number}.{step}"


def rank(values: Values) -> int | None:
    """The global rank of a task of `srun`; None in a process that is none."""
    return values.number("SLURM_PROCID") if _is_task(values) else None


def world_size(values: Values) -> int | None:
    """Tasks of the step of this task."""
    if not _is_task(values):
        return None
    groups = [name for name in values.names() if re.fullmatch(r"SLURM_NTASKS_HET_GROUP_\d+", name)]
    if groups:
        return sum(values.number(name) or 0 for name in groups)
    return values.number("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")


def accelerators(values: Values) -> tuple[int, str]:
    """Accelerators of the whole job and their type (`""` where it is not said or mixed)."""
    if values.text("SLURM_HET_SIZE"):
        return 0, ""
    nodes = values.number("SLURM_JOB_NUM_NODES", "SLURM_NNODES") or 0
    ways = (
        ("SLURM_GPUS", 1),
        ("SLURM_GPUS_PER_NODE", nodes),
        ("SLURM_GPUS_ON_NODE", nodes),
        ("SLURM_GPUS_PER_TASK", values.number("SLURM_NTASKS") or 0),
    )
    for name, times in ways:
        text = values.text(name)
        if not text:
            continue
        count, kind = counted(text)
        if count is None:
            values.refuse(name, "a number of accelerators")
        elif count * times:
            return count * times, kind or counted(values.text("SLURM_GPUS_PER_NODE", "SLURM_GPUS"))[1]
    return 0, ""


def counted(text: str) -> tuple[int | None, str]:
    """Number and type of what Slurm writes as `4`, `a100:4` or `gpu:a100:4,gpu:v100:2`.

    >>> counted("4"), counted("gpu:a100:4"), counted("a100:2,v100:2"), counted("many")
    ((4, ''), (4, 'a100'), (4, ''), (None, ''))
    """
    parts = [re.fullmatch(r"(?:gpu:)?(?:([\w.-]+):)?(\d{1,9})", part) for part in text.split(",")]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None, ""
    kinds = {part[1] or "" for part in found}
    return sum(int(part[2]) for part in found), kinds.pop() if len(kinds) == 1 else ""


def labels(values: Values) -> dict[str, str]:
    """What describes the job; an interactive shell lends it no name."""
    found = {label: text for label, name in LABELS.items() if (text := values.text(name))}
    if _is_interactive(values):
        found.pop("job_name", None)
    return {"scheduler": "slurm", **found}


def _leader(values: Values) -> str:
    """The id of the job, of all components where it is heterogeneous."""
    return values.text("SLURM_JOB_ID_HET_GROUP_0", "SLURM_JOB_ID_PACK_GROUP_0", "SLURM_JOB_ID")


def _is_interactive(values: Values) -> bool:
    is_shell = values.number("SLURM_STEP_ID") == FIRST_SPECIAL_STEP
    return is_shell or values.text("SLURM_JOB_NAME") in INTERACTIVE_NAMES


def _srun_step(values: Values) -> int | None:
    step = values.number("SLURM_STEP_ID", "SLURM_STEPID")
    return step if step is not None and step < FIRST_SPECIAL_STEP else None


def is_in_step(values: Values) -> bool:
    """Whether `srun` started this process, so that it gets the signals that all of the step get.

    >>> is_in_step(Values({"SLURM_STEP_ID": "0"})), is_in_step(Values({"SLURM_JOB_ID": "7"}))
    (True, False)
    """
    return _srun_step(values) is not None


def has_other_launcher(values: Values) -> bool:
    """Whether a launcher stands between Slurm and this process: their local ranks differ."""
    local, own = values.number("SLURM_LOCALID"), values.number("LOCAL_RANK")
    return own is not None and local is not None and own != local


def _is_task(values: Values) -> bool:
    """Whether `srun` started this very process as one of its tasks."""
    number = values.number("SLURM_PROCID")
    if number is None or has_other_launcher(values):
        return False
    return number > 0 or _srun_step(values) is not None
