"""Texts of GPUs, their driver and the links between them.

An Xid's meaning comes from its number and, where they differ, from its own words (fatal or not,
reset needed or not). Numbers: NVIDIA's Xid catalogue; see also docs/failures.md.
"""

from __future__ import annotations

from ett_core.failures.rule import CASCADE, TEARDOWN, WARNING, Rule


def _xid(*numbers: int) -> str:
    """A pattern for an Xid line with one of these numbers, in every form of its prefix."""
    return (
        rf"\bXid\b[^0-9\n]{{0,3}}(?:\([^)\n]{{0,60}}\))?[ :,]{{0,3}}(?:{'|'.join(map(str, numbers))})\b(?!:)"
    )


GPU = (
    Rule(
        failure_class="gpu_lost",
        needles=("xid",),
        pattern=_xid(79, 119),
        example="NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.",
        counter_example="NVRM: Xid (PCI:0000:79:00): 31, pid=4, MMU Fault: ENGINE GRAPHICS",
        certain=True,
    ),
    Rule(
        failure_class="gpu_lost",
        needles=("off the bus", "gpu is lost", "timeout waiting for rpc from gsp", "gsp rpc timeout"),
        example="NVRM: GPU at PCI:0000:06:00: GPU has fallen off the bus.",
        counter_example="the passengers have fallen off the boat",
        certain=True,
    ),
    Rule(
        failure_class="gpu_lost",
        needles=("unable to determine the device handle",),
        example="Unable to determine the device handle for GPU 0000:4F:00.0: Unknown Error",
        counter_example="Unable to determine the encoding of the file",
    ),
    Rule(
        failure_class="gpu_ecc",
        needles=("xid",),
        pattern=_xid(48, 64, 92, 94, 95, 140),
        example="NVRM: Xid (PCI:0000:01:00): 95, pid=7062, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
        counter_example="NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for remapping",
        certain=True,
    ),
    Rule(
        failure_class="gpu_ecc",
        needles=("ecc",),
        pattern=r"uncorrectable (?:double[- ]bit )?ecc|cudaErrorECCUncorrectable|double[- ]bit ecc error"
        r"|row[- ]?remap\w* (?:failure|failed)",
        example="RuntimeError: CUDA error: uncorrectable ECC error encountered",
        counter_example="corrected ECC errors: 3 (uncorrectable: 0)",
    ),
    Rule(
        failure_class="nvlink_fault",
        needles=("xid",),
        pattern=_xid(74, 136, 155)
        + r"|"
        + _xid(144, 145, 146, 147, 148, 149, 150)
        + r"(?!.{0,80}non-?fatal)",
        example="NVRM: Xid (PCI:0000:c1:00): 74, pid='<unknown>', NVLink: fatal error detected on link 1",
        counter_example="NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 04",
    ),
    Rule(
        failure_class="nvlink_fault",
        needles=("xid",),
        pattern=_xid(137),
        example="NVRM: Xid (PCI:0000:1b:00): 137, RLW_RXPIPE interrupt hit on link 11 on GPU0: PRIV Error",
        counter_example="NVRM: Xid (PCI:0000:13:07): 31, pid=4, MMU Fault: ENGINE GRAPHICS",
    ),
    Rule(
        failure_class="nvlink_fault",
        needles=("nvlink",),
        pattern=r"uncorrectable nvlink error|cudaErrorNvlinkUncorrectable|nvlink.{0,40}fatal error",
        example="what():  CUDA error: uncorrectable NVLink error detected during the execution",
        counter_example="NCCL INFO P2P is enabled over NVLink for all pairs",
    ),
    Rule(
        failure_class="nvlink_fault",
        needles=("sxid",),
        pattern=r"\bSXid\b(?!.{0,120}(?:non-?fatal|\bData ?\{|\bSeverity 0\b))",
        example="nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        counter_example="nvidia-nvswitch0: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 32 egress error",
    ),
    Rule(
        failure_class="gpu_app_fault",
        needles=("xid",),
        pattern=_xid(13, 31, 32, 69),
        example="NVRM: Xid (PCI:0000:cb:00): 13, Graphics SM Warp Exception: Illegal Instruction Parameter",
        counter_example="NVRM: Xid (PCI:0000:13:00): 79, GPU has fallen off the bus.",
    ),
    Rule(
        failure_class="gpu_hardware",
        needles=("xid",),
        pattern=_xid(46, 62, 109, 110, 120, 121, 143, 158)
        + r"|"
        + _xid(154)
        + r"(?!.{0,120}\((?:none|0x0)\)\s*$)",
        example="NVRM: Xid (PCI:0000:cb:00): 109, pid=17978, Ch 00000008, errorString CTX SWITCH TIMEOUT",
        counter_example="NVRM: Xid (PCI:0000:cb:00): 154, GPU recovery action changed from 0x1 to 0x0 (None)",
    ),
    Rule(
        failure_class="gpu_hardware",
        needles=("thermal", "hw slowdown", "power brake"),
        pattern=r"(?:gpu|nvml|nvidia).{0,80}(?:thermal (?:shutdown|violation|trip)|hw (?:thermal |power brake )?slowdown)"
        r"|thermal (?:shutdown|trip).{0,60}gpu",
        example="dcgm: GPU 3 thermal violation: HW Thermal Slowdown is active",
        counter_example="sensors: thermal zone 0 at 43 degrees",
    ),
    Rule(
        failure_class="gpu_hardware",
        needles=("cudaerrorhardwarestackerror", "hardware stack error", "cudaerrorunknown", "unknown error"),
        pattern=r"cuda error: (?:hardware stack error|unknown error)|cudaErrorHardwareStackError|cudaErrorUnknown",
        example="RuntimeError: CUDA error: unknown error",
        counter_example="upload failed: unknown error, trying again",
        vague=True,
    ),
    Rule(
        failure_class="gpu_app_fault",
        needles=(
            "illegal memory access",
            "misaligned address",
            "invalid program counter",
            "invalid address space",
            "memory access fault by gpu",
            "warp illegal",
        ),
        pattern=r"illegal memory access|(?:cuda|hip|triton).{0,60}(?:misaligned address"
        r"|invalid program counter|invalid address space)|access fault by gpu|warp illegal",
        example="RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered",
        counter_example="the memory was accessed illegally by nobody",
    ),
    Rule(
        failure_class="gpu_app_fault",
        needles=(
            "unspecified launch failure",
            "launch timed out and was terminated",
            "illegal instruction was encountered",
        ),
        example="RuntimeError: CUDA error: unspecified launch failure",
        counter_example="the launch failed for unspecified reasons",
    ),
    Rule(
        failure_class="gpu_app_fault",
        needles=("assertion `", "assertion '", "device-side assert"),
        pattern=r"device-side assert|\.cuh?:\d+:.{0,400}\b(?:block|thread): \[.{0,200}\] assertion",
        example="Indexing.cu:1141: indexSelectLargeIndex: block: [615,0,0], thread: [1,0,0] Assertion `i < n` failed.",
        counter_example="test_model.py:14: Assertion `x == y` was checked",
        certain=True,
    ),
    Rule(
        failure_class="gpu_oom",
        needles=("out of memory",),
        pattern=r"(?:cuda|hip|xpu|gpu|torch\.OutOfMemoryError).{0,40}out of memory.{0,40}tried to allocate"
        r"|out of memory (?:while|trying to) allocat\w+.{0,60}(?:gpu|hbm|device)",
        example="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB. GPU 0 has 79 GiB",
        counter_example="RuntimeError: CUDA error: out of memory",
        certain=True,
    ),
    Rule(
        failure_class="gpu_oom",
        needles=(
            "outofmemoryerror",
            "resource_exhausted",
            "cublas_status_alloc_failed",
            "cudnn_status_alloc_failed",
        ),
        pattern=r"torch\.(?:cuda\.)?OutOfMemoryError|RESOURCE_EXHAUSTED: Out of memory (?:while|allocating)"
        r"|CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED|(?:CUDA|HIP) out of memory",
        example="RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        counter_example="java.lang.OutOfMemoryError: Java heap space",
    ),
    Rule(
        failure_class="gpu_busy",
        needles=("busy or unavailable", "exclusive process", "devices unavailable"),
        pattern=r"cuda.{0,60}busy or unavailable|cudaErrorDevicesUnavailable|exclusive[_ ]process",
        example="RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
        counter_example="the line is busy or unavailable",
    ),
    Rule(
        failure_class="gpu_busy",
        needles=(
            "cuda error: out of memory",
            "hip error: out of memory",
            "cuda failure 'out of memory'",
            "cuda failure 2 'out of memory'",
            "cudaerrormemoryallocation",
        ),
        pattern=r"(?:cuda|hip) (?:error:|failure(?: 2)?) '?out of memory(?!.{0,40}tried to allocate)|cudaErrorMemoryAllocation",
        example="RuntimeError: CUDA error: out of memory",
        counter_example="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
        vague=True,
    ),
    Rule(
        failure_class="cuda_driver",
        needles=(
            "no kernel image is available",
            "driver version is insufficient",
            "driver on your system is too old",
            "found no nvidia driver",
            "forward compatibility was attempted",
            "driver/library version mismatch",
            "unsupported ptx",
            "ptx was compiled with an unsupported toolchain",
            "not compatible with the current pytorch installation",
            "driver shutting down",
        ),
        pattern=r"no kernel image|version is insufficient|driver on your system is too old|no nvidia driver"
        r"|forward compatib|driver/library version mismatch"
        r"|unsupported (?:ptx|toolchain)|not compatible with the current pytorch",
        example="RuntimeError: CUDA error: no kernel image is available for execution on the device",
        counter_example="cudart: driver shutting down",
        certain=True,
    ),
    Rule(
        failure_class="cuda_driver",
        needles=("no cuda-capable device", "device kernel image is invalid", "system not yet initialized"),
        example="RuntimeError: CUDA error: no CUDA-capable device is detected",
        counter_example="every CUDA-capable device is used",
        vague=True,
    ),
    Rule(
        failure_class="not_a_failure",
        role=WARNING,
        needles=("xid",),
        pattern=_xid(63),
        example="NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for remapping",
        counter_example="NVRM: Xid (PCI:0000:10:63): 64, Row Remapper failure",
    ),
    Rule(
        failure_class="not_a_failure",
        role=WARNING,
        needles=("xid",),
        pattern=r"\bS?Xid\b.{0,160}non-?fatal|" + _xid(154) + r".{0,120}\((?:none|0x0)\)\s*$",
        example="NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 04",
        counter_example="NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 04",
    ),
    Rule(
        failure_class="gpu_app_fault",
        role=TEARDOWN,
        needles=("xid",),
        pattern=_xid(43, 45),
        example="NVRM: Xid (PCI:0000:cb:00): 45, pid=4711, name=python3, Ch 00000008",
        counter_example="NVRM: Xid (PCI:0000:45:00): 79, GPU has fallen off the bus.",
    ),
    Rule(
        failure_class="unknown",
        role=CASCADE,
        needles=("xid",),
        pattern=r"\bXid\b.{0,80}\d",
        example="NVRM: Xid (PCI:0000:cb:00): 38, pid=4711, an event of the driver",
        counter_example="the xid of the transaction",
        weak=True,
    ),
)
