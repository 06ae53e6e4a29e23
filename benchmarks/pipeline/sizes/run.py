"""Graphs and compile seconds of a start on a new host: plain, with torch's own profile, with the advice.

    python benchmarks/pipeline/sizes/run.py [--rounds 5]

Each start finds no compiled code. `pgo` and `dynamic_sources` have what one earlier, plain start of the
job has left: its profile of sizes, its journal. The order turns round from round to round.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from ett_core.events import Compile, decode

PROGRAM = Path(__file__).with_name("program.py")
WAYS = ("plain", "pgo", "dynamic_sources")
PROFILE = "dynamo"
"""Where torch keeps the profile below its cache directory."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=1)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="sizes-") as folder:
        figures = measured(rounds, Path(folder))
    print("| way | graphs | compile, s | times less than plain | steps, s | outputs | load |")
    print("|---|---|---|---|---|---|---|")
    for way, rows in figures.items():
        less = [plain[1] / own[1] for plain, own in zip(figures["plain"], rows, strict=True)]
        graphs, compile_s, steps_s, outputs, load = zip(*rows, strict=True)
        told = [f"{median(graphs):.0f}", *map(spread, (compile_s, less, steps_s)), f"{median(outputs):.6f}"]
        print(f"| {way} | {' | '.join(told)} | {spread(load)} |")


def measured(rounds: int, folder: Path) -> dict[str, list[tuple[float, ...]]]:
    """Graphs, compile seconds, seconds of all steps, sum of outputs, and load of each way, round by round."""
    started(("pgo",), folder / "first", folder / "first-journal")
    figures: dict[str, list[tuple[float, ...]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS if number % 2 == 0 else WAYS[::-1]:
            host, journal = folder / "host", folder / "journal"
            shutil.copytree(folder / "first" / PROFILE, host / PROFILE)
            shutil.copytree(folder / "first-journal", journal)
            figures[way].append(started(way.split(), host, journal))
            print(f"{way} of round {number}: {figures[way][-1]}", file=sys.stderr)
            shutil.rmtree(host)
            shutil.rmtree(journal)
    return figures


def started(parts: tuple[str, ...] | list[str], caches: Path, journal: Path) -> tuple[float, ...]:
    """One start with these parts; see `measured`."""
    known = {*journal.glob("*.jsonl")} if journal.exists() else set()
    environ = {
        **os.environ,
        "ETT_JOB_ID": "sizes",
        "ETT_JOURNAL_DIR": str(journal),
        "TORCHINDUCTOR_CACHE_DIR": str(caches),
        "TMPDIR": str(caches.parent),
        "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
    }
    load = os.getloadavg()[0]
    made = subprocess.run(
        [sys.executable, str(PROGRAM), *parts], env=environ, capture_output=True, check=True, text=True
    )
    told = json.loads(made.stdout.splitlines()[-1])
    (written,) = {*journal.glob("*.jsonl")} - known
    compiles = [
        event for event in map(decode, written.read_bytes().splitlines()) if isinstance(event, Compile)
    ]
    seconds = sum(s for event in compiles for stage, s in event.stage_seconds.items() if stage != "native")
    graphs = sum(bool(event.code) for event in compiles)
    return graphs, seconds, told["steps_s"], told["outputs"], load


def spread(values: tuple[float, ...] | list[float]) -> str:
    """Median, smallest and largest."""
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
