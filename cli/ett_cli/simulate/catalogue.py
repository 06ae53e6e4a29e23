"""Failures by class: how often, how a job dies of them, and what it says then.

Hardware and platform causes are weighted by the 419 unexpected interruptions of the Llama 3 report
("The Llama 3 Herd of Models", arXiv 2407.21783, table 5); those of a job's own doing by no source.
Texts are templates: `{rank}`, `{node}`, `{gpu}`, `{pid}`, `{bus}` and `{n}` are filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

RAISE, KILL, HANG, VANISH, SAVE, SAVE_HANG = "raise", "kill", "hang", "vanish", "save", "save_hang"
PREEMPT, START, OUTSIDE, DECIDE = "preempt", "start", "outside", "decide"
WARN, STRAGGLE = "warn", "straggle"

NODE, JOB, BEFORE_LOOP, TAKEN, NEVER = "node", "job", "before_loop", "taken", "never"


class Cause(NamedTuple):
    """One way to fail.

    `how` is how the job dies of it; `hazard` what its frequency goes by (node-days, training days,
    starts, preemptions); `weight` its share among the causes of the same hazard; `phase` where in
    the start it strikes. A job that `moves` is queued again on other nodes.
    """

    failure_class: str
    domain: str
    how: str
    hazard: str
    weight: float
    source: str
    lines: tuple[str, ...] = ()
    exception: str | None = None
    message: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    phase: str = ""
    moves: bool = False
    tells: bool = True
    """Whether those that die of it too leave words."""


_W, _I, _P, _U = "workload", "infrastructure", "platform", "unknown"

CAUSES: tuple[Cause, ...] = (
    Cause(
        "gpu_ecc", _I, RAISE, NODE, 91, "kernel",
        (
            "NVRM: Xid (PCI:{bus}): 48, pid={pid}, name=python, DBE (double bit error) ECC error",
            "NVRM: Xid (PCI:{bus}): 94, pid={pid}, name=python, Contained: HBM SITE {gpu}",
        ),
        "torch.AcceleratorError", "CUDA error: uncorrectable ECC error encountered", 1, moves=True,
    ),
    Cause(
        "gpu_lost", _I, RAISE, NODE, 77, "kernel",
        ("NVRM: Xid (PCI:{bus}): 79, pid={pid}, name=python, GPU has fallen off the bus.",),
        "torch.AcceleratorError", "CUDA error: unspecified launch failure", 1, moves=True,
    ),
    Cause(
        "gpu_hardware", _I, RAISE, NODE, 82, "kernel",
        ("NVRM: Xid (PCI:{bus}): 62, pid={pid}, name=python, {n}4c7e 00000000 internal micro-controller halt",),
        "torch.AcceleratorError", "CUDA error: an illegal instruction was encountered", 1, moves=True,
    ),
    Cause(
        "nvlink_fault", _I, RAISE, NODE, 30, "kernel",
        (
            "NVRM: Xid (PCI:{bus}): 74, pid={pid}, name=python, NVLink: fatal error detected on link {gpu}",
            "nvidia-nvswitch2: SXid (PCI:{bus}): 12028, Fatal, Link {gpu} egress non-posted PRIV error",
        ),
        "torch.distributed.DistBackendError", "NCCL error: unhandled cuda error", 1, moves=True,
    ),
    Cause(
        "network_fault", _I, HANG, NODE, 42, "stderr",
        (
            "mlx5_{gpu}: port 1 went DOWN",
            "{node}:{pid}:{pid} [{gpu}] NCCL WARN NET/IB : Got completion from peer with status=12 opcode=0 len=0 vendor err 129",
        ),
        "torch.distributed.DistBackendError", "NCCL error: remote process exited or there was a network error", 1,
    ),
    Cause(
        "maintenance", _P, PREEMPT, NODE, 32, "scheduler",
        ("slurmctld: node {node} state set to DRAIN: host maintenance", "slurmstepd: *** JOB {pid} ON {node} CANCELLED DUE TO NODE DRAIN ***"),
        moves=True,
    ),
    Cause(
        "node_failure", _I, VANISH, NODE, 11, "scheduler",
        ("slurmctld: error: Nodes {node} not responding, setting DOWN", "JOB {pid} CANCELLED DUE TO NODE FAILURE (NODE_FAIL) on {node}"),
        moves=True,
    ),
    Cause(
        "collective_timeout", _U, HANG, NODE, 7, "stderr",
        (
            "[rank{rank}]:[E ProcessGroupNCCL.cpp:688] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={n}, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600021 milliseconds",
        ),
        signal=6,
    ),
    Cause(
        "storage_io", _I, RAISE, NODE, 5, "stderr",
        ("OSError: [Errno 116] Stale file handle: '/mnt/data/shard-{n}.parquet'",),
        "OSError", "[Errno 116] Stale file handle: '/mnt/data/shard-{n}.parquet'", 1,
    ),
    Cause(
        "gpu_busy", _I, START, BEFORE_LOOP, 4, "stderr",
        ("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",),
        "RuntimeError", "CUDA error: all CUDA-capable devices are busy or unavailable", 1,
        phase="device_init", moves=True,
    ),
    Cause(
        "gpu_app_fault", _W, RAISE, JOB, 6, "stderr",
        (
            "/ops/embedding_lookup.cu:{n}: block: [{gpu},0,0] Assertion `index < table_rows` failed.",
            "torch.AcceleratorError: CUDA error: device-side assert triggered",
        ),
        "torch.AcceleratorError", "CUDA error: device-side assert triggered", 1,
    ),
    Cause(
        "cuda_driver", _P, START, BEFORE_LOOP, 3, "stderr",
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12020).",),
        "RuntimeError", "The NVIDIA driver on your system is too old (found version 12020).", 1,
        phase="device_init", moves=True,
    ),
    Cause(
        "gpu_oom", _W, RAISE, JOB, 14, "stderr",
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.12 GiB. GPU {gpu} has a total capacity of 79.11 GiB of which 604.50 MiB is free. Of the allocated memory 75.80 GiB is allocated by PyTorch",
        ),
        "torch.OutOfMemoryError",
        "CUDA out of memory. Tried to allocate 1.12 GiB. GPU {gpu} has a total capacity of 79.11 GiB of which 604.50 MiB is free.",
        1,
    ),
    Cause(
        "host_oom", _W, KILL, JOB, 10, "kernel",
        (
            "oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/job_{pid},task=python,pid={pid}",
            "Memory cgroup out of memory: Killed process {pid} (python) total-vm:914218044kB",
        ),
        signal=9,
    ),
    Cause(
        "shm_exhausted", _P, RAISE, JOB, 3, "stderr",
        (
            "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
            "RuntimeError: DataLoader worker (pid {pid}) is killed by signal: Bus error.",
        ),
        "RuntimeError", "DataLoader worker (pid {pid}) is killed by signal: Bus error.", 1,
    ),
    Cause(
        "resource_limit", _P, RAISE, JOB, 3, "stderr",
        ("OSError: [Errno 24] Too many open files: '/mnt/data/shard-{n}.parquet'",),
        "OSError", "[Errno 24] Too many open files: '/mnt/data/shard-{n}.parquet'", 1,
    ),
    Cause(
        "collective_mismatch", _W, HANG, JOB, 3, "stderr",
        (
            "[rank{rank}]: Detected mismatch between collectives on ranks: rank {rank} runs ALLGATHER at sequence {n}, others run ALLREDUCE",
        ),
        "RuntimeError", "Detected mismatch between collectives on ranks", 1,
    ),
    Cause(
        "peer_failure", _U, RAISE, JOB, 3, "stderr",
        ("[rank{rank}]: RuntimeError: [gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.7.{gpu}]:{pid}",),
        "RuntimeError", "[gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.7.{gpu}]:{pid}", 1,
    ),
    Cause(
        "rendezvous_failure", _P, START, BEFORE_LOOP, 8, "elastic",
        ("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError: not all nodes joined within 600 s",),
        "RendezvousTimeoutError", "not all nodes joined within 600 s", 1, phase="process_group", moves=True,
    ),
    Cause(
        "port_in_use", _P, START, BEFORE_LOOP, 4, "stderr",
        ("torch.distributed.DistNetworkError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",),
        "torch.distributed.DistNetworkError",
        "The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
        1, phase="process_group",
    ),
    Cause(
        "preempted", _P, PREEMPT, TAKEN, 8, "scheduler",
        ("slurmstepd: *** JOB {pid} ON {node} CANCELLED DUE TO PREEMPTION ***",),
        moves=True,
    ),
    Cause(
        "evicted", _P, PREEMPT, TAKEN, 1, "scheduler",
        ("pod trainer-{rank} Evicted: the node was low on resource: ephemeral-storage",),
        moves=True,
    ),
    Cause(
        "time_limit", _P, PREEMPT, NEVER, 1, "scheduler",
        ("slurmstepd: *** JOB {pid} ON {node} CANCELLED DUE TO TIME LIMIT ***",),
        moves=True,
    ),
    Cause("user_cancelled", _W, DECIDE, NEVER, 1, "scheduler", ("scancel: job {pid} cancelled by its owner",)),
    Cause(
        "external_stop", _U, KILL, JOB, 2, "elastic",
        ("torch.distributed.elastic.multiprocessing.api.SignalException: process {pid} got signal: 15",),
        signal=15,
    ),
    Cause("hang", _U, HANG, JOB, 4, "watchdog", ("no progress for {n} s; rank {rank} is still alive",), signal=9),
    Cause(
        "straggler", _U, STRAGGLE, NEVER, 1, "watchdog",
        ("rank {rank} on {node} takes longer for its steps than the others, who wait for it",),
    ),
    Cause(
        "dataloader_failure", _W, RAISE, JOB, 6, "stderr",
        ("RuntimeError: DataLoader worker (pid(s) {pid}) exited unexpectedly",),
        "RuntimeError", "DataLoader worker (pid(s) {pid}) exited unexpectedly", 1,
    ),
    Cause(
        "data_corrupt", _W, RAISE, JOB, 4, "stderr",
        ("OSError: could not verify page integrity, CRC checksum verification failed in /mnt/data/shard-{n}.parquet",),
        "OSError", "could not verify page integrity, CRC checksum verification failed in /mnt/data/shard-{n}.parquet", 1,
    ),
    Cause(
        "storage_full", _I, SAVE, JOB, 3, "stderr",
        ("OSError: [Errno 28] No space left on device: '/mnt/checkpoints/step-{n}/.tmp'",),
        "OSError", "[Errno 28] No space left on device: '/mnt/checkpoints/step-{n}/.tmp'", 1,
    ),
    Cause(
        "object_store", _I, RAISE, JOB, 5, "stderr",
        ("botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the GetObject operation: Please reduce your request rate.",),
        "botocore.exceptions.ClientError",
        "An error occurred (SlowDown) when calling the GetObject operation: Please reduce your request rate.",
        1,
    ),
    Cause(
        "checkpoint_stall", _I, SAVE_HANG, JOB, 3, "stderr",
        (
            "saving checkpoint of step {n}",
            "[rank{rank}]:[E ProcessGroupNCCL.cpp:688] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(OpType=BARRIER, Timeout(ms)=1200000) ran for 1200015 milliseconds",
        ),
        signal=6,
    ),
    Cause(
        "checkpoint_save_failed", _I, SAVE, JOB, 3, "stderr",
        ("torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([{rank}]) write failed",),
        "torch.distributed.checkpoint.api.CheckpointException", "ranks:dict_keys([{rank}]) write failed", 1,
    ),
    Cause(
        "checkpoint_corrupt", _I, START, BEFORE_LOOP, 3, "stderr",
        ("RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",),
        "RuntimeError", "PytorchStreamReader failed reading zip archive: failed finding central directory",
        1, phase="checkpoint_load",
    ),
    Cause(
        "checkpoint_incompatible", _W, START, BEFORE_LOOP, 3, "stderr",
        ("RuntimeError: Error(s) in loading state_dict: size mismatch for over.0.weight: [512, 367] and [512, 415]",),
        "RuntimeError", "size mismatch for over.0.weight: [512, 367] in the checkpoint, [512, 415] in the model",
        1, phase="checkpoint_load",
    ),
    Cause(
        "nan_loss", _W, RAISE, JOB, 5, "stderr",
        ("FloatingPointError: loss is nan at step {n}; gradient norm inf",),
        "FloatingPointError", "loss is nan at step {n}; gradient norm inf", 1,
    ),
    Cause(
        "compile_failure", _W, START, BEFORE_LOOP, 6, "stderr",
        ("torch._inductor.exc.InductorError: CppCompileError: C++ compile error: undefined reference to `fused_{n}`",),
        "torch._inductor.exc.InductorError", "CppCompileError: C++ compile error", 1, phase="compile",
    ),
    Cause(
        "compile_slow", _W, START, BEFORE_LOOP, 3, "stderr",
        (
            "[rank{rank}]:[E ProcessGroupNCCL.cpp:688] Watchdog caught collective operation timeout while rank {rank} was in torch._inductor.async_compile",
        ),
        signal=6, phase="compile",
    ),
    Cause(
        "environment_error", _W, OUTSIDE, BEFORE_LOOP, 8, "stderr",
        ("ImportError: libcudart.so.13: cannot open shared object file: No such file or directory",),
        "ImportError", "libcudart.so.13: cannot open shared object file: No such file or directory", 1,
    ),
    Cause(
        "config_error", _W, START, BEFORE_LOOP, 14, "stderr",
        ("torchrec.distributed.planner.types.PlannerError: no feasible plan for 512 tables within the memory given",),
        "torchrec.distributed.planner.types.PlannerError",
        "no feasible plan for 512 tables within the memory given", 1, phase="sharding_plan",
    ),
    Cause(
        "user_code", _W, RAISE, JOB, 30, "stderr",
        ("KeyError: 'user_history_len'",),
        "KeyError", "'user_history_len'", 1,
    ),
    Cause(
        "native_crash", _U, KILL, JOB, 4, "elastic",
        ("Fatal Python error: Segmentation fault in thread of rank {rank}", "local_rank: {gpu} (pid: {pid}) exitcode: -11"),
        signal=11,
    ),
    Cause(
        "service_error", _P, RAISE, JOB, 4, "stderr",
        ("grpc._channel._InactiveRpcError: StatusCode.UNAVAILABLE: feature service: failed to connect to all addresses",),
        "grpc._channel._InactiveRpcError",
        "StatusCode.UNAVAILABLE: feature service: failed to connect to all addresses", 1,
    ),
    Cause("unknown", _U, KILL, JOB, 3, "elastic", ("worker of rank {rank} ended",), exit_code=1, tells=False),
    Cause(
        "not_a_failure", "", WARN, NEVER, 1, "kernel",
        ("NVRM: Xid (PCI:{bus}): 63, pid={pid}, name=python, Row Remapper: New row marked for remapping",),
    ),
)  # fmt: skip

BY_CLASS: Mapping[str, Cause] = {cause.failure_class: cause for cause in CAUSES}
ENDING = tuple(cause for cause in CAUSES if cause.how not in (WARN, STRAGGLE, DECIDE))
"""Causes that end an attempt against its will."""


def of_hazard(hazard: str) -> tuple[tuple[Cause, ...], tuple[float, ...]]:
    """The causes of a hazard and their weights."""
    found = tuple(cause for cause in CAUSES if cause.hazard == hazard)
    return found, tuple(cause.weight for cause in found)


BYSTANDERS = (
    "[rank{rank}]: RuntimeError: NCCL communicator was aborted on rank {rank}.",
    "[rank{rank}]: torch.distributed.DistBackendError: remote process exited; connection reset by peer",
)
"""What ranks say that die of another's failure."""
