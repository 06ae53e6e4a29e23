"""Compile seconds of a start on a new host: plain, with torch's own MegaCache, and with bundles, in turns.

    python benchmarks/pipeline/start/compile_ways.py [--rounds 5] [--ways plain stock bundle]

`stock` and `bundle` have what one earlier start, on another host, has left. The order turns round from
round to round.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import jobs
from jobs import Start
from run import spread

WAYS = {
    "plain": Start(),
    "stock": Start(stock=True, primed=True),
    "bundle": Start(parts="bundle", primed=True),
    "one_compile": Start(parts="one_compile"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["plain", "stock", "bundle"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ways-") as folder:
        figures = measured(given.ways, given.rounds, Path(folder))
    print("| way | compile, s | times less than the first | in the store, s | time to start, s | load |")
    print("|---|---|---|---|---|---|")
    for way, rows in figures.items():
        less = [first[0] / own[0] for first, own in zip(figures[given.ways[0]], rows, strict=True)]
        columns = [spread([row[place] for row in rows]) for place in range(4)]
        print(f"| {way} | {columns[0]} | {spread(less)} | {' | '.join(columns[1:])} |")


def measured(ways: list[str], rounds: int, folder: Path) -> dict[str, list[tuple[float, ...]]]:
    """Compile seconds, seconds of the store, time to start and load of each way, round by round."""
    figures: dict[str, list[tuple[float, ...]]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in ways if number % 2 == 0 else ways[::-1]:
            host = folder / f"{number}-{way}"
            found = jobs.started(WAYS[way], host, folder / f"store-{way}")
            row = (jobs.compile_s(found), jobs.cache_load_s(found), jobs.tts_s(found), os.getloadavg()[0])
            figures[way].append(row)
            print(f"{way} of round {number}: {row[0]:.1f} s, load {row[-1]:.1f}", file=sys.stderr)
            shutil.rmtree(host)
    return figures


if __name__ == "__main__":
    main()
