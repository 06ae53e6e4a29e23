"""Real ranks for tests: processes with the variables that torchrun gives, without its start and its end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

LIMIT_S = 600.0


def variables(rank: int, ranks: int, environ: Mapping[str, str]) -> dict[str, str]:
    """What a rank finds in its environment: ours without what is told of jobs, its place, and more."""
    mine = {name: text for name, text in os.environ.items() if not name.startswith(("ETT_", "SLURM_"))}
    size = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
    return {**mine, **size, **environ, "RANK": str(rank), "LOCAL_RANK": str(rank)}


def outputs_of(
    command: Sequence[str], folder: Path, ranks: int, environ: Mapping[str, str], limit_s: float = LIMIT_S
) -> list[str]:
    """What each rank of a command prints, in their order; all have ended well, within the limit."""
    children = [
        subprocess.Popen(
            command,
            env=variables(rank, ranks, environ),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        ended = [child.communicate(timeout=limit_s) for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    errors = [err[-3000:] for child, (_, err) in zip(children, ended, strict=True) if child.returncode]
    assert not errors, "\n".join(errors)
    return [out for out, _ in ended]
