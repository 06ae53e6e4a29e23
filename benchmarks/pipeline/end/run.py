"""How long does torchrun stay once its ranks have ended? Plain, and as `quick_torchrun`, in turns.

python benchmarks/pipeline/end/run.py --turns 7
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = {"plain": "torch.distributed.run", "quick": "ett_trainer_hooks.pipeline.quick_torchrun"}
RANK = """
import pathlib, os, sys, time
pathlib.Path(sys.argv[1], os.environ["RANK"]).write_text(str(time.time()))
os._exit(0)
"""


def stays_s(module: str) -> float:
    """Seconds from the end of the last of two ranks, which do nothing, to that of torchrun."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rank.py").write_text(RANK)
        words = ["--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
        command = [sys.executable, "-m", module, *words, str(folder / "rank.py"), name]
        subprocess.run(command, check=True, capture_output=True)
        ended = time.time()
        return ended - max(float((folder / rank).read_text()) for rank in "01")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    turns = parser.parse_args().turns
    load = os.getloadavg()[0]
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(turns):
        for way, module in WAYS.items():
            found[way].append(stays_s(module))
    print("| torchrun | from the end of the last rank to its own, s |\n|---|---|")
    for way, seconds in found.items():
        print(f"| {way} | {statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f}) |")
    print(f"\n{turns} turns, load {load:.1f} to {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
