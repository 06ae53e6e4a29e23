"""The reference trainer under torchrun, two small ranks, to its last step."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from marked import marked

LIMIT_S = 180


def train(
    folder: Path,
    steps: int,
    *more: str,
    backend: str = "aot_eager",
    limit_s: float = LIMIT_S,
    **environment: str,
) -> dict[int, float]:
    """Losses by step, as rank 0 prints them; the compiler makes no code unless another backend is named."""
    ranks = ["--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    size = ["--batch-size", "128", "--rows", "1000", "--agree-every", "5", "--backend", backend]
    words = ["-m", "ett_trainer_hooks.reference", "--steps", str(steps), *size]
    words += ["--checkpoint-dir", str(folder / "checkpoints"), *more]
    with marked() as mark:
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", *ranks, *words],
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment, **mark},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    return {
        int(step): float(loss) for step, loss in re.findall(r"step (\d+) of \d+: loss ([\d.]+)", done.stdout)
    }
