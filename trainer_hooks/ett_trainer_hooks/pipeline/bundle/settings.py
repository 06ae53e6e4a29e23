"""What a trainer says about its bundles, and what the compiler has to be told before it is imported."""

from __future__ import annotations

import getpass
import os
import tempfile
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from ett_trainer_hooks import torch_private
from ett_trainer_hooks.pipeline.bundle.store import PATIENCE_S
from ett_trainer_hooks.pipeline.bundle.trust import read_key

KEY_FILE = "ETT_BUNDLE_KEY_FILE"
"""The variable that names the file with the key of a team."""
CACHE_DIR = "TORCHINDUCTOR_CACHE_DIR"
INSTRUCTIONS = "TORCHINDUCTOR_VEC_ISA_OK"
"""Without it, the instructions of the processor are tried out with the compiler."""
TOLD_PREFIXES = ("TORCHINDUCTOR_", "TORCH_COMPILE", "TORCHDYNAMO_", "TRITON_", "CXX", "INDUCTOR_")
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class BundleSettings:
    """Where the bundles of a trainer lie, and how long it waits for them."""

    address: str
    """A directory, or a URL for fsspec."""
    name: str
    """What is trained: starts that give the same name look for each other's bundles. A wrong one costs
    hits, nothing else: the compiler checks every graph."""
    key_file: Path | None = None
    """The key of a team, for a store that others can write to."""
    limit_bytes: int = 20 * GIB
    """What is beyond it in the store is evicted after a save, least recently used first."""
    patience_s: float = PATIENCE_S
    """Longest time for one answer of the store."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in ("address", "name"):
            if not getattr(self, name):
                raise ValueError(f"a bundle needs a {name}")
        for name in ("limit_bytes", "patience_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}, must be above 0")

    def key(self, environ: Mapping[str, str] = os.environ) -> bytes | None:
        """The key of the team; ValueError where one is named and cannot be used."""
        path = self.key_file or (Path(environ[KEY_FILE]) if environ.get(KEY_FILE) else None)
        return None if path is None else read_key(path)


def prepare_compiler(environ: MutableMapping[str, str] = os.environ) -> Path:
    """Tell the compiler how to name its code, the same at every start; returns its cache directory.

    To be called before torch is imported; later it holds for what the calling thread compiles from
    then on. What the user has set stays.
    """
    environ.setdefault(INSTRUCTIONS, "1")
    environ.setdefault(CACHE_DIR, str(_cache_dir_of_torch()))
    torch_private.put("instructions_ok", environ[INSTRUCTIONS] == "1")
    return Path(environ[CACHE_DIR]).absolute()


def compiler_settings(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that the compiler reads, without its directories, in order of name.

    >>> compiler_settings({"TORCHINDUCTOR_CACHE_DIR": "/x", "TORCHINDUCTOR_MAX_AUTOTUNE": "1", "HOME": "/"})
    {'TORCHINDUCTOR_MAX_AUTOTUNE': '1'}
    """
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(TOLD_PREFIXES) and not name.endswith("_DIR")
    }


def _cache_dir_of_torch() -> Path:
    """Where torch would keep its code."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        user = f"uid_{os.getuid()}"
    return Path(tempfile.gettempdir()) / f"torchinductor_{user}"
