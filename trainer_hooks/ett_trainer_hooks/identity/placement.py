"""Where a process stands, by everything that surrounds it: our settings, launchers, schedulers.

Several may speak at once: torchrun in a Slurm task in a pod. Each quantity is asked of them in an
order of its own, our variables first; what stands nearest to the process is asked first for its
rank, what stands furthest out first for the job, so that a job keeps its name through restarts.
Pure functions over an environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ett_trainer_hooks.identity import kubernetes, slurm
from ett_trainer_hooks.identity.values import Values

MPI_RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
MPI_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_RANDOM = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What torchrun makes up for `--standalone`; it is another one at each start."""
LARGEST_RANK = 2**31 - 1
ATTEMPTS_PER_RESTART = 1000
"""A restart by the scheduler counts this much, so that elastic restarts fit between two."""


def job_id(values: Values) -> str:
    """The name of the job that all its processes, nodes and restarts share; nothing where none is told.

    >>> job_id(Values({"SLURM_JOB_ID": "77", "SLURM_RESTART_COUNT": "2", "SLURM_CLUSTER_NAME": "alpha"}))
    'slurm-alpha-77'
    """
    if ours := values.text("ETT_JOB_ID"):
        return ours
    if task := values.text("SKYPILOT_TASK_ID"):
        return task
    if slurm.is_there(values):
        return slurm.job_id(values)
    if submission := _ray_submission(values):
        return f"ray-{submission}"
    if kubernetes.is_there(values) and (name := kubernetes.job_id(values)):
        return name
    run = values.text("TORCHELASTIC_RUN_ID", "PET_RDZV_ID")
    return f"torchrun-{run}" if run not in ("", "none") and not _RANDOM.fullmatch(run) else ""


def attempt_base(values: Values) -> int:
    """The number of the first attempt since the scheduler last started the job.

    >>> attempt_base(Values({"SLURM_RESTART_COUNT": "2"})), attempt_base(Values({"ETT_ATTEMPT": "0"}))
    (2000, 0)
    """
    ours = values.number("ETT_ATTEMPT")
    if ours is not None:
        return ours
    restarts = values.number("SLURM_RESTART_COUNT")
    if restarts is None:
        restarts = kubernetes.restarts(values)
    return ATTEMPTS_PER_RESTART * (restarts or 0)


def rank(values: Values) -> int:
    """The global rank of this process; 0 where nobody says that there are others.

    >>> rank(Values({"RANK": "0", "SLURM_PROCID": "5"})), rank(Values({"SLURM_PROCID": "5"}))
    (0, 5)
    """
    said = values.number("ETT_RANK", "RANK")
    if said is None and not slurm.has_other_launcher(values):
        said = values.number(*MPI_RANKS)
    if said is None:
        said = slurm.rank(values)
    if said is None:
        said = _local_rank(values)
    if said is None:
        said = values.number("SKYPILOT_NODE_RANK")
    if said is None:
        said = kubernetes.node_rank(values)
    return min(said or 0, LARGEST_RANK)


def world_size(values: Values) -> int:
    """The ranks of the job; 0 where nobody says."""
    said = values.number("ETT_WORLD_SIZE", "WORLD_SIZE", *MPI_SIZES)
    return (slurm.world_size(values) if said is None else said) or 0


def is_first(values: Values) -> bool:
    """Whether a launcher is the first, or the only, one of its job.

    Several start where a scheduler starts a launcher for each node, or for each rank.
    """
    said = values.number("ETT_NODE_RANK", "RANK", "GROUP_RANK", "PET_NODE_RANK", "NODE_RANK", *MPI_RANKS)
    if said is None and slurm.is_there(values):
        said = values.number("SLURM_PROCID", "SLURM_NODEID")
    if said is None:
        said = values.number("SKYPILOT_NODE_RANK", "SLURM_NODEID")
    if said is None:
        said = (values.number("JOB_GLOBAL_INDEX") or 0) + (values.number("JOB_COMPLETION_INDEX") or 0)
    return said == 0


def node(values: Values, hostname: str) -> str:
    """The machine: as the scheduler calls it where a host name is only that of a pod.

    >>> node(Values({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "NODE_NAME": "gpu-7"}), "trainer-0")
    'gpu-7'
    """
    if ours := values.text("ETT_NODE"):
        return ours
    if named := values.text("SLURMD_NODENAME"):
        return named
    if kubernetes.is_there(values) and (named := values.text(*kubernetes.NODE_NAMES)):
        return named
    return hostname


def allocated_at(values: Values) -> float | None:
    """Unix seconds at which the scheduler gave the hardware, where it says so."""
    ours = values.moment("ETT_ALLOCATED_AT")
    return values.moment("SLURM_JOB_START_TIME") if ours is None else ours


def accelerators(values: Values) -> tuple[int, str]:
    """Accelerators held by the whole job (0: unknown) and their type.

    >>> accelerators(Values({"SLURM_JOB_ID": "1", "SLURM_GPUS_PER_NODE": "h100:8", "SLURM_NNODES": "2"}))
    (16, 'h100')
    """
    count, kind = slurm.accelerators(values) if slurm.is_there(values) else (0, "")
    if not count:
        per_node, nodes = values.number("SKYPILOT_NUM_GPUS_PER_NODE"), values.number("SKYPILOT_NUM_NODES")
        count = (per_node or 0) * (nodes or 0)
    ours = values.number("ETT_ACCELERATORS")
    return count if ours is None else ours, values.text("ETT_ACCELERATOR_TYPE") or kind


def labels(values: Values) -> dict[str, str]:
    """What the outermost scheduler says that describes the job."""
    if values.text("SKYPILOT_TASK_ID"):
        return {"scheduler": "skypilot"}
    if slurm.is_there(values):
        return slurm.labels(values)
    if values.text("RAY_JOB_ID") or _ray_submission(values):
        return {"scheduler": "ray"}
    return kubernetes.labels(values) if kubernetes.is_there(values) else {}


def _local_rank(values: Values) -> int | None:
    """The rank where a launcher tells only the local one, as that of Lightning does."""
    local = values.number("LOCAL_RANK")
    own_node = values.number("NODE_RANK", "GROUP_RANK", "SLURM_NODEID")
    size = values.number("LOCAL_WORLD_SIZE")
    if local is None:
        return (own_node or 0) * size if size is not None else own_node
    if own_node and size is None:
        values.ignored["NODE_RANK"] = (
            f"local rank {local} of node {own_node} without LOCAL_WORLD_SIZE does not tell the rank: "
            f"it is taken as {local}; set ETT_RANK"
        )
    return (own_node or 0) * (size or 0) + local


def _ray_submission(values: Values) -> str:
    """The submission id of a Ray job, in its driver and where it is passed on."""
    try:
        config = json.loads(values.text("RAY_JOB_CONFIG_JSON_ENV_VAR") or "{}")
    except ValueError:
        return ""
    metadata = config.get("metadata") if isinstance(config, Mapping) else None
    named = metadata.get("job_submission_id") if isinstance(metadata, Mapping) else None
    return values.text("RAY_JOB_SUBMISSION_ID") or (named if isinstance(named, str) else "")
