"""Texts of kernels, drivers, allocators and of the frameworks right above them, in rarer words."""

from __future__ import annotations

from ett_core.failures.rule import CASCADE, WARNING, Rule

MACHINES = (
    Rule(
        failure_class="gpu_lost",
        needles=("rminitadapter failed", "rm_init_adapter failed"),
        example="NVRM: RmInitAdapter failed! (0x62:0x40:2396)",
        counter_example="the adapter is initialised",
        certain=False,
    ),
    Rule(
        failure_class="gpu_hardware",
        needles=("aer: ",),
        pattern=r"AER: (?:Multiple )?Uncorrected \((?:Fatal|Non-Fatal)\) error",
        example="pcieport 0000:17:00.0: AER: Uncorrected (Fatal) error received: 0000:18:00.0",
        counter_example="pcieport 0000:17:00.0: AER: Corrected error received: 0000:18:00.0",
        certain=False,
        vague=True,
    ),
    Rule(
        failure_class="not_a_failure",
        role=WARNING,
        needles=("corrected error", "correctable error"),
        pattern=r"(?<!un)correct(?:ed|able) errors?\b.{0,60}(?:no action|received)|\[Hardware Error\]: Corrected error",
        example="mce: [Hardware Error]: Corrected error, no action required.",
        counter_example="mce: [Hardware Error]: Uncorrected error, action required",
    ),
    Rule(
        failure_class="network_fault",
        needles=("health compromised", "miss count", "no such interface", "find address for"),
        pattern=r"mlx\d.{0,80}(?:health compromised|reached miss count)|unable to find address for: \w",
        example="mlx5_core 0000:a1:00.0: health compromised - reached miss count",
        counter_example="health checked, count 3",
        certain=False,
    ),
    Rule(
        failure_class="gpu_oom",
        needles=("cuda failure",),
        pattern=r"cuda failure(?: \d{1,3})? 'out of memory'",
        example="transport/p2p.cc:18 NCCL WARN Cuda failure 2 'out of memory'",
        counter_example="no cuda failure",
        certain=False,
    ),
    Rule(
        failure_class="collective_timeout",
        role=CASCADE,
        needles=(
            "nccl operations have failed or timed out",
            "stall inspector",
            "termination timeout",
            "barrier timed out",
            "may be stuck",
        ),
        pattern=r"NCCL operations have failed or timed out|stall inspector: .{0,120}shut ?down|barrier timed out(?!.{0,60}PjRT)"
        r"|termination timeout for .{0,80}exceeded",
        example="DEADLINE_EXCEEDED: Barrier timed out. Id: sync_global_devices",
        counter_example="the stall inspector is on",
        certain=False,
        at_warning=True,
    ),
    Rule(
        failure_class="checkpoint_save_failed",
        needles=("read-only file system",),
        pattern=r"read-only file system.{0,40}(?:ckpt|checkpoint|step_\d|\.distcp|\.safetensors)",
        example="OSError: [Errno 30] Read-only file system: '/ckpt/step_10'",
        counter_example="OSError: [Errno 30] Read-only file system: '/data/cache'",
        certain=False,
    ),
    Rule(
        failure_class="storage_io",
        needles=("gpfs: ", "disk failure", "beegfs", "wekafs", "ceph: "),
        pattern=r"GPFS: .{0,60}(?:failure|error|unmount)|(?:beegfs|wekafs|ceph|vast)\b.{0,80}(?:error|failed|timed out|not responding)",
        example="mmfs: GPFS: 6027-680 Disk failure. Volume gpfs1. rc = 5.",
        counter_example="beegfs is mounted",
        certain=False,
        at_warning=True,
    ),
    Rule(
        failure_class="object_store",
        needles=("blockmissingexception", "aiobotocore", "s3.getobject", "s3.putobject", "hdfs."),
        pattern=r"BlockMissingException|(?:Error|Exception|IncompleteRead)\b.{0,160}\b(?:aiobotocore|s3\.(?:Get|Put)Object)\b"
        r"|\bhdfs\.\w{1,40}\.\w{0,40}(?:Error|Exception)",
        example="org.apache.hadoop.hdfs.BlockMissingException: Could not obtain block: BP-12",
        counter_example="import aiobotocore",
        certain=False,
    ),
    Rule(
        failure_class="data_corrupt",
        needles=("checksum mismatch", "hash mismatch"),
        pattern=r"(?:shard|sample|record|\.mds|\.tar|\.parquet|\.tfrecord|dataset)\b.{0,120}(?:checksum|hash) mismatch"
        r"|(?:checksum|hash) mismatch.{0,120}(?:shard|sample|record|\.mds|\.tar|\.parquet|dataset)",
        example="ValueError: Shard shard.00012.mds checksum mismatch: expected a got b",
        counter_example="hash mismatch of the password",
        certain=False,
    ),
    Rule(
        failure_class="compile_failure",
        needles=("device kernel image is invalid",),
        pattern=r"triton.{0,60}device kernel image is invalid",
        example="RuntimeError: Triton Error [CUDA]: device kernel image is invalid",
        counter_example="CUDA error: device kernel image is invalid",
        certain=False,
    ),
    Rule(
        failure_class="environment_error",
        needles=("compiled with different cuda", "different cuda versions", "abi mismatch", "built against"),
        pattern=r"compiled with different cuda|different cuda versions|abi mismatch|was built against .{0,60}but",
        example="RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA versions.",
        counter_example="the wheel was built against CUDA 13",
    ),
    Rule(
        failure_class="config_error",
        needles=("does not divide", "config key", "missing required", "unknown config", "unexpected config"),
        pattern=r"(?:Error|assert\w*)\b.{0,120}\bdoes not divide\b|Error\b.{0,40}config key\b.{0,80}(?:missing|not found|unknown)"
        r"|Error\b.{0,80}(?:missing required|unknown|unexpected) config",
        example="ValueError: tensor parallel size 2 does not divide the world size 3",
        counter_example="the river does not divide the town",
        certain=False,
    ),
    Rule(
        failure_class="resource_limit",
        needles=("ibv_reg_mr", "ulimit -l", "max locked memory", "memlock"),
        pattern=r"ibv_reg_mr.{0,60}cannot allocate memory|memory locking limits|ulimit -l\b.{0,80}(?:too low|increase|raise)",
        example="NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
        counter_example="max locked memory unlimited",
        certain=False,
    ),
    Rule(
        failure_class="native_crash",
        needles=(
            "invalid pointer",
            "invalid next size",
            "corrupted size vs",
            "corrupted double-linked",
            "double free",
            "sysmalloc",
            "malloc(): ",
        ),
        pattern=r"(?:munmap_chunk|free|malloc|realloc)\(\): (?:invalid|corrupted|double|memory)|corrupted (?:size vs|double-linked)"
        r"|double free or corruption|sysmalloc: assertion",
        example="free(): invalid next size (normal)",
        counter_example="an invalid pointer of the mouse",
        certain=False,
        weak=True,
    ),
)
