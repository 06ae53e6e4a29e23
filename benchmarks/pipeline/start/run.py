"""How long a job takes to start: a plain trainer and the optimised one, in turns, each on a new host.

    python benchmarks/pipeline/start/run.py [--rows tts-15 tts-60] [--pairs 5] [--load 2]

Every figure is read from the journals that the jobs themselves write, by the accounting of core.
With `--load` every job waits until the load of the last minute is below that, at most half an hour.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import jobs
from rows import ROWS, Row

PATIENCE_S = 1800.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--load", type=float, default=math.inf)
    given = parser.parse_args()
    print("| figure | plain, s | with parts, s | change in pairs | load |", flush=True)
    print("|---|---|---|---|---|", flush=True)
    for name in given.rows:
        with tempfile.TemporaryDirectory(prefix="start-") as folder:
            print(line(ROWS[name], *measured(ROWS[name], given.pairs, given.load, Path(folder))), flush=True)


def measured(row: Row, pairs: int, load: float, folder: Path) -> tuple[list[float], list[float], list[float]]:
    """The figure of each side, pair by pair, and the loads; who comes first takes turns."""
    rival: list[float] = []
    ours: list[float] = []
    loads: list[float] = []
    for pair in range(pairs):
        sides = [("rival", row.rival, rival), ("ours", row.ours, ours)]
        for side, start, figures in sides if pair % 2 == 0 else sides[::-1]:
            host = folder / f"{pair}-{side}"
            store = folder / (f"{side}-store" if start.primed else f"{pair}-{side}-store")
            wait_for(load)
            figures.append(row.figure(jobs.started(start, host, store)))
            loads.append(os.getloadavg()[0])
            shutil.rmtree(host)
            print(
                f"{row.words}, {side} of pair {pair}: {figures[-1]:.1f} s, load {loads[-1]:.1f}",
                file=sys.stderr,
            )
    return rival, ours, loads


def wait_for(load: float) -> None:
    """Wait until the machine is quiet enough, or for half an hour."""
    until = time.monotonic() + PATIENCE_S
    while os.getloadavg()[0] > load and time.monotonic() < until:
        time.sleep(2.0)


def line(row: Row, rival: Sequence[float], ours: Sequence[float], loads: Sequence[float]) -> str:
    """A row of the table."""
    changes = [100 * (after / before - 1) for before, after in zip(rival, ours, strict=True)]
    told = (spread(rival), spread(ours), f"{spread(changes, '.0f')} %", spread(loads, ".0f"))
    return f"| {row.words} | {' | '.join(told)} |"


def spread(values: Sequence[float], form: str = ".1f") -> str:
    """Median and range.

    >>> spread([3.0, 1.0, 2.0]), spread([2.5])
    ('2.0 (1.0 to 3.0)', '2.5')
    """
    middle = f"{statistics.median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}} to {max(values):{form}})"


if __name__ == "__main__":
    main()
