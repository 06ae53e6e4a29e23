"""The native compiler is made ready while the model is built: what every first compilation on CPU waits for.

On a host without caches torch first compiles and loads a program for every instruction set that the
processor might have, then a header that all kernels include: half of a small model's compile seconds.
Neither needs the model. `trust_processor` (before torch is imported) has torch take the processor's
word for its instruction sets; `prepare` (any thread, beside what builds the model) compiles the header
and one empty kernel with their flags, which shows that the compiler knows them. Where it does not,
`distrust_processor` has the calling thread check as torch does. Both processes of one host share the
header and wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from ett_trainer_hooks import torch_private
from ett_trainer_hooks.recording.recorder import Recorder
from ett_trainer_hooks.recording.spans import describe

TRUST = "TORCHINDUCTOR_VEC_ISA_OK"
"""Torch's own switch, which it reads once when its compiler is imported."""

EMPTY_KERNEL = """
#include <torch/csrc/inductor/cpp_prefix.h>
// at::vec:: says that this needs the instruction sets
extern "C" void kernel(const float* in_ptr0, float* out_ptr0) { out_ptr0[0] = in_ptr0[0]; }
"""


def trust_processor(environ: MutableMapping[str, str] = os.environ) -> None:
    """Spare torch's trial of every instruction set, unless the environment says something else."""
    environ.setdefault(TRUST, "1")


def prepare(recorder: Recorder) -> bool:
    """Compile the header of all kernels and an empty one; False where the compiler failed.

    Nothing is compiled where torch was told to do without a header, or by a torch that does it in another
    way. Random generators are not touched.
    """
    build = torch_private.load("kernel_builder")
    if not callable(build) or torch_private.part("precompile_headers") is False:
        return True
    try:
        build(["const float*", "float*"], EMPTY_KERNEL)
    except Exception as error:  # noqa: BLE001 - the trainer goes on without
        recorder.decision("native compiler", f"not ready: {describe(error)}; torch tries what it can do")
        return False
    return True


def distrust_processor(environ: MutableMapping[str, str] = os.environ) -> None:
    """Have compilations of the calling thread, and processes to come, try the instruction sets again."""
    environ.pop(TRUST, None)
    torch_private.put("instructions_ok", None)
