"""Texts of programs, launchers and settings, beside those of `software`, `network` and `scheduler`."""

from __future__ import annotations

from ett_core.failures.rule import WARNING, Rule

WORKLOAD = (
    Rule(
        failure_class="not_a_failure",
        role=WARNING,
        needles=(
            "potentially cause a hang",
            "to avoid deadlocks",
            "exception ignored in",
            "probe failed",
            "was skipped",
            "skipped:",
            "caught exception, continuing",
        ),
        pattern=r"potentially cause a hang|disabling parallelism to avoid|^exception ignored in|(?:readiness|liveness|startup) probe failed"
        r"|(?:sample|image|record|shard|batch).{0,40}skipped|skipped.{0,20}(?:sample|image|record|shard)|continuing",
        example="Warning  Unhealthy  kubelet  Readiness probe failed: connection refused",
        counter_example="the probe failed to return to earth",
    ),
    Rule(
        failure_class="collective_mismatch",
        needles=(
            "op.preamble.length",
            "expected to have finished reduction",
            "sequence number mismatch",
            "reduction in the prior iteration",
        ),
        pattern=r"op\.preamble\.length (?:<=|==) op\.nbytes|expected to have finished reduction in the prior iteration|collective sequence number mismatch",
        example="RuntimeError: [enforce fail at gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 4000 vs 400",
        counter_example="the preamble has a length",
    ),
    Rule(
        failure_class="rendezvous_failure",
        needles=(
            "pjrt_client_connect",
            "etcdconnectionfailed",
            "rendezvousconnectionerror",
            "coordination service",
        ),
        pattern=r"Barrier timed out.{0,80}Client_Connect|EtcdConnectionFailed|RendezvousConnectionError\s*$"
        r"|coordination service.{0,80}(?:unreachable|failed to connect|timed out)",
        example="XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect.",
        counter_example="PjRT_Client_Connect done after 3 s",
    ),
    Rule(
        failure_class="port_in_use",
        needles=(
            "another process is utilizing it",
            "port is already allocated",
            "port is already in use",
            "wsaeaddrinuse",
        ),
        pattern=r"another process is utilizing it|port is already (?:allocated|in use)|WSAEADDRINUSE",
        example="ConnectionError: Tried to launch distributed communication on port `29500`, but another process is utilizing it.",
        counter_example="the port is open; another process may use it",
    ),
    Rule(
        failure_class="network_fault",
        needles=(
            "got completion from peer",
            "retry_exc_err",
            "retry counter exceeded",
            "link status definitely down",
            "without any active interface",
            "ibv_wc_",
            "cable error",
            "local qp operation err",
        ),
        pattern=r"IBV_WC_(?!SUCCESS)\w+ERR\b|transport retry counter exceeded|link status definitely down|without any active interface"
        r"|mlx5\w*.{0,80}cable error|local QP operation err",
        example="NCCL WARN NET/IB: Got completion from peer 10.2.0.7<53312> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_READ(2)",
        counter_example="NET/IB: completion status=IBV_WC_SUCCESS",
    ),
    Rule(
        failure_class="resource_limit",
        needles=(
            "memlock",
            "resource temporarily unavailable",
            "thread creation failed",
            "pids.max",
            "pids cgroup",
        ),
        pattern=r"memlock limit|thread creation failed|(?:fork|clone)\b.{0,40}rejected by pids|fork: retry: resource temporarily",
        example="libgomp: Thread creation failed: Resource temporarily unavailable",
        counter_example="recv: resource temporarily unavailable",
    ),
    Rule(
        failure_class="node_failure",
        needles=(
            "not responding",
            "its node has died",
            "node has died",
            "node was terminated unexpectedly",
            "lost contact with node",
            "lost communication",
        ),
        pattern=r"nodes? \S{1,60} not responding|its node has died|node .{0,40}has died|node was terminated unexpectedly"
        r"|lost (?:contact|communication) with (?:the )?(?:node|host|server)",
        example="slurmctld: error: Nodes gpu-17 not responding, setting DOWN",
        counter_example="nfs: server filer-3 not responding, timed out",
    ),
    Rule(
        failure_class="evicted",
        needles=("evicted", "taintmanager", "taint manager", "exceeds the total limit"),
        pattern=r"\b(?:Warning|Reason:?)\s{1,20}Evicted\b|\bTaintManager\b|DeletionByTaintManager|taint manager: deleting|usage exceeds the total limit",
        example="DisruptionTarget  True  DeletionByTaintManager  Taint manager: deleting due to NoExecute taint",
        counter_example="cache: 14 entries evicted",
        at_warning=True,
    ),
    Rule(
        failure_class="time_limit",
        needles=("timeout", "term_runlimit", "run time limit", "runtime limit"),
        pattern=r"^\s{0,12}[\d_.+]{1,24}(?:\s{1,40}[\w.+-]{1,60}){0,6}\s{1,40}TIMEOUT\s{1,20}\d{1,3}:\d{1,3}|TERM_RUNLIMIT|(?:run ?time) limit\b",
        example="771             TIMEOUT      0:0",
        counter_example="771 requests, TIMEOUT after 3 s",
    ),
    Rule(
        failure_class="user_cancelled",
        needles=("cancelled by",),
        pattern=r"^\s{0,12}[\d_.+]{1,24}(?:\s{1,40}[\w.+-]{1,60}){0,6}\s{1,40}CANCELLED by \d{1,10}",
        example="771      CANCELLED by 1001   0:0",
        counter_example="slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***",
    ),
    Rule(
        failure_class="preempted",
        needles=("preempted",),
        pattern=r"^\s{0,12}[\d_.+]{1,24}(?:\s{1,40}[\w.+-]{1,60}){0,6}\s{1,40}PREEMPTED\s{1,20}\d{1,3}:\d{1,3}",
        example="771  train  gpu  PREEMPTED  0:0",
        counter_example="a preempted queue is used",
    ),
    Rule(
        failure_class="checkpoint_incompatible",
        needles=(
            "weights only load failed",
            "dp world size of",
            "checkpoint was saved with",
            "incompatible with the checkpoint",
            "universal checkpoint",
        ),
        pattern=r"weights only load failed|used a DP world size of \d+ but|checkpoint was saved with .{0,80}(?:but|while)|incompatible with the checkpoint",
        example="ZeRORuntimeException: The checkpoint being loaded used a DP world size of 8 but the current world size is 16.",
        counter_example="the checkpoint was saved with 8 ranks",
    ),
    Rule(
        failure_class="nan_loss",
        needles=("returned nan values", "nan or inf", "nan detected", "inf or nan", "diverged"),
        pattern=r"returned nan values in its|(?:Error|Exception|abort\w*|fatal).{0,80}(?:nan or inf|inf or nan|nan detected)"
        r"|(?:loss|training) (?:has )?diverged.{0,60}(?:stop|abort|exit|terminat)",
        example="RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
        counter_example="detect_anomaly looks for nan values",
    ),
    Rule(
        failure_class="compile_failure",
        needles=("returned non-zero exit status", "ptxas exited"),
        pattern=r"(?:\bgcc|g\+\+|\bcc1?(?:plus)?\b|clang|nvcc|hipcc|ninja|\bld\b|ptxas).{0,400}(?:returned non-zero exit status|exited with)",
        example="subprocess.CalledProcessError: Command '['/usr/bin/gcc', 'main.c']' returned non-zero exit status 1.",
        counter_example="subprocess.CalledProcessError: Command '['aws', 's3', 'cp']' returned non-zero exit status 1.",
    ),
    Rule(
        failure_class="environment_error",
        needles=(
            "execve()",
            "distributionnotfound",
            "packagenotfounderror",
            "executable file not found",
            "versionconflict",
            "no such image",
            "exec: ",
            "unable to find image",
            "create containerd task",
        ),
        pattern=r"execve\(\): .{0,200}(?:no such file|permission denied)|DistributionNotFound|PackageNotFoundError|executable file not found"
        r"|VersionConflict\b|no such image|unable to find image",
        example="slurmstepd: error: execve(): python3.11: No such file or directory",
        counter_example="exec: the shell is replaced",
    ),
    Rule(
        failure_class="config_error",
        needles=(
            "missingconfigexception",
            "scannererror",
            "parsererror",
            "batch job submission failed",
            "is not equal to micro_batch",
            "configexception",
            "unrecognized configuration",
            "got an unexpected config",
            "toml",
        ),
        pattern=r"(?:MissingConfig|Config)Exception|yaml\.\w+\.(?:Scanner|Parser)Error|batch job submission failed|is not equal to micro_batch"
        r"|unrecognized configuration|TOMLDecodeError",
        example="hydra.errors.MissingConfigException: Cannot find primary config 'train'",
        counter_example="INFO batch job submission worked",
    ),
    Rule(
        failure_class="native_crash",
        needles=(
            "segfault at",
            "general protection",
            "trap invalid opcode",
            "stack smashing",
            "sigsegv received",
        ),
        pattern=r"\bsegfault at [0-9a-f]|general protection fault|trap invalid opcode|stack smashing detected|SIGSEGV received",
        example="kernel: python[4411]: segfault at 0 ip 00007f1 sp 00007ffd error 4 in libtorch_cpu.so[7f+1000]",
        counter_example="a general protection of data",
        certain=False,
        weak=True,
    ),
)
