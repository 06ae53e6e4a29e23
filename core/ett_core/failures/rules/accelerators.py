"""Texts of accelerators and of the software right above them, beside those of `gpu`: AMD, XLA, other words.

They stand before the other tables: their words are the more special ones.
"""

from __future__ import annotations

from ett_core.failures.rule import Rule

ACCELERATORS = (
    Rule(
        failure_class="gpu_ecc",
        needles=("uncorrectable hardware error", "ras error", "poison consumption"),
        pattern=r"uncorrectable hardware errors? detected|uncorrectable.{0,60}ras error|poison consumption",
        example="amdgpu 0000:c1:00.0: amdgpu: 1 uncorrectable hardware errors detected in umc block",
        counter_example="amdgpu 0000:c1:00.0: amdgpu: 1 correctable hardware errors detected in umc block",
    ),
    Rule(
        failure_class="gpu_lost",
        needles=("device lost from bus", "device is lost"),
        pattern=r"(?:amdgpu|gpu|npu|xpu|nvml|device \d).{0,80}device (?:is )?lost",
        example="amdgpu 0000:63:00.0: amdgpu: device lost from bus!",
        counter_example="the device is lost and found again in the office",
    ),
    Rule(
        failure_class="gpu_lost",
        needles=("xid",),
        pattern=r"\bXid\b.{0,60}\b120\b.{0,40}GSP",
        example="NVRM: Xid (PCI:0000:18:00): 120, pid=7, name=python, GSP task exception: 0x5 @ pc:0x1",
        counter_example="NVRM: Xid (PCI:0000:18:00): 109, pid=7, name=python, CTX SWITCH TIMEOUT",
    ),
    Rule(
        failure_class="gpu_hardware",
        needles=("gpu reset begin", "gpu hang", "hw exception by gpu", "unrecoverable state", "vram is lost"),
        pattern=r"amdgpu.{0,60}(?:gpu reset begin|unrecoverable state)|hw exception by gpu|gpu hang|vram is lost",
        example="amdgpu 0000:05:00.0: amdgpu: GPU reset begin!",
        counter_example="amdgpu 0000:05:00.0: amdgpu: GPU reset(2) succeeded!",
        vague=True,
    ),
    Rule(
        failure_class="gpu_hardware",
        needles=("ring ",),
        pattern=r"amdgpu.{0,80}ring \S{1,40} timeout",
        example="amdgpu 0000:05:00.0: amdgpu: ring sdma0 timeout, signaled seq=12, emitted seq=14",
        counter_example="io_uring ring buffer timeout 3",
    ),
    Rule(
        failure_class="nvlink_fault",
        needles=("nvlink", "nvswitch"),
        pattern=r"invalid access of peer gpu memory over nvlink|nv(?:link|switch).{0,80}\bfatal\b(?<!non-fatal)(?<!nonfatal)",
        example="RuntimeError: CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error",
        counter_example="nvidia-nvswitch0: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 32 egress error",
    ),
    Rule(
        failure_class="gpu_app_fault",
        needles=("warp out-of-range", "illegal address during kernel", "invalid configuration argument"),
        pattern=r"warp out-of-range|illegal address during kernel|(?:cuda|hip) error: invalid configuration argument",
        example="RuntimeError: CUDA error: warp out-of-range address",
        counter_example="the configuration argument is valid",
    ),
    Rule(
        failure_class="cuda_driver",
        needles=(
            "unsupported display driver",
            "driver not loaded",
            "invalid device function",
            "no hip gpus are available",
            "no cuda gpus are available",
            "no xpu devices are available",
            "cudaerrorinsufficientdriver",
            "cuda driver initialization failed",
            "nvml: driver",
        ),
        pattern=r"unsupported display driver|driver not loaded|(?:cuda|hip) error: invalid device function|no (?:hip|cuda) gpus are available"
        r"|no xpu devices are available|InsufficientDriver|cuda driver initialization failed",
        example="RuntimeError: HIP error: invalid device function",
        counter_example="an invalid device function in the manual",
    ),
    Rule(
        failure_class="gpu_oom",
        needles=(
            "oom when allocating tensor",
            "resource_exhausted",
            "ran out of memory in memory space",
            "resource exhausted: attempting",
        ),
        pattern=r"resource[ _]exhausted: attempting to (?:reserve|allocate)|OOM when allocating tensor.{0,400}(?:gpu|tpu)|ran out of memory in memory space hbm|RESOURCE_EXHAUSTED.{0,120}(?:hbm|vmem)",
        example="ResourceExhaustedError: OOM when allocating tensor with shape[8192,8192] on device:GPU:0 by allocator GPU_0_bfc",
        counter_example="grpc: RESOURCE_EXHAUSTED: Received message larger than max (4194305 vs. 4194304)",
    ),
    Rule(
        failure_class="gpu_hardware",
        needles=("tpu", "neuron", "nrt_"),
        pattern=r"tpu.{0,60}(?:hardware (?:error|failure)|is unhealthy|core halted)|nrt_exec\w*.{0,60}(?:hardware|status 5|hw error)"
        r"|neuron.{0,60}(?:uncorrectable|hardware error)",
        example="neuron: nd0: uncorrectable memory error reported",
        counter_example="TPU initialised, 8 cores",
    ),
    Rule(
        failure_class="gpu_app_fault",
        needles=("aicore", "ai core"),
        pattern=r"ai ?core (?:exception|timeout|error|execution times out)",
        example="rtEventQueryStatus execute failed, reason=[aicore timeout][FUNC:FuncErrorReason]",
        counter_example="the aicore frequency is 1850 MHz",
    ),
    Rule(
        failure_class="compile_failure",
        needles=("llvm error", "fatal error: "),
        pattern="\\bLLVM ERROR:|\\.(?:cpp|cu|cc|c|h):\\d+(?::\\d+)?: fatal error: ",
        example="LLVM ERROR: Cannot select: intrinsic %llvm.nvvm",
        counter_example="no LLVM errors",
    ),
)
