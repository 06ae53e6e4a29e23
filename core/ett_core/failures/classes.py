"""The classes of failures: what each means, whose it is, whether trying again may help, what to do.

One table that the classifier, the metrics, the views and the documentation read.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

WORKLOAD = "workload"
INFRASTRUCTURE = "infrastructure"
PLATFORM = "platform"
UNKNOWN = "unknown"
NOT_A_FAILURE = "not_a_failure"

DOMAINS = (WORKLOAD, INFRASTRUCTURE, PLATFORM, UNKNOWN)

LIKELY = "likely"
WITH_CHANGE = "with_change"
AFTER_REMEDIATION = "after_remediation"


class FailureClass(msgspec.Struct, frozen=True):
    """One class. `domain` says whose it is; `retry` whether the same job may succeed if started again.

    `retry`: `likely` as it is, `with_change` of the job or its settings, `after_remediation` of the
    hardware, or `unknown`.
    """

    name: str
    domain: str
    retry: str
    meaning: str
    action: str


_TABLE = (
    FailureClass(
        "gpu_ecc",
        INFRASTRUCTURE,
        AFTER_REMEDIATION,
        "GPU memory failed in a way that its error correction cannot mend.",
        "Take the node out and reset the GPU; have it replaced if it happens again. Start on another node.",
    ),
    FailureClass(
        "gpu_lost",
        INFRASTRUCTURE,
        AFTER_REMEDIATION,
        "A GPU no longer answers: it fell off the bus or its firmware stopped.",
        "Take the node out and power-cycle it; start on another node.",
    ),
    FailureClass(
        "gpu_hardware",
        INFRASTRUCTURE,
        AFTER_REMEDIATION,
        "A GPU or its firmware reported a fault that is no memory error and no loss of the device.",
        "Take the node out and run its diagnostics; start on another node.",
    ),
    FailureClass(
        "nvlink_fault",
        INFRASTRUCTURE,
        AFTER_REMEDIATION,
        "A link between GPUs, or the switch between them, failed.",
        "Take the node out and have its links and switches checked; start on another node.",
    ),
    FailureClass(
        "gpu_busy",
        INFRASTRUCTURE,
        LIKELY,
        "The GPU was not free: another process holds it, or it could give no context.",
        "Look for processes that an earlier job left on the node; start again, best elsewhere.",
    ),
    FailureClass(
        "gpu_app_fault",
        WORKLOAD,
        WITH_CHANGE,
        "A kernel read or wrote where it may not, or an assertion on the device failed.",
        "Run the failing step with synchronous launches to find the kernel; check indices and shapes.",
    ),
    FailureClass(
        "cuda_driver",
        PLATFORM,
        WITH_CHANGE,
        "The driver of the node, or the device, does not fit what the program was built for.",
        "Match driver, CUDA and PyTorch build; check which image and which node type ran.",
    ),
    FailureClass(
        "gpu_oom",
        WORKLOAD,
        WITH_CHANGE,
        "The program asked for more GPU memory than there was.",
        "Make the batch smaller, or shard or checkpoint activations; the message names the allocation.",
    ),
    FailureClass(
        "host_oom",
        WORKLOAD,
        WITH_CHANGE,
        "Host memory ran out, of the machine or of what the job was given, and a process was killed for it.",
        "Ask for more memory, or use fewer loader workers, smaller buffers and prefetch depths.",
    ),
    FailureClass(
        "shm_exhausted",
        PLATFORM,
        WITH_CHANGE,
        "The shared memory of the container (/dev/shm) was too small.",
        "Give the container a larger /dev/shm, or use fewer loader workers.",
    ),
    FailureClass(
        "resource_limit",
        PLATFORM,
        WITH_CHANGE,
        "A limit of the system was reached: open files, processes, threads, locked memory.",
        "Raise the limit that the message or the call names (ulimit, pids of the cgroup).",
    ),
    FailureClass(
        "collective_timeout",
        UNKNOWN,
        UNKNOWN,
        "Ranks waited in a collective until its time-out; why the others did not come is not known.",
        "Look at the rank that did not arrive: its log and its stack around the time when the wait began.",
    ),
    FailureClass(
        "collective_mismatch",
        WORKLOAD,
        WITH_CHANGE,
        "Ranks called different collectives, or the same one with different shapes.",
        "Make all ranks take the same branch; check conditional layers and uneven batches.",
    ),
    FailureClass(
        "peer_failure",
        UNKNOWN,
        UNKNOWN,
        "This process lost its partner: the cause is on another rank or node.",
        "Look at the log of the rank or node that the message names, at the time just before.",
    ),
    FailureClass(
        "network_fault",
        INFRASTRUCTURE,
        LIKELY,
        "The network between nodes failed, or the wrong interface was chosen.",
        "Check the link and the interface that the message names; take out a node that repeats it.",
    ),
    FailureClass(
        "rendezvous_failure",
        PLATFORM,
        LIKELY,
        "The processes never met: the meeting point was not reachable or somebody did not come.",
        "Check address, port and name resolution of the rendezvous endpoint, and that all nodes started.",
    ),
    FailureClass(
        "port_in_use",
        PLATFORM,
        WITH_CHANGE,
        "The port that the job wanted is taken, by another job or by what an earlier one left.",
        "Choose a free port (or port 0), or end what holds it.",
    ),
    FailureClass(
        "concurrent_start",
        PLATFORM,
        WITH_CHANGE,
        "Another start of the job was at work, and this one gave way: both would have written checkpoints.",
        "The message names the other start: let it go on, or end it and what has started it before you start "
        "again; then see why the job was started twice.",
    ),
    FailureClass(
        "node_failure",
        INFRASTRUCTURE,
        LIKELY,
        "A node went away: it crashed, rebooted or stopped answering.",
        "Start again on other nodes; have the node checked before it comes back.",
    ),
    FailureClass(
        "preempted",
        PLATFORM,
        LIKELY,
        "The scheduler or the cloud took the hardware back for somebody else.",
        "Start again; checkpoint on the notice so that less is lost.",
    ),
    FailureClass(
        "evicted",
        PLATFORM,
        LIKELY,
        "Kubernetes removed the pod: the node was short of something, or was to be emptied.",
        "Start again; set requests that match the use, and a disruption budget.",
    ),
    FailureClass(
        "maintenance",
        PLATFORM,
        LIKELY,
        "The node was drained or its host was due for maintenance.",
        "Start again on other nodes.",
    ),
    FailureClass(
        "time_limit",
        PLATFORM,
        LIKELY,
        "The job reached the time that it was given.",
        "Ask for more time, or continue from the last checkpoint in a new allocation.",
    ),
    FailureClass(
        "user_cancelled",
        WORKLOAD,
        UNKNOWN,
        "A person ended the job.",
        "Nothing to mend.",
    ),
    FailureClass(
        "external_stop",
        UNKNOWN,
        UNKNOWN,
        "Something outside sent a signal to stop; who did is not known.",
        "Ask the scheduler's log who ended the job at that moment.",
    ),
    FailureClass(
        "hang",
        UNKNOWN,
        UNKNOWN,
        "Nothing moved and nothing ended.",
        "Take stacks of all ranks; the one that stands elsewhere is the one to look at.",
    ),
    FailureClass(
        "straggler",
        UNKNOWN,
        UNKNOWN,
        "One rank was far later than the others, which waited for it.",
        "Compare the late rank's node, data and CPU load with the others'; where its process was stopped,"
        " find out who sends SIGSTOP or attaches a debugger.",
    ),
    FailureClass(
        "dataloader_failure",
        WORKLOAD,
        UNKNOWN,
        "A loader worker ended without saying why.",
        "Run with no workers to see the error itself; look for memory kills on the host.",
    ),
    FailureClass(
        "data_corrupt",
        WORKLOAD,
        WITH_CHANGE,
        "A sample could not be read: truncated, damaged or of another format.",
        "Skip or rewrite the sample that the message names; verify the data set.",
    ),
    FailureClass(
        "storage_io",
        INFRASTRUCTURE,
        LIKELY,
        "The file system failed: a stale handle, an I/O error, a remount as read-only.",
        "Check the mount on that node; start again once it is sound.",
    ),
    FailureClass(
        "storage_full",
        INFRASTRUCTURE,
        WITH_CHANGE,
        "A file system or a quota is full.",
        "Free space or raise the quota; check that the last checkpoint is whole before resuming.",
    ),
    FailureClass(
        "object_store",
        INFRASTRUCTURE,
        LIKELY,
        "The object store refused: throttled, unavailable, no such name, or credentials that do not serve.",
        "Correct the bucket, the key or the credentials that the message names; else start again, with fewer "
        "requests at once or longer retries.",
    ),
    FailureClass(
        "checkpoint_stall",
        INFRASTRUCTURE,
        LIKELY,
        "A save took longer than the other ranks were willing to wait in a collective.",
        "Check the storage at that time; save asynchronously, or in a group with a longer time-out.",
    ),
    FailureClass(
        "checkpoint_save_failed",
        INFRASTRUCTURE,
        LIKELY,
        "A checkpoint could not be written.",
        "Check the target's space, rights and speed; the one before it is the one to resume from.",
    ),
    FailureClass(
        "checkpoint_corrupt",
        INFRASTRUCTURE,
        WITH_CHANGE,
        "The checkpoint to resume from is damaged or incomplete: every restart will fail the same way.",
        "Resume from an older checkpoint and remove the damaged one.",
    ),
    FailureClass(
        "checkpoint_incompatible",
        WORKLOAD,
        WITH_CHANGE,
        "The checkpoint is whole but does not fit this program: other keys, shapes or optimizer.",
        "Start with the code and configuration that wrote it, or convert it.",
    ),
    FailureClass(
        "nan_loss",
        WORKLOAD,
        WITH_CHANGE,
        "Loss or gradients were not finite, and the run stopped itself.",
        "Go back to an older checkpoint with a lower learning rate, or skip the batches; check the data.",
    ),
    FailureClass(
        "compile_failure",
        WORKLOAD,
        WITH_CHANGE,
        "A compiler (inductor, Triton, the C++ compiler or the linker) failed.",
        "Read the compiler's own message; compile less, or run this part without compilation.",
    ),
    FailureClass(
        "compile_slow",
        WORKLOAD,
        WITH_CHANGE,
        "A rank compiled longer than the others were willing to wait in a collective.",
        "Warm the compile caches first, or compile before the first collective with a longer time-out.",
    ),
    FailureClass(
        "environment_error",
        WORKLOAD,
        WITH_CHANGE,
        "The environment is not whole: a module, library, image or program is missing or does not fit.",
        "Rebuild the image or environment with matching versions.",
    ),
    FailureClass(
        "config_error",
        WORKLOAD,
        WITH_CHANGE,
        "The job was started with settings that cannot work.",
        "Correct the setting that the message names.",
    ),
    FailureClass(
        "user_code",
        WORKLOAD,
        WITH_CHANGE,
        "The program raised an error of its own.",
        "Read the traceback of the root rank.",
    ),
    FailureClass(
        "native_crash",
        UNKNOWN,
        UNKNOWN,
        "Native code crashed, with nothing that explains it better.",
        "Get a core dump or the native stack of the rank that crashed first.",
    ),
    FailureClass(
        "service_error",
        PLATFORM,
        LIKELY,
        "A service that the job needs did not answer.",
        "Start again; make the job survive a short absence of that service.",
    ),
    FailureClass(
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
        "It ended, and nothing that was seen tells why.",
        "Look at the evidence that was kept, and at the node's and the scheduler's logs.",
    ),
    FailureClass(
        NOT_A_FAILURE,
        UNKNOWN,
        UNKNOWN,
        "Something was said that looks bad, but nothing ended.",
        "Nothing to do for this job.",
    ),
)

CLASSES: Mapping[str, FailureClass] = MappingProxyType({row.name: row for row in _TABLE})
"""Every class by its name, in the order in which they are documented."""
