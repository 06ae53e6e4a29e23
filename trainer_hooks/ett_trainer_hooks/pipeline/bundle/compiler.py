"""What is taken from torch and given to it: its artifacts, by its public functions.

Called on threads where nothing is compiled at that moment. Imports torch when used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ett_trainer_hooks import torch_private
from ett_trainer_hooks.pipeline.bundle.contents import Contents
from ett_trainer_hooks.pipeline.bundle.entry import RefusedError
from ett_trainer_hooks.pipeline.bundle.native import install_native

PGO = "pgo"
KINDS = ("inductor", "autotune", "aot_autograd", PGO, "precompile")


class Artifacts(msgspec.Struct, frozen=True):
    """What torch's caches got from this process: bytes as torch saved them, and the keys by kind."""

    saved: bytes
    keys: Mapping[str, list[str]]

    def whole(self) -> bytes:
        """The bytes in a form of which all is loaded; may take a while."""
        return torch_private.merged_artifacts(self.saved)


def compiled() -> Artifacts | None:
    """The artifacts of all that this process has compiled or found so far; None where there are none."""
    save = _function("save_cache_artifacts")
    saved = save() if save else None
    if saved is None:
        return None
    data, info = saved
    told = getattr(info, "artifacts", None)
    keys = told if told is not None else {kind: getattr(info, f"{kind}_artifacts", []) for kind in KINDS}
    return Artifacts(
        torch_private.merged_artifacts(data), {kind: sorted(set(some)) for kind, some in keys.items() if some}
    )


def install(contents: Contents, profiles: Sequence[str], from_rank: int, cache_dir: Path, rank: int) -> None:
    """Put a bundle where the compiler looks: native code first, for entries are believed to have it.

    `profiles` are the keys under which `from_rank`, who saved it, noted the sizes that it saw.

    Raises:
        RefusedError: torch does not take the artifacts.
        OSError: the cache directory cannot be written.
    """
    load = _function("load_cache_artifacts")
    if load is None:
        raise RefusedError("this torch cannot load artifacts")
    install_native(contents.native, cache_dir)
    if load(contents.artifacts) is None:
        raise RefusedError("torch does not take its artifacts")
    spare_header()
    take_over_profiles(profiles, from_rank, cache_dir, rank)


def take_over_profiles(profiles: Sequence[str], from_rank: int, cache_dir: Path, rank: int) -> None:
    """Let a rank find the sizes that another has seen, unless it knows some of its own.

    Torch keeps them under `job:rank:tag`.
    """
    for key in profiles:
        job, mark, rest = key.partition(f":{from_rank}:")
        theirs, own = (cache_dir / "dynamo" / profile_name(name) for name in (key, f"{job}:{rank}:{rest}"))
        if mark and theirs.is_file() and not own.exists():
            own.write_bytes(theirs.read_bytes())


def without_rank(keys: Mapping[str, list[str]], rank: int) -> dict[str, list[str]]:
    """Keys of artifacts by kind, the same for every rank that has compiled and seen the same.

    >>> without_rank({"inductor": ["f1"], "pgo": ["job:3:tag"]}, 3)
    {'inductor': ['f1'], 'pgo': ['job::tag']}
    """
    return {
        kind: [key.replace(f":{rank}:", "::", 1) for key in some] if kind == PGO else list(some)
        for kind, some in keys.items()
    }


def spare_header() -> None:
    """Have torch compile the header of its kernels only once it has to compile a graph.

    By itself it does so before it looks whether the code of a graph is there.
    """
    make = torch_private.load("header_maker")
    if callable(make) and not isinstance(make, _HeaderWhenMissed):
        torch_private.put("header_maker", _HeaderWhenMissed(make))


class _HeaderWhenMissed:
    """Gives the precompiled header as torch would, or the header as it is where every graph was found so far.

    Neither is part of the name of the code.
    """

    def __init__(self, make: Callable[..., str]) -> None:
        self._make = make

    def __call__(self, header: str, *words: str, **options: Any) -> str:  # noqa: ANN401 - of torch
        """What kernels are to include."""
        graphs = torch_private.counted_totals().get("fx_graph", torch_private.Totals())
        return self._make(header, *words, **options) if graphs.misses or graphs.bypasses else header


def profile_name(key: str) -> str:
    """The file in which torch keeps the sizes under a key.

    >>> profile_name("job:0:")
    'code_state_job_0_.pkl'
    """
    return re.sub(r'[<>:"/\\|?*]', "_", f"code_state_{key}.pkl")


def spent_s() -> float:
    """Seconds of compilation in this process so far, loads of compiled code included."""
    stages = torch_private.stage_seconds({}, torch_private.entry_seconds())
    return sum(seconds for stage, seconds in stages.items() if stage != "native")


def native_s() -> float:
    """Seconds of the C++ compiler in this process so far, added over those that ran at once."""
    return torch_private.stage_seconds({}, torch_private.entry_seconds()).get("native", 0.0)


def graphs_missed() -> int:
    """Graphs that this process had to compile because no cache had them."""
    totals = torch_private.counted_totals().get("fx_graph")
    return 0 if totals is None else totals.misses


def number(environ: Mapping[str, str], name: str, otherwise: int = 0) -> int:
    """A whole number of the environment, such as LOCAL_RANK; `otherwise` where it says none."""
    text = environ.get(name, "")
    return int(text) if text.isdecimal() else otherwise


def _function(name: str) -> Any:  # noqa: ANN401 - of torch
    import torch.compiler  # noqa: PLC0415 - takes seconds

    return getattr(torch.compiler, name, None)
