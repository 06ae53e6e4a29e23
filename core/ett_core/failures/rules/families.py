"""Families of messages: what a whole library says of its failures, where no other row knows the words.

They stand behind all other tables: an error of CUDA that no row names is an error of CUDA all the
same. None is certain, and what the same traceback says better goes before.
"""

from __future__ import annotations

from ett_core.failures.rule import CASCADE, Rule

FAMILIES = (
    Rule(
        failure_class="node_failure",
        needles=("slurm_script",),
        pattern=r"execve\(\): .{0,200}/slurm_script: no such file",
        example="slurmstepd: error: execve(): /tmp/slurmd/job29/slurm_script: No such file or directory",
        counter_example="slurmstepd: error: execve(): python3.11: No such file or directory",
    ),
    Rule(
        failure_class="node_failure",
        needles=(
            "lame worker",
            "unhealthy worker",
            "dead worker",
            "lost worker",
            "worker lost",
            "lost contact with",
            "lost executor",
        ),
        pattern=r"(?:lame|dead|unhealthy|lost) workers? (?:found|detected|: ?\S)|worker lost\b|lost contact with (?:worker|rank|task|replica)"
        r"|lost executor \d",
        example="INFO:tensorflow:ShutdownHook: lame workers found: HeartbeatManager(/job:worker/replica:0/task:0)",
        counter_example="0 unhealthy workers",
        weak=True,
    ),
    Rule(
        failure_class="config_error",
        needles=("srun: error: ", "salloc: error: "),
        pattern=r"(?:srun|salloc): error: .{0,120}(?:unable to layout tasks|not available|invalid|more processors requested"
        r"|exceeds|not permitted|violates|unable to create step)",
        example="srun: error: Unable to create step for job 17: Requested node configuration is not available",
        counter_example="srun: error: node1: task 0: Exited with exit code 1",
    ),
    Rule(
        failure_class="service_error",
        needles=("task launch for", "application launch failed"),
        pattern=r"task launch for \S{1,40} failed on node|application launch failed",
        example="srun: error: Task launch for StepId=36.0 failed on node n1: Job credential expired",
        counter_example="task launch for 36 tasks done",
        vague=True,
    ),
    Rule(
        failure_class="data_corrupt",
        needles=("archive", "parquet file", "gzip", "zip file"),
        pattern=r"is not an? (?:valid )?(?:tar|zip|gzip|7z|hdf5)\b.{0,20}(?:archive|file)|not a (?:gzip|zip|parquet) file|bad (?:tar|zip) archive",
        example="ValueError: shard-7.tar is not a tar archive, but a , contains b'x'",
        counter_example="wrote the tar archive of logs",
    ),
    Rule(
        failure_class="user_code",
        needles=("when constructing operator", "when executing ", "assert on "),
        pattern=r"^Error (?:when constructing operator|when executing \w{1,20} operator)|\] assert on \".{1,200}\" failed",
        example='[/opt/dali/operators/reader/loader.h:22] Assert on "num_shards > id" failed: num_shards must be greater',
        counter_example="we assert on every step",
        vague=True,
    ),
    Rule(
        failure_class="gpu_app_fault",
        needles=(
            "cuda error: ",
            "hip error: ",
            "cuda_error_",
            "cudaerror",
            "triton error [",
            "cuda failure",
            "hsa_status_error",
            "_status_",
        ),
        pattern=r"\b(?:CUDA|HIP) error: \w|\bCUDA_ERROR_(?!OUT_OF|SUCCESS)\w|\bcudaError[A-Z]\w|Triton Error \[|cuda failure(?: \d{1,3})? '|\bHSA_STATUS_ERROR\w*"
        r"|\b(?:CU(?:BLAS|DNN|SPARSE|SOLVER|FFT)|NVJPEG|miopen|rocblas)_STATUS_(?!SUCCESS)\w",
        example="RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle )`",
        counter_example="cublasCreate returned CUBLAS_STATUS_SUCCESS",
        vague=True,
        broad=True,
    ),
    Rule(
        failure_class="cuda_driver",
        needles=(
            "nvml",
            "nvidia-container-cli",
            "select device driver",
            "cuda initialization",
            "cuda unknown error",
        ),
        pattern=r"failed to initialize nvml|nvidia-container-cli: .{0,120}error|could not select device driver"
        r"|error.{0,80}cuda initialization|CUDA unknown error",
        example="Failed to initialize NVML: Unknown Error",
        counter_example="NVML was initialised",
        vague=True,
    ),
    Rule(
        failure_class="network_fault",
        needles=("nccl warn", "ucx  error", "ucx error", "got completion"),
        pattern=r"got completion.{0,80}(?:error|status=?) ?[1-9]|NCCL WARN.{0,40}\bNET/(?!Plugin)\w+.{0,160}(?:fail|error|couldn't|could not|unable|invalid)"
        r"|UCX\s{1,4}ERROR.{0,200}(?:timeout|retry|unreachable|failed|error)",
        example="[7] create_component:459 NCCL WARN NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument",
        counter_example="NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin_v4 symbol.",
        vague=True,
    ),
    Rule(
        failure_class="rendezvous_failure",
        needles=("bootstrap root",),
        pattern=r"bootstrap root ?: (?:rank \d+ of \d+ ranks has already checked in|mismatch in rank count)",
        example="bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 of 8 ranks has already checked in",
        counter_example="NCCL INFO bootstrap root is at 10.0.0.1",
    ),
    Rule(
        failure_class="rendezvous_failure",
        needles=(
            "name or service not known",
            "failure in name resolution",
            "hostname/address could not be resolved",
            "name does not resolve",
            "resolve",
            "no such host",
            "nxdomain",
            "unknown host",
        ),
        pattern=r"(?:c10d|rdzv|rendezvous|master_addr|tcpstore|gaierror|socket).{0,120}(?:name or service not known"
        r"|failure in name resolution|could not be resolved|not resolve|no such host)"
        r"|(?:(?:can't|cannot|could not|unable to|failed to) (?:be )?resolve|nxdomain|no such host|unknown host|host not found).{0,40}"
        r"(?:master|worker|rank|head|launcher|rdzv|rendezvous|node|coordinator|-0\b)"
        r"|(?:master|worker|rank|head|launcher|rdzv|rendezvous|node|coordinator)[\w.:-]{0,80}'?:? .{0,40}(?:not resolve|no such host|nxdomain)",
        example="socket.gaierror: [Errno -2] Name or service not known",
        counter_example="ping: name or service not known",
    ),
    Rule(
        failure_class="service_error",
        needles=(
            "requests.exceptions.",
            "urllib3.exceptions.",
            "aiohttp.client_exceptions.",
            "httpx.",
            "httpcore.",
            "urllib.error.",
            "inactiverpcerror",
            "google.api_core.exceptions",
            "wandb: error",
            "mlflowexception",
            "neptune.",
            "certificate verify failed",
            "etcdserver: ",
        ),
        pattern=r"\b(?:requests|urllib3)\.exceptions\.[A-Z]\w+|aiohttp\.client_exceptions\.[A-Z]\w+|\bhttp(?:x|core)\.[A-Z]\w+"
        r"|urllib\.error\.[A-Z]\w+|InactiveRpcError|google\.api_core\.exceptions\.\w+|certificate verify failed"
        r"|wandb: ERROR .{0,120}(?:timed? ?out|communicat|network|connect|50\d)|MlflowException: .{0,80}(?:request|connect|timed)"
        r"|neptune\.\w*\.?\w*exceptions\.\w*Connection\w*|etcdserver: .{0,40}(?:timed out|unavailable|no leader)",
        example="wandb: ERROR Run initialization has timed out after 600 sec.",
        counter_example="wandb: Network error (ReadTimeout), entering retry loop.",
        vague=True,
    ),
    Rule(
        failure_class="peer_failure",
        role=CASCADE,
        needles=(
            "actor died unexpectedly",
            "rayactorerror",
            "actordiederror",
            "actorunavailableerror",
            "workercrashederror",
            "worker died or was killed",
            "horovodinternalerror",
            "mpi_abort was invoked",
            "deadlockdetectedexception",
            "jax distributed service detected",
            "coordination service",
            "heartbeat timeout",
        ),
        pattern=r"actor died unexpectedly|(?:RayActor|ActorDied|ActorUnavailable|WorkerCrashed)Error|worker died or was killed"
        r"|HorovodInternalError|MPI_ABORT was invoked|DeadlockDetectedException|JAX distributed service detected"
        r"|coordination ?service.{0,160}(?:unhealthy|heartbeat|disconnect|error)|task.{0,60}heartbeat timeout",
        example="ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.",
        counter_example="the coordination service has started",
        at_warning=True,
    ),
    Rule(
        failure_class="collective_timeout",
        role=CASCADE,
        needles=(
            "ei0002",
            "ei0006",
            "notify register times out",
            "getting socket times out",
            "stream sync",
            "hccl",
        ),
        pattern=r"EI000[26]: |stream sync(?:hronize)? timeout|notify register times out|getting socket times out|HCCL.{0,120}(?:timeout occurred|watchdog thread terminated)",
        example="EI0002: The wait execution of the Notify register times out.",
        counter_example="HCCL INFO the timeout is 1800 s",
    ),
    Rule(
        failure_class="straggler",
        role=CASCADE,
        needles=("waiting for remainder of ranks", "[missing ranks: ", "stalled ranks:"),
        example="One or more tensors were submitted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.",
        counter_example="no missing ranks",
        at_warning=True,
    ),
    Rule(
        failure_class="native_crash",
        needles=(
            "terminate called",
            "check failed: ",
            "fatal error condition",
            "assertion failed",
            "internal assert",
        ),
        pattern=r"terminate called (?:after throwing|without an active)|^F\d{4} .{0,120}check failed: |check failure stack trace"
        r"|fatal error condition|: assertion failed\b",
        example="terminate called after throwing an instance of 'std::length_error'",
        counter_example="I0514 10:39:14 retry after check failed: quota",
        weak=True,
        broad=True,
    ),
    Rule(
        failure_class="unknown",
        role=CASCADE,
        needles=(
            "traceback (most recent call last)",
            "processraisedexception",
            "crashloopbackoff",
            "back-off restarting failed",
        ),
        example="Traceback (most recent call last):",
        counter_example="traceback of the walls",
        weak=True,
    ),
)
