"""Texts of drivers, schedulers, stores and frameworks that are rarer in logs than those of the other tables.

They stand before the tables of more common words: their own words are the more special ones.
"""

from __future__ import annotations

from ett_core.failures.rule import CASCADE, CONTEXT, WARNING, Rule

PLATFORMS = (
    Rule(
        failure_class="host_oom",
        needles=("systemd-oomd", "term_memlimit"),
        pattern=r"systemd-oomd\b.{0,40}\bkilled\b.{0,120}due to (?:memory|swap)|TERM_MEMLIMIT",
        example="systemd-oomd[812]: Killed /user.slice/job-7.scope due to memory used (61234) / total (64000)",
        counter_example="systemd[1]: Started systemd-oomd.service",
    ),
    Rule(
        failure_class="cuda_driver",
        needles=("api mismatch", "driver/library version mismatch", "communicate with the nvidia driver"),
        pattern=r"NVRM: API mismatch|driver/library version mismatch|(?:couldn't|could not) communicate with the nvidia driver",
        example="NVRM: API mismatch: the client has the version 535.54, but this kernel module has the version 535.104",
        counter_example="the API has no mismatch",
    ),
    Rule(
        failure_class="gpu_ecc",
        needles=("remapping failure", "remap failure"),
        pattern=r"(?:row|memory)\s?re-?map\w* failure\b(?!\w* ?[:=]? ?(?:no|0)\b)",
        example="nvidia-smi: GPU 2 Row remapping failure; pending: yes",
        counter_example="Remapping Failure Occurred : No",
    ),
    Rule(
        failure_class="nvlink_fault",
        needles=("nvswitch", "nvlink", "fabric manager", "fabricmanager"),
        pattern=r"(?:nvswitch|nvlink|fabric ?manager).{0,80}(?<!0 )(?:non-?recoverable|unrecoverable)\b.{0,40}error",
        example="nvidia-fabricmanager: NVSwitch non-recoverable link error, aborting all CUDA jobs",
        counter_example="NVLink: 0 unrecoverable errors",
    ),
    Rule(
        failure_class="maintenance",
        needles=("for maintenance", "due to maintenance", "maintenance event", "scheduled maintenance"),
        pattern=r"(?:drain|cordon|shut|reboot|stopp|terminat|cancel)\w{0,6}\b.{0,60}(?:for|due to) (?:\w+ )?maintenance"
        r"|maintenance event\b.{0,60}(?:terminat|migrat|start|now|active)",
        example="Node gpu-4 drained for maintenance by root",
        counter_example="maintenance of the house is due in May",
        certain=True,
    ),
    Rule(
        failure_class="user_cancelled",
        needles=(
            "term_owner",
            "job killed by owner",
            "qdel",
            "deleted by user",
            "cancelled by user",
            "canceled by user",
        ),
        pattern=r"TERM_OWNER|job killed by owner|(?:deleted|terminated) by (?:\S{1,40} )?qdel|job (?:was |has been )?(?:deleted|cancell?ed) by user",
        example="TERM_OWNER: job killed by owner.",
        counter_example="who calls qdel ends the job",
    ),
    Rule(
        failure_class="checkpoint_corrupt",
        needles=(
            "not an sstable",
            "missing commit marker",
            "is incomplete",
            "not finalized",
            "incomplete checkpoint",
        ),
        pattern=r"not an sstable|(?:checkpoint|ckpt)\b.{0,120}\b(?:is incomplete|not finali[sz]ed|missing commit)",
        example="ValueError: Checkpoint at /ckpt/100 is incomplete: missing commit marker",
        counter_example="INFO the checkpoint is complete",
    ),
    Rule(
        failure_class="checkpoint_save_failed",
        needles=("parent directory ",),
        pattern=r"RuntimeError: Parent directory \S{1,300} does not exist",
        example="RuntimeError: Parent directory /ckpt/step_5 does not exist.",
        counter_example="made the parent directory of /ckpt",
    ),
    Rule(
        failure_class="storage_io",
        needles=("transport endpoint is not connected", "errno 107]", "controller is down", "i/o error, dev"),
        pattern=r"(?:transport endpoint is not connected|errno 107\]).{0,20}['\"]?/\w|nvme\w*: controller is down|i/o error, dev \w",
        example="OSError: [Errno 107] Transport endpoint is not connected: '/mnt/gcs/data'",
        counter_example="send: Transport endpoint is not connected",
    ),
    Rule(
        failure_class="object_store",
        needles=("s3fs.", "gcsfs.", "adlfs.", "fileexpired"),
        pattern=r"\b(?:s3fs|gcsfs|adlfs)\.\w{1,20}\.\w*(?:Error|Expired|Exception)",
        example="s3fs.errors.FileExpired: The file s3://bucket/key is expired",
        counter_example="import s3fs.core",
        vague=True,
    ),
    Rule(
        failure_class="service_error",
        needles=("contact slurm controller", "slurm controller (connect", "socket timed out on send/recv"),
        example="slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        counter_example="the slurm controller is ours",
    ),
    Rule(
        failure_class="collective_timeout",
        role=CASCADE,
        needles=("dump signal",),
        pattern=r"(?:received|observed) .{0,40}dump signal\b",
        example="[rank3]:[E501 ProcessGroupNCCL.cpp:1753] [Rank 3] Received a dump signal due to a collective timeout from this local rank",
        counter_example="SIGUSR1 is the dump signal",
    ),
    Rule(
        failure_class="shm_exhausted",
        role=CONTEXT,
        needles=(
            "_multiprocessing.semlock(",
            "multiprocessing/shared_memory.py",
            "multiprocessing/synchronize.py",
            "shm_open(",
            "_share_filename_cpu_",
            "_new_shared_",
            "_share_fd_cpu_",
        ),
        example="    sl = self._semlock = _multiprocessing.SemLock(",
        counter_example='  File "/usr/lib/python3.12/multiprocessing/pool.py", line 268, in __del__',
    ),
    Rule(
        failure_class="straggler",
        role=CONTEXT,
        needles=("was stopped for",),
        pattern=r"^rank \d{1,9} \(pid \d{1,9}\) was stopped for \d",
        example="rank 1 (pid 77) was stopped for 2.0 of the last 4.1 s: by a signal or a debugger; the others wait",
        counter_example="the train was stopped for 20 minutes",
    ),
    Rule(
        failure_class="not_a_failure",
        role=WARNING,
        needles=(
            "nccl info",
            "could not load dynamic library",
            "no module named",
            "cannot open shared object",
            "importerror",
            "localrank -1",
        ),
        pattern=r"NCCL INFO .{0,60}\bplugin\b|NCCL (?:INFO|WARN) \[service thread\] .{0,60}localRank -1\b|could not load dynamic library"
        r"|(?:no module named|cannot open shared object|importerror)\b.{0,200}"
        r"(?:fall(?:ing)? ?back|optional|\bdisabl\w+|will not be (?:used|available)|\bskip\w*|\bignor\w+|continuing without|using .{0,30}instead)",
        example="n1:23:40 [5] NCCL INFO TUNER/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object file",
        counter_example="ImportError: libnccl.so.2: cannot open shared object file: No such file or directory",
    ),
    Rule(
        failure_class="not_a_failure",
        role=WARNING,
        needles=("error while calling w&b api", "network error (", "network error resolved"),
        pattern=r"wandb: (?:ERROR Error while calling W&B API|Network error)",
        example="wandb: ERROR Error while calling W&B API: internal error (<Response [500]>)",
        counter_example="wandb.errors.CommError: Run initialization has timed out after 90.0 sec.",
    ),
    Rule(
        failure_class="checkpoint_stall",
        needles=("took longer than", "timed out while saving", "save timed out", "saving timed out"),
        pattern=r"\b(?:sav\w{1,5}|checkpoint\w*|upload\w*)\b.{0,60}took longer than \d.{0,80}(?:abort|exit|stop|kill|fail|terminat)"
        r"|(?:checkpoint|ckpt).{0,30}(?:save|saving) timed out|timed out while saving",
        example="Saving the checkpoint took longer than 1800 s, aborting",
        counter_example="WARNING saving the checkpoint took longer than 30 s",
    ),
)
