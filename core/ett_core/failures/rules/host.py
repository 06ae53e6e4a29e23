"""Texts of the host: memory, limits, file systems, object stores, services."""

from __future__ import annotations

from ett_core.failures.rule import CONTEXT, WARNING, Rule

HOST = (
    Rule(
        failure_class="resource_limit",
        needles=("errno 11]",),
        pattern=r"errno 11\] resource temporarily unavailable",
        example="BlockingIOError: [Errno 11] Resource temporarily unavailable",
        counter_example="[Errno 111] Connection refused",
    ),
    Rule(
        failure_class="host_oom",
        role=CONTEXT,
        needles=("oom-killer ended no process",),
        example="memory cgroup: the kernel's oom-killer ended no process of this job's cgroup",
        counter_example="memory cgroup out of memory: the kernel's oom-killer ended 1 process of this job's cgroup",
    ),
    Rule(
        failure_class="host_oom",
        needles=(
            "oom-kill",
            "oom_kill",
            "oom killer",
            "oom-killer",
            "oomkilled",
            "oom killed",
            "out_of_me",
            "out of memory",
            "cgroup out-of-memory",
        ),
        pattern=r"oom-kill(?:er)?\b|oom[ _]killer|oom_kill\b(?! 0)|oom[ -]?killed|OUT_OF_ME|memory cgroup out of memory|out of memory: kill(?:ed)? process"
        r"|srun: error:.{0,80}out of memory|cgroup out-of-memory|container.{0,60}killed.{0,40}out of memory",
        example="slurmstepd: error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup.",
        counter_example="memory.events: oom 0 oom_kill 0",
        certain=True,
    ),
    Rule(
        failure_class="host_oom",
        needles=("is killed by signal: killed", "exited unexpectedly with signal 9"),
        example="RuntimeError: DataLoader worker (pid 22048) is killed by signal: Killed.",
        counter_example="RuntimeError: DataLoader worker (pid 1) is killed by signal: Bus error.",
    ),
    Rule(
        failure_class="host_oom",
        needles=(
            "cannot allocate memory",
            "std::bad_alloc",
            "memoryerror",
            "defaultcpuallocator",
            "killed signal terminated",
        ),
        pattern=r"cannot allocate memory|std::bad_alloc|\bMemoryError\b|DefaultCPUAllocator.{0,60}(?:not enough|can't allocate)"
        r"|killed signal terminated program",
        example="RuntimeError: [enforce fail at alloc_cpu.cpp:73] . DefaultCPUAllocator: can't allocate memory: 42 bytes",
        counter_example="OutOfMemoryErrorHandler is registered",
        vague=True,
    ),
    Rule(
        failure_class="shm_exhausted",
        needles=("bus error", "unable to write to file </torch", "shm_open"),
        pattern=r"(?:worker|loader).{0,120}bus error|bus error.{0,60}(?:worker|loader)|unable to write to file </torch"
        r"|shm_open.{0,40}no space",
        example="ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        counter_example="out of resource: shared memory, Required: 81920, Hardware limit: 65536",
    ),
    Rule(
        failure_class="resource_limit",
        needles=(
            "too many open files",
            "errno 24",
            "emfile",
            "items of ancdata",
            "can't start new thread",
            "resource temporarily unavailable",
            "no locks available",
            "memlock",
            "pthread_create failed",
            "inotify",
        ),
        pattern=r"too many open files|received \d+ items of ancdata|can't start new thread|errno 24\b|\bEMFILE\b"
        r"|(?:fork|pthread_create|thread|blas).{0,80}resource temporarily unavailable|no locks available"
        r"|memlock.{0,60}(?:limit|exceed|too low)|pthread_create failed|inotify.{0,40}limit",
        example="RuntimeError: received 0 items of ancdata",
        counter_example="opened 24 files, not too many",
    ),
    Rule(
        failure_class="storage_full",
        needles=("no space left on device", "errno 28"),
        pattern=r"^(?!.{0,400}[\s'\"=:(<]/\w).{0,400}(?:no space left on device|errno 28\b)",
        example="OSError: [Errno 28] No space left on device",
        counter_example="the space left on the device is 28 GB",
    ),
    Rule(
        failure_class="storage_full",
        needles=(
            "no space left on device",
            "disk quota exceeded",
            "enospc",
            "errno 28",
            "errno 122",
            "quota exceeded",
            "file system is full",
            "edquot",
        ),
        pattern=r"no space left on device|(?:disk|storage|project|file) ?quota exceeded|\bENOSPC\b|\bEDQUOT\b|errno (?:28|122)\b"
        r"|file ?system (?:is )?full",
        example="OSError: [Errno 28] No space left on device: '/data/ckpt/step_9'",
        counter_example="INFO 40 GB of space left on device",
        certain=True,
    ),
    Rule(
        failure_class="storage_io",
        needles=(
            "stale file handle",
            "stale nfs",
            "input/output error",
            "errno 5]",
            "errno 116",
            "read-only file system",
            "errno 30",
            "remote i/o error",
            "i/o error",
            "transport endpoint shutdown",
            "mds",
            "lustreerror",
            "nfs: server",
            "ext4-fs error",
            "xfs_",
        ),
        pattern=r"stale (?:nfs )?file handle|input/output error|errno (?:5|30|116|121)\]|read-only file system|remote i/o error"
        r"|(?:blk_update_request|buffer|nvme\w*|sd[a-z]).{0,40}i/o error|LustreError.{0,120}(?:evict|timed? ?out|failed)"
        r"|nfs: server.{0,60}not responding|ext4-fs error|xfs_\w+.{0,60}(?:corrupt|shut ?down)",
        example="RuntimeError: read(): fd 33 failed with Stale file handle",
        counter_example="input/output redirected to /dev/null",
    ),
    Rule(
        failure_class="object_store",
        needles=(
            "slowdown",
            "reduce your request rate",
            "expiredtoken",
            "requesttimetoosk",
            "serviceunavailable",
            "too many requests",
            "429",
            "503",
            "invalidaccesskeyid",
            "accessdenied",
            "endpointconnectionerror",
            "unable to locate credentials",
            "nocredentialserror",
            "requesttimeout",
            "connectionclosederror",
            "blob",
            "gcsfs",
            "storage.googleapis",
        ),
        pattern=r"(?-i:\(SlowDown\)|SlowDown:|[Cc]ode.{0,6}SlowDown)|reduce your request rate|ExpiredToken|RequestTimeTooSkewed|InvalidAccessKeyId"
        r"|(?:s3|gcs|gs://|boto\w*|blob|azure|storage\.googleapis|object store|bucket|minio).{0,160}(?:\b429\b|\b503\b|\b500\b"
        r"|too many requests|ServiceUnavailable|AccessDenied|RequestTimeout|timed? ?out|ConnectionClosedError|unavailable)"
        r"|(?:\b429\b|\b503\b).{0,120}(?:s3|gs://|bucket|storage\.googleapis|GetObject|PutObject)"
        r"|EndpointConnectionError|NoCredentialsError|unable to locate credentials",
        example="botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the GetObject operation",
        counter_example="learning rate SlowDown schedule starts, 503 steps left",
    ),
    Rule(
        failure_class="service_error",
        needles=("deadline_exceeded", "unavailable:"),
        pattern=r"(?-i:(?<!StatusCode\.)\bDEADLINE_EXCEEDED\b|\bUNAVAILABLE:)",
        example="XlaRuntimeError: UNAVAILABLE: the request was not served",
        counter_example="the button is unavailable: read the manual",
        broad=True,
    ),
    Rule(
        failure_class="service_error",
        needles=(
            "statuscode.unavailable",
            "statuscode.deadline_exceeded",
            "deadline_exceeded",
            "service unavailable",
            "unavailable:",
            "commerror",
            "failed to connect to all addresses",
            "bad gateway",
            "gateway time-out",
            "max retries exceeded",
            "read timed out",
            "internal server error",
            "hfhubhttperror",
            "we couldn't connect to",
            "localentrynotfounderror",
            "usageerror",
            "could not connect to server",
            "operationalerror",
        ),
        pattern=r"StatusCode\.(?:UNAVAILABLE|DEADLINE_EXCEEDED)|wandb.{0,60}CommError"
        r"|failed to connect to all addresses|50[0234] (?:server error|service unavailable|bad gateway|gateway time-?out)"
        r"|HTTPS?ConnectionPool.{0,200}(?:max retries exceeded|read timed out)|HfHubHTTPError|we couldn't connect to"
        r"|LocalEntryNotFoundError|(?:psycopg|OperationalError|redis).{0,120}could not connect to server",
        example="grpc.RpcError: StatusCode.UNAVAILABLE: failed to connect to all addresses",
        counter_example="the button is unavailable: read the manual",
    ),
    Rule(
        failure_class="dataloader_failure",
        needles=("dataloader worker", "exited unexpectedly", "dataloader timed out"),
        pattern=r"DataLoader worker.{0,60}exited unexpectedly|worker\(s\) exited unexpectedly|DataLoader timed out"
        r"|DataLoader worker \(pid.{0,30}is killed by signal: (?!killed|bus)",
        example="RuntimeError: DataLoader worker (pid(s) 4711) exited unexpectedly",
        counter_example="DataLoader worker 3 started",
    ),
    Rule(
        failure_class="data_corrupt",
        needles=(
            "truncated",
            "cannot identify image",
            "crc",
            "corrupt",
            "invalid data found when processing input",
            "moov atom not found",
            "unexpected end of",
            "bad zip file",
            "badzipfile",
            "not a parquet file",
            "magic number",
        ),
        pattern=r"image file is truncated|truncated (?:file|sample|record|image)|cannot identify image file"
        r"|\b(?:crc\d*|checksum)\b.{0,40}(?:mismatch|error|failed)|(?:sample|record|shard|image|parquet|tfrecord|arrow|dataset).{0,60}(?<!\d )corrupt"
        r"|corrupt(?:ed)? (?:sample|record|shard|image|jpeg|parquet|data|block)|invalid data found when processing|moov atom"
        r"|compressed file ended before|BadZipFile|magic bytes not found|not a parquet file",
        example="OSError: image file is truncated (12 bytes not processed)",
        counter_example="log output was truncated to 100 lines",
        certain=True,
    ),
    Rule(
        failure_class="not_a_failure",
        role=WARNING,
        needles=("premature end of jpeg file", "corrupt jpeg data: ", "libpng warning: "),
        pattern=r"(?:^\s{0,12}|\])(?:premature end of jpeg file|corrupt jpeg data: .{1,80})\s{0,12}$|libpng warning: ",
        example="Corrupt JPEG data: 1041 extraneous bytes before marker 0xd9",
        counter_example="cv2.error: OpenCV imdecode: corrupt JPEG data: premature end of data segment",
    ),
    Rule(
        failure_class="not_a_failure",
        role=WARNING,
        needles=(
            "setting it to zero",
            "skipping batch",
            "skipping step",
            "skipping update",
            "gradient overflow",
            "grad overflow",
            "trying again",
            "retrying",
            "will retry",
        ),
        pattern=r"setting it to zero|skipping (?:this )?(?:batch|step|update|iteration)(?!.{0,80}scale to (?:0\.0\b|\d\S{0,20}e-[23]\d\d))|grad(?:ient)?s? overflow(?!.{0,120}scale to (?:0\.0\b|\d\S{0,20}e-[23]\d\d))"
        r"|(?<!not )trying again|will retry|(?<!not )(?<!longer )\bretrying\b",
        example="EmbeddingBoundsCheck: (at least one) Out of bounds access: index 77 >= 50. Setting it to zero.",
        counter_example="giving up: retries are used up",
    ),
)
