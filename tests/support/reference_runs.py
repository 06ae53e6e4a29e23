"""The reference trainer on two small ranks, to its last step."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from marked import marked
from processes import free_address
from ranks import LIMIT_S, outputs_of

RANKS = 2


def train(
    folder: Path,
    steps: int,
    *more: str,
    backend: str = "aot_eager",
    limit_s: float = LIMIT_S,
    **environ: str,
) -> dict[int, float]:
    """Losses by step, as rank 0 prints them; the compiler makes no code unless another backend is named."""
    size = ["--batch-size", "128", "--rows", "1000", "--agree-every", "5", "--backend", backend]
    words = ["-m", "ett_trainer_hooks.reference", "--steps", str(steps), *size]
    words += ["--checkpoint-dir", str(folder / "checkpoints"), *more]
    host, _, port = free_address().partition(":")
    shared = {"MASTER_ADDR": host, "MASTER_PORT": port, **environ}
    with marked() as mark:
        out, *_ = outputs_of([sys.executable, *words], folder, RANKS, {**shared, **mark}, limit_s)
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) of \d+: loss ([\d.]+)", out)}
