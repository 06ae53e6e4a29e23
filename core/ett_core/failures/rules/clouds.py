"""Texts of cluster managers, containers and clouds that say how they ended a job, in the words of each."""

from __future__ import annotations

from ett_core.failures.rule import CASCADE, Rule

CLOUDS = (
    Rule(
        failure_class="user_cancelled",
        needles=("user-initiated", "user initiated", "by-user"),
        pattern=r"user[- ]initiated (?:termination|shutdown|stop|cancel\w*)|\binstance-(?:terminated|stopped)-by-user\b",
        example="Spot Instance terminated due to user-initiated termination. [instance-terminated-by-user]",
        counter_example="Spot Instance interrupted by the cloud [instance-terminated-by-price]",
    ),
    Rule(
        failure_class="preempted",
        needles=(
            "termination is imminent",
            "imminent termination",
            "instance-terminated-",
            "spotinstancetermination",
        ),
        pattern=r"(?:metadata|instance|node|vm|machine|host|spot|cloud)\b.{0,80}(?:termination is imminent|imminent termination)"
        r"|\binstance-terminated-(?:by-price|no-capacity|capacity-oversubscribed|by-service)\b|\bSpotInstanceTermination\b",
        example="start-worker 2024/12/17 16:03:58 GCP Metadata Service says termination is imminent",
        counter_example="the termination of the lease is near",
        at_warning=True,
    ),
    Rule(
        failure_class="object_store",
        needles=("unable to parse exceptionname", "aws_logging.cc"),
        pattern=r"unable to parse ExceptionName: \w|aws_logging\.cc:\d+\] curl returned error code [1-9]",
        example="XAmzContentSHA256Mismatch: Unable to parse ExceptionName: XAmzContentSHA256Mismatch Message: The header does not match",
        counter_example="aws_logging.cc:57] Connection has been released",
        weak=True,
    ),
    Rule(
        failure_class="environment_error",
        needles=(
            "oci runtime create failed",
            "runc create failed",
            "runcontainererror",
            "createcontainererror",
        ),
        pattern=r"(?:runtime|runc|container) create failed: (?!.{0,400}oom)|\b(?:RunContainer|CreateContainer)Error\b",
        example='Error: OCI runtime create failed: unable to start container process: exec: "/run.sh": permission denied',
        counter_example="runc create failed: container init was OOM-killed (memory limit too low?)",
        vague=True,
    ),
    Rule(
        failure_class="config_error",
        needles=(
            "createcontainerconfigerror",
            "nodes are available",
            "failedscheduling",
            "insufficient nvidia",
        ),
        pattern=r"CreateContainerConfigError|\b0/\d{1,6} nodes are available|Insufficient nvidia\.com/gpu",
        example="Warning FailedScheduling 0/24 nodes are available: 24 Insufficient nvidia.com/gpu.",
        counter_example="24 nodes are available",
        weak=True,
        at_warning=True,
    ),
    Rule(
        failure_class="maintenance",
        needles=("imminent node shutdown", "terminationbykubelet", "node is shutting down"),
        example="DisruptionTarget TerminationByKubelet: Pod was terminated in response to imminent node shutdown.",
        counter_example="the nodes are shut down at night",
        at_warning=True,
    ),
    Rule(
        failure_class="gpu_hardware",
        needles=("no healthy devices present", "unhealthy devices nvidia", "marking device as unhealthy"),
        example="UnexpectedAdmissionError: no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu",
        counter_example="all devices are healthy",
        weak=True,
        at_warning=True,
    ),
    Rule(
        failure_class="time_limit",
        needles=(
            "maxruntimeexceeded",
            "maxruntimeinseconds",
            "duration exceeded timeout",
            "wallclock",
            "time limit",
        ),
        pattern=r"MaxRuntimeExceeded|exceeded MaxRuntimeInSeconds|attempt duration exceeded timeout"
        r"|exceeded (?:hard |soft |the )?wall ?clock (?:time|limit)",
        example="MaxRuntimeExceeded: Training job exceeded MaxRuntimeInSeconds provided",
        counter_example="MaxRuntimeInSeconds=86400",
        certain=True,
    ),
    Rule(
        failure_class="preempted",
        needles=("host ec2 ", "no more unused capacity", "nodepreempted", "low-priority node", "spot vm"),
        pattern=r"Host EC2 (?:\(instance [\w-]{1,40}\) )?terminated|no more unused capacity|\bNodePreempted\b|(?:low-priority node|spot vm).{0,40}(?:evict|delet|preempt|reclaim)",
        example="statusReason: Host EC2 (instance i-0a12) terminated.",
        counter_example="a low-priority node was added",
    ),
    Rule(
        failure_class="host_oom",
        needles=(
            "container killed due to memory usage",
            "ran out-of-memory",
            "killed due to the node running low",
        ),
        example="The replica workerpool0-0 ran out-of-memory and exited with a non-zero status of 137 (SIGKILL).",
        counter_example="the replica has memory enough",
    ),
    Rule(
        failure_class="service_error",
        needles=(
            "quota",
            "exceeded for quota metric",
            "insufficient capacity",
            "insufficientinstancecapacity",
            "stockout",
        ),
        pattern=r"\b(?:Insufficient(?:Instance)?Capacity(?:Error|Exception)?|ZONE_RESOURCE_POOL_EXHAUSTED|STOCKOUT)\b"
        r"|quota (?:metric|limit)?.{0,40}exceeded.{0,120}(?:gpu|cpu|instance|tpu|vcpu)|exceeded.{0,40}quota.{0,80}(?:gpu|tpu|vcpu|instance)",
        example="InsufficientInstanceCapacity: we currently do not have sufficient p5.48xlarge capacity",
        counter_example="the quota of the home directory is 10 GB",
    ),
    Rule(
        failure_class="user_code",
        needles=("executeuserscripterror", "algorithmerror"),
        pattern=r"ExecuteUserScriptError|AlgorithmError:(?!.{0,40}\bexit code:? 1(?:29|[34]\d)\b)",
        example='AlgorithmError: ExecuteUserScriptError: Command "python train.py" ErrorMessage "ValueError: bad"',
        counter_example="no error of the algorithm",
        vague=True,
    ),
    Rule(
        failure_class="peer_failure",
        role=CASCADE,
        needles=("its owner has died", "owner of the object has died", "ownerdiederror"),
        example="The actor is dead because its owner has died. Owner Id: 0100",
        counter_example="the owner is well",
    ),
    Rule(
        failure_class="node_failure",
        needles=("node_did_resp", "on failed node", "due to failure of node", "node configuration differs"),
        pattern=r"node_did_resp: .{0,60}down|Killing Job\w*=?\d{0,12} on failed node|requeued? due to failure of node"
        r"|slurmd: error: Node configuration differs",
        example="slurmctld: Killing JobId=123 on failed node gpu-4",
        counter_example="nobody failed on a node",
    ),
    Rule(
        failure_class="user_cancelled",
        needles=("request_kill_job", "scancel: signal", "scancel: terminating job"),
        pattern=r"REQUEST_KILL_JOB .{0,60}uid [1-9]|scancel: (?:Signal|Terminating job) \d",
        example="slurmctld: _slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=123 uid 1000",
        counter_example="slurmctld: _slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=123 uid 0",
        weak=True,
    ),
    Rule(
        failure_class="rendezvous_failure",
        needles=("orte was unable to reliably start", "ssh: connect to host", "rendezvous endpoint", "prte"),
        pattern=r"(?:ORTE|PRTE) was unable to (?:reliably )?start|ssh: connect to host \S{1,80} port \d{1,5}: "
        r"|rendezvous endpoint.{0,40}(?:not reachable|unreachable|not available)",
        example="ssh: connect to host worker-3 port 22: Connection refused",
        counter_example="the rendezvous endpoint is node-0:29500",
    ),
)
