"""Tunings as Inductor keeps them in its cache directory; the only I/O is the reading of the files.

Beside the code of a kernel, in the same folder, lies what won (`*.best_config`, a JSON object); its
name is a hash that cannot be turned back. A kernel of the program has its list in its code, and the
list's hash is in the object: that tells them apart. A kernel that Inductor wrote is known where no
other lies in its folder. No code of the cache is run, and no pickle is loaded.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ett_core.tuning import LAUNCH, Config, Tuning, config_of

_OWN = "user_autotune"
_HEURISTICS = "triton_heuristics"
_ORIGIN = re.compile(r"^# Original path: (.+:\d+)\n\w+ = async_compile\.triton\('(\w+)'", re.MULTILINE)
_NOT_A_CONSTANT = frozenset(
    {"configs_hash", "found_by_coordesc", "time_taken_ms", "triton_cache_hash", "extra_options"}
)
_WARP_SPECIALISED = ("num_consumer_groups", "num_buffers_warp_spec")
_HASHED_APART = frozenset({*LAUNCH, *_WARP_SPECIALISED})


class Kernel(msgspec.Struct, frozen=True):
    """A kernel as its code in the cache tells of it; `configs` is the program's own list."""

    name: str
    configs: tuple[Mapping[str, Any], ...] | None


def read_cache(place: Path) -> list[Tuning]:
    """The tunings below a directory, in order of their files.

    Raises:
        OSError: it cannot be read.
    """
    found = sorted(place.rglob("*.best_config"))
    folders = {path.parent for path in found}
    kernels = {folder: list(_kernels_in(folder)) for folder in folders}
    origins = _origins(place) if found else {}
    tunings = (_tuning(path.read_bytes(), kernels[path.parent], origins) for path in found)
    return [tuning for tuning in tunings if tuning is not None]


def parse_kernel(source: str) -> Kernel | None:
    """The kernel that a piece of code defines for Inductor; None where it defines none."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            for call in filter(_is_heuristic, node.decorator_list):
                return Kernel(node.name, _configs(call))
    return None


def list_hash(configs: Sequence[Mapping[str, Any]]) -> str:
    """Torch's hash of a list of configurations, by which it finds out that a list has changed."""
    hasher = hashlib.sha256()
    for config in configs:
        constants = {name: value for name, value in config.items() if name not in _HASHED_APART}
        warps, stages = config.get("num_warps"), config.get("num_stages")
        hasher.update(f"{sorted(constants.items())} {warps} {stages}\n".encode())
    return hasher.hexdigest()


def _kernels_in(folder: Path) -> Iterator[Kernel]:
    for path in sorted(folder.glob("*.py")):
        source = path.read_text(errors="replace")
        if _HEURISTICS in source and (kernel := parse_kernel(source)) is not None:
            yield kernel


def _is_heuristic(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == _HEURISTICS
    )


def _configs(call: ast.expr) -> tuple[Mapping[str, Any], ...] | None:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != _OWN:
        return None
    for argument in call.keywords:
        if argument.arg == "configs":
            try:
                return tuple(ast.literal_eval(argument.value))
            except ValueError:
                return None
    return None


def _origins(place: Path) -> dict[str, str]:
    """Where the program's own kernels are defined, by their names, as the code that calls them tells."""
    origins: dict[str, str] = {}
    for path in place.rglob("*.py"):
        source = path.read_text(errors="replace")
        origins |= {name: where for where, name in _ORIGIN.findall(source)}
    return origins


def _tuning(data: bytes, kernels: Sequence[Kernel], origins: Mapping[str, str]) -> Tuning | None:
    try:
        best = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(best, dict) or "num_warps" not in best:
        return None
    kernel = _kernel_of(best.get("configs_hash"), kernels)
    candidates = None if kernel is None or kernel.configs is None else _as_configs(kernel.configs)
    name = "" if kernel is None else kernel.name
    return Tuning(
        kernel=name,
        config=_as_config(best),
        tuned_s=float(best.get("time_taken_ms") or 0) / 1000.0,
        candidates=candidates,
        origin=origins.get(name, ""),
        searched=bool(best.get("found_by_coordesc")),
    )


def _kernel_of(configs_hash: object, kernels: Sequence[Kernel]) -> Kernel | None:
    own = [kernel for kernel in kernels if kernel.configs and list_hash(kernel.configs) == configs_hash]
    made = [kernel for kernel in kernels if kernel.configs is None]
    likely = own or made
    return likely[0] if len({kernel.name for kernel in likely}) == 1 else None


def _as_configs(configs: Iterable[Mapping[str, Any]]) -> tuple[Config, ...]:
    return tuple(map(_as_config, configs))


def _as_config(values: Mapping[str, Any]) -> Config:
    """The configuration alone; what only some GPUs have counts where it is used."""
    return config_of(
        {
            name: value
            for name, value in values.items()
            if name not in _NOT_A_CONSTANT and not (name in _WARP_SPECIALISED and not value)
        }
    )
