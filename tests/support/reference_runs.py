"""The reference trainer on two small ranks, to its last step."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import ranks
import warm_ranks
from marked import marked
from processes import free_address

LIMIT_S = ranks.LIMIT_S
RANKS = 2
MAIN = "from ett_trainer_hooks.reference.__main__ import main\n\nmain()\n"


def train(
    folder: Path,
    steps: int,
    *more: str,
    backend: str = "aot_eager",
    limit_s: float = LIMIT_S,
    warm: bool = False,
    **environ: str,
) -> dict[int, float]:
    """Losses by step, as rank 0 prints them; the compiler makes no code unless another backend is named.

    `warm` ranks have imported torch: for those without a part that sets what torch reads then.
    """
    size = ["--batch-size", "128", "--rows", "1000", "--agree-every", "5", "--backend", backend]
    words = ["--steps", str(steps), *size, "--checkpoint-dir", str(folder / "checkpoints"), *more]
    host, _, port = free_address().partition(":")
    shared = {"MASTER_ADDR": host, "MASTER_PORT": port, **environ}
    with marked() as mark:
        if warm:
            (program := folder / "program.py").write_text(MAIN)
            out, *_ = warm_ranks.outputs_of(program, words, folder, RANKS, {**shared, **mark})
        else:
            command = [sys.executable, "-m", "ett_trainer_hooks.reference", *words]
            out, *_ = ranks.outputs_of(command, folder, RANKS, {**shared, **mark}, limit_s)
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) of \d+: loss ([\d.]+)", out)}
