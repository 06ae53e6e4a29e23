"""Advice on autotuning, in words and as an object. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from ett_core.choosing import OperationAdvice
from ett_core.tuning import Asked, Config, KernelAdvice, as_code

SHOWN = 10
"""Kernels, dearest first, and winners of a kernel that are written out."""

ENOUGH = 3
"""Tunings of a kernel from which on a list is shortened without a word of caution."""

_NOT_TOLD = "what won is in the cache directory (TORCHINDUCTOR_CACHE_DIR), not in a trace: name it too"


def as_object(
    kernels: Sequence[KernelAdvice], asked: Sequence[Asked] = (), operations: Sequence[OperationAdvice] = ()
) -> dict[str, Any]:
    """What `--json` prints; `_s` are seconds, `attempts` is what journals or an exporter tell.

    `operations` are those that the compiler has several implementations of.
    """
    return {
        "operations": [
            asdict(each) | {"winners": [{"kind": kind, "count": count} for kind, count in each.winners]}
            for each in operations
        ],
        "attempts": [asdict(each) for each in asked],
        "tunings": sum(kernel.tunings for kernel in kernels),
        "tuned_s": sum(kernel.tuned_s for kernel in kernels),
        "expected_s": sum(kernel.expected_s for kernel in kernels),
        "kernels": [_kernel_object(kernel) for kernel in kernels],
    }


def render_operations(operations: Sequence[OperationAdvice]) -> str:
    """What choosing among implementations (max-autotune) cost, and what would have done without."""
    total, choices = sum(each.took_s for each in operations), sum(each.choices for each in operations)
    words = "choice" if choices == 1 else "choices"
    lines = [f"{choices:,} {words} among implementations took {total:,.1f} s to compile and measure:"]
    lines += map(_operation, operations[:SHOWN])
    if len(operations) > SHOWN:
        rest = sum(each.took_s for each in operations[SHOWN:])
        lines.append(f"  and {len(operations) - SHOWN} more, {rest:,.1f} s together (--json has all)")
    if all(each.library_alone for each in operations):
        lines.append(
            "The library won each time: TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS=ATEN (of convolutions "
            "TORCHINDUCTOR_MAX_AUTOTUNE_CONV_BACKENDS=ATEN) spares the others. Other sizes may want others."
        )
    else:
        lines.append(
            "Keep TORCHINDUCTOR_CACHE_DIR, or a bundle (docs/bundles.md), so that it is chosen once."
        )
    return "\n".join(lines)


def _operation(each: OperationAdvice) -> str:
    among = "" if each.candidates is None else f" among up to {each.candidates}"
    won = ", ".join(f"{kind} {_times(count)}" for kind, count in each.winners)
    line = f"  {each.operation}: {each.took_s:,.1f} s, {_times(each.choices)}{among}"
    return f"{line}; won: {won}" if won else line


def render_asked(asked: Sequence[Asked], *, has_kernels: bool = False) -> str:
    """What journals or an exporter tell of a job: how much was tuned, attempt by attempt."""
    tuned, found = sum(each.tuned for each in asked), sum(each.found for each in asked)
    lines = [f"The job tuned kernels {_times(tuned)}, and found what had won before {_times(found)}:"]
    if tuned == 0:
        lines = [f"The job tuned nothing: it found what had won before {_times(found)}."]
    elif all(each.attempt is not None for each in asked):
        lines += map(_attempt, asked)
    else:
        lines[0] = f"{lines[0][:-1]}."
    if any(each.tuned for each in asked[1:]):
        lines.append(
            "A start that tunes had no cache of the one before, or other code: keep TORCHINDUCTOR_CACHE_DIR, "
            "or a bundle (docs/bundles.md)."
        )
    if tuned and not has_kernels:
        lines.append(
            "Which kernels, and what won, is in the cache directory (TORCHINDUCTOR_CACHE_DIR): name it too."
        )
    return "\n".join(lines)


def _attempt(asked: Asked) -> str:
    processes = "process" if asked.processes == 1 else "processes"
    counts = f"{asked.tuned:,} tuned, {asked.found:,} found"
    return f"  attempt {asked.attempt}, {asked.processes} {processes}: {counts}"


def render(kernels: Sequence[KernelAdvice]) -> str:
    """The advice for people: what tuning cost, kernel by kernel, and the lists to paste."""
    total, tunings = sum(kernel.tuned_s for kernel in kernels), sum(kernel.tunings for kernel in kernels)
    saved = total - sum(kernel.expected_s for kernel in kernels)
    names = "kernel" if len(kernels) == 1 else "kernels"
    times = "tuning" if tunings == 1 else "tunings"
    first = f"{tunings:,} {times} of {len(kernels):,} {names} took {total:,.1f} s"
    if not any(kernel.winners for kernel in kernels):
        first += f" to measure; {_NOT_TOLD}."
    elif not any(kernel.reduced for kernel in kernels):
        first += "; no list of the program's own holds a configuration that never won: nothing to shorten."
    else:
        first += f"; about {saved:,.1f} s less with the lists below, which hold what won."
    blocks = [first, *map(_kernel, kernels[:SHOWN])]
    if len(kernels) > SHOWN:
        rest = sum(kernel.tuned_s for kernel in kernels[SHOWN:])
        blocks.append(f"and {len(kernels) - SHOWN:,} more, {rest:,.1f} s together (--json has all)")
    return "\n\n".join(blocks)


def _kernel(kernel: KernelAdvice) -> str:
    name = kernel.kernel or "kernels whose code is not there, or not alone in its folder"
    where = f" ({kernel.origin})" if kernel.origin else ""
    times = "once" if kernel.tunings == 1 else f"{kernel.tunings:,} times"
    lines = [f"{name}{where}: {kernel.tuned_s:,.1f} s, tuned {times}"]
    if kernel.reduced:
        few = "" if kernel.tunings >= ENOUGH else " (other sizes may want others: few were seen)"
        lines.append(f"  {len(kernel.reduced)} of its {kernel.candidates} configurations won{few}:")
        lines += ["    configs=[", *(f"        {as_code(config)}," for config in kernel.reduced), "    ]"]
        return "\n".join(lines)
    if not kernel.winners:
        lines.append(
            "  what won is in the cache directory (TORCHINDUCTOR_CACHE_DIR), not in a trace: name it too"
        )
    elif not kernel.kernel:
        lines.append("  which list it has is not known")
    elif kernel.candidates is None:
        lines.append("  its list is the compiler's; keep the cache, or a bundle, so that it is tuned once")
    else:
        lines.append(f"  nothing to shorten in its list of {kernel.candidates}")
    lines += [f"  won {_times(count)}  {_short(config)}" for config, count in kernel.winners[:SHOWN]]
    if len(kernel.winners) > SHOWN:
        lines.append(f"  and {len(kernel.winners) - SHOWN} more (--json has all)")
    return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _short(config: Config) -> str:
    return ", ".join(f"{name}={value}" for name, value in config)


def _kernel_object(kernel: KernelAdvice) -> dict[str, Any]:
    return {
        "kernel": kernel.kernel or None,
        "origin": kernel.origin or None,
        "tunings": kernel.tunings,
        "tuned_s": kernel.tuned_s,
        "expected_s": kernel.expected_s,
        "candidates": kernel.candidates,
        "winners": [{"config": dict(config), "count": count} for config, count in kernel.winners],
        "reduced": [dict(config) for config in kernel.reduced],
        "code": [as_code(config) for config in kernel.reduced],
    }
