"""Texts of schedulers, clouds and the elastic agent: who ended the job, and why.

Slurm: the lines of slurmstepd and srun, and the state and reason columns of sacct and scontrol.
Kubernetes: pod status reasons and conditions.
"""

from __future__ import annotations

from ett_core.failures.rule import CASCADE, TEARDOWN, WARNING, Rule

SCHEDULER = (
    Rule(
        failure_class="preempted",
        needles=("instance-action",),
        pattern=r"instance-action.{0,60}(?:terminate|stop|hibernate)",
        example="AWS spot: instance-action terminate notice; exiting",
        counter_example="no instance-action yet",
        at_warning=True,
        certain=True,
    ),
    Rule(
        failure_class="time_limit",
        needles=(
            "due to time limit",
            "time limit",
            "deadlineexceeded",
            "timeout",
            "active longer than",
            "active on the node longer than",
            "walltime",
            "wall clock",
            "run time",
            "max_run_time",
        ),
        pattern=r"due to time limit|(?:state|jobstate)=timeout\b|\|TIMEOUT\b|reason=timelimit|(?<!exceptions\.)DeadlineExceeded\b(?!:? 50\d)"
        r"|active (?:on the node )?longer than (?:the )?(?:specified|configured|allowed) |(?:job|wall ?time|time) limit (?:reached|exceeded|hit)"
        r"|exceeded (?:the |its )?(?:maximum |max )?(?:time|walltime|wall clock|run ?time)(?: limit)?|(?:walltime|wall clock|max_run_time) .{0,40}exceeded",
        example="slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***",
        counter_example="Time limit of the job: 24:00:00",
        certain=True,
    ),
    Rule(
        failure_class="time_limit",
        needles=("sigusr2", "signal usr2", "caught signal sigusr", "timed-out", "job has timed out"),
        pattern=r"submitit.{0,120}SIGUSR2|signal SIGUSR2.{0,80}preempt|\bJob (?:has timed out\b|not requeued because: timed-out)",
        example="submitit WARNING (2022-08-12 02:06:11,453) - Caught signal SIGUSR2 on node-a: this job is preempted.",
        counter_example="handler for SIGUSR2 installed",
        at_warning=True,
    ),
    Rule(
        failure_class="preempted",
        needles=(
            "preempt",
            "spot instance",
            "spot interruption",
            "instance termination notice",
            "interruption notice",
            "reclaimed",
        ),
        pattern=r"due to preemption|(?:state|jobstate)=preempted\b|\|PREEMPTED\b|preemption(?:byscheduler| notice| by )"
        r"|instance.{0,20}termination notice|interruption notice"
        r"|compute\.instances\.preempted|(?:status:|changed to|exited:) ?preempted\b|terminated due to preempt"
        r"|reason:?\s*\"?preempt",
        example="slurmstepd: error: *** JOB 32 ON cn119 CANCELLED AT 2021-06-18T13:05:36 DUE TO PREEMPTION ***",
        counter_example="preemption handler installed, grace 60 s; a preemptible queue is used",
        at_warning=True,
        certain=True,
    ),
    Rule(
        failure_class="preempted",
        needles=("preempt", "spot instance", "spot interruption", "reclaimed"),
        pattern=r"(?<!may be )(?<!can be )(?<!could be )preempted (?:by|in order|to accommodate)|(?:spot|preemptible|capacity)(?![\w-]{0,40}preempt).{0,60}(?:interrupt|terminat|reclaim|preempt)"
        r"|(?<!no )(?<!if )(?<!whether )(?<!when )(?<!if the )(?<!whether the )(?<!when the )(?<!if a )(?<!when a )(?:node|instance|vm|machine|host|job|pod|worker|task|cluster|tpu|replica|allocation|reservation)s?\b"
        r"(?: [\w.:/'-]{1,60})? (?:(?:was|were|is|are|has|have|got|gets|been|being|(?:about to|will) be|just) ){0,3}preempted\b"
        r"|preempt(?:ion|ed) (?:signal|warning|event|request|detected)|(?:received|got|detected|caught) (?:a )?preempt(?:ion)?\b|is now ?preempted\b",
        example="the node was preempted, saving what there is",
        counter_example="preemption handler installed, grace 60 s; a preemptible queue is used",
        at_warning=True,
    ),
    Rule(
        failure_class="evicted",
        needles=("evict", "low on resource"),
        pattern=r"reason:?[\s=\"]{0,12}evict|EvictionByEvictionAPI|eviction api|low on resource|TaintManagerEviction|pod .{0,80}evicted"
        r"|usage of .{0,40}exceeds the (?:total )?limit",
        example='pod "ns/runner-0" is disrupted: reason "EvictionByEvictionAPI", message "Eviction API: evicting".',
        counter_example="LRU cache: evicted 12 entries",
        certain=True,
    ),
    Rule(
        failure_class="maintenance",
        needles=("maintenance", "drain", "terminate_on_host", "cordon"),
        pattern=r"(?:host|scheduled|system|node|gpu|upcoming) maintenance|(?<!no )maintenance (?:event|window)|TERMINATE_ON_HOST_MAINTENANCE"
        r"|node .{0,60}(?:is|was|being) (?:drained|cordoned)|\bnode/\S{1,80} (?:already )?(?:drain|cordon)(?:ed|ing)|reason=.{0,40}drain|due to drain",
        example="node n17 is being drained: host maintenance at 18:00",
        counter_example="waiting for the queue to drain",
        at_warning=True,
    ),
    Rule(
        failure_class="evicted",
        needles=("evicting pod", "evicted pod", "evicteddueto"),
        pattern=r"evict(?:ing|ed) pods? \"?[\w.-]{1,80}/\w|\bEvictedDueTo(?!Preempt)\w",
        example="evicting pod default/trainer-0",
        counter_example="the pods may be evicted",
    ),
    Rule(
        failure_class="node_failure",
        needles=(
            "node_fail",
            "node failure",
            "boot_fail",
            "boot id",
            "kernel panic",
            "unexpectedly rebooted",
        ),
        pattern=r"NODE_FAIL|\bnode failure (?:on|of)\b|due to node failure|BOOT_FAIL|boot id .{0,60}changed|kernel panic|unexpectedly rebooted",
        example="slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO NODE FAILURE, SEE SLURMCTLD LOG ***",
        counter_example="node is not ready to take work yet; boot id 7 read",
        certain=True,
    ),
    Rule(
        failure_class="node_failure",
        needles=(
            "notready",
            "not ready",
            "nodelost",
            "node lost",
            "node has failed",
            "unreachable",
            "nodeunreachable",
            "machine check",
            "nodeshutdown",
            "raylet",
            "node not responding",
            "watchdog: bug: soft lockup",
            "is unresponsive",
        ),
        pattern=r"\bnode\b.{0,60}\bNotReady\b|NodeNotReady|node .{0,40}(?:became|is now|went) not ?ready"
        r"|NodeLost|node lost|node .{0,60}(?:failed on all|has failed(?! to send)|unreachable|not responding)"
        r"|nodes? .{0,40}not responding|machine check.{0,40}(?:exception|uncorrected)"
        r"|NodeShutdown|raylet.{0,80}\bnode\b.{0,60}(?:died|dead)|actor .{0,80}node .{0,60}died|soft lockup"
        r"|\s{2,}(?-i:NotReady)(?:,\w{1,30})?\s{2,}|\bnode \S{1,80} is unresponsive",
        example="node gpu-7 went NotReady",
        counter_example="node is not ready to take work yet; boot id 7 read",
    ),
    Rule(
        failure_class="host_oom",
        needles=("oomkilled", "out_of_memory", "reason=oom"),
        pattern=r"reason:?[\s=\"]{0,12}OOM|OOMKilled|\|OUT_OF_ME\w*|state=OUT_OF_MEMORY",
        example="    Reason:       OOMKilled",
        counter_example="restart policy after OOM: never",
        certain=True,
    ),
    Rule(
        failure_class="environment_error",
        needles=(
            "imagepullbackoff",
            "errimagepull",
            "invalidimagename",
            "containercannotrun",
            "createcontainererror",
            "createcontainerconfigerror",
            "runcontainererror",
            "pull access denied",
            "manifest unknown",
        ),
        example="Warning  Failed  kubelet  Error: ImagePullBackOff",
        counter_example="image pulled in 12 s",
    ),
    Rule(
        failure_class="user_cancelled",
        needles=(
            "keyboardinterrupt",
            "got signal: 2",
            "received 2 death signal",
            "interrupted by user",
            "cancelled by",
            "canceled by",
            "sigint",
        ),
        pattern=r"\bKeyboardInterrupt\b|got signal: 2\b|received (?:2|sigint) death signal|interrupted by user"
        r"|cancell?ed by (?!tear ?down)(?:user|\d+|[a-z])|(?:caught|received|got) (?:signal )?sigint|\|CANCELLED by",
        example="torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got signal: 2",
        counter_example="the SIGINT handler is installed",
        at_warning=True,
        certain=True,
    ),
    Rule(
        failure_class="user_cancelled",
        needles=("cancelled at", "cancelled"),
        pattern=r"\*\*\* JOB \S{1,40} ON \S{1,80} CANCELLED AT \S{1,30} \*\*\*|\|CANCELLED\|",
        example="slurmstepd: error: *** JOB 191 ON node-a CANCELLED AT 2021-10-27T19:35:36 ***",
        counter_example="slurmstepd: error: *** STEP 191.0 ON node-a CANCELLED AT 2021-10-27T19:35:36 ***",
        weak=True,
    ),
    Rule(
        failure_class="external_stop",
        needles=("due to job requeue", "sigterm", "sighup"),
        pattern=r"due to job requeue|(?:caught|received|got|handling) (?:a )?(?:signal )?(?:sigterm|sighup)\b(?! death)",
        example="slurmstepd: error: *** JOB 41 ON n3 CANCELLED AT 2024-05-02T11:00:00 DUE TO JOB REQUEUE ***",
        counter_example="Sending process 165 closing signal SIGTERM",
        weak=True,
        at_warning=True,
    ),
    Rule(
        failure_class="external_stop",
        role=CASCADE,
        needles=("death signal", "got signal: 15", "got signal: 1", "terminated"),
        pattern=r"received (?:signals\.)?(?:15|1|sigterm|sighup) death signal|got signal: (?:15|1)\b"
        r"|^(?:.{0,80}\bline \d{1,6}: {1,4}\d{1,9} )?Terminated(?: {4}|\s{0,4}$)",
        example="W0409 07:28:49.5 1359 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, shutting down workers",
        counter_example="Sending process 165 closing signal SIGTERM",
        weak=True,
        at_warning=True,
    ),
    Rule(
        failure_class="external_stop",
        role=TEARDOWN,
        needles=(
            "bypassing signal",
            "terminating job step",
            "cancelled at",
            "unable to shutdown process",
            "exitcode: -15",
            "terminated",
        ),
        pattern=r"bypassing signal|terminating job step"
        r"|\*\*\* STEP \S{1,40} ON .{1,80} CANCELLED AT|unable to shutdown process|exitcode: -15|: task\w? .{1,60}: terminated",
        example="slurmstepd: error: *** STEP 63532.0 ON cn106 CANCELLED AT 2020-12-14T09:43:55 ***",
        counter_example="a cancelled step of the dance",
        at_warning=True,
    ),
    Rule(
        failure_class="peer_failure",
        role=TEARDOWN,
        needles=("closing signal",),
        pattern=r"sending process \d+ closing signal",
        example="W1129 11:56:59.1 29471 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 29574 closing signal SIGTERM",
        counter_example="the closing line of the poem",
        at_warning=True,
    ),
    Rule(
        failure_class="native_crash",
        needles=("died with <signals.sig",),
        pattern=r"died with <Signals\.SIG(?:SEGV|BUS|ILL|FPE|ABRT)\b",
        example="subprocess.CalledProcessError: Command '['python', 'a.py']' died with <Signals.SIGSEGV: 11>.",
        counter_example="subprocess.CalledProcessError: Command '['python', 'a.py']' died with <Signals.SIGTERM: 15>.",
        weak=True,
    ),
    Rule(
        failure_class="host_oom",
        needles=("died with <signals.sig",),
        pattern=r"died with <Signals\.SIGKILL\b",
        example="subprocess.CalledProcessError: Command '['python', 'a.py']' died with <Signals.SIGKILL: 9>.",
        counter_example="subprocess.CalledProcessError: Command '['python', 'a.py']' died with <Signals.SIGSEGV: 11>.",
        weak=True,
    ),
    Rule(
        failure_class="unknown",
        role=CASCADE,
        needles=(
            "childfailederror",
            "processexitedexception",
            "backofflimitexceeded",
            "nonzeroexitcode",
            "calledprocesserror",
        ),
        example="torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        counter_example="0 children failed",
        weak=True,
    ),
    Rule(
        failure_class="not_a_failure",
        role=WARNING,
        needles=("omp_num_threads", "autotune", "falling back"),
        pattern=r"setting omp_num_threads|^AUTOTUNE |falling back to",
        example="AUTOTUNE mm(16384x128, 128x256)",
        counter_example="no autotune results",
    ),
    Rule(
        failure_class="preempted",
        needles=("the job ends as preempted",),
        example="the launcher was told to stop: SIGTERM from pid 7 (slurmstepd) of root; the job ends as preempted",
        counter_example="the launcher got SIGUSR1 from pid 7 and passed it on to those who handle it",
        certain=True,
    ),
    Rule(
        failure_class="time_limit",
        needles=("the job ends as timed_out",),
        example="the launcher was told to stop: SIGTERM from pid 7 (slurmstepd) of root; the job ends as timed_out",
        counter_example="the launcher got SIGUSR1 from pid 7 and passed it on to those who handle it",
        certain=True,
    ),
    Rule(
        failure_class="user_cancelled",
        needles=("the job ends as cancelled",),
        example="the launcher was told to stop: SIGTERM from pid 7 (slurmstepd) of root; the job ends as cancelled",
        counter_example="the launcher got SIGUSR1 from pid 7 and passed it on to those who handle it",
        certain=True,
    ),
)
