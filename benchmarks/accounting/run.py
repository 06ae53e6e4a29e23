"""Runs both sides in turn on the same machine and prints the tables of the README.

    .venv/bin/python benchmarks/accounting/run.py [--steps N] [--runs N]

The peer gets an environment of its own, made on the first run below --work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import workload

HERE = Path(__file__).parent
SCENARIOS = HERE.parents[1] / "tests" / "core" / "data" / "scenarios.json"
PEER = "ml-goodput-measurement==0.2.3"
TOLERANCE = 0.05
QUANTITIES = (
    ("cold fold", "cold_s", "s", 1.0),
    ("cold fold, CPU time", "cold_cpu_s", "s", 1.0),
    ("refresh after one more event", "refresh_s", "ms", 1000.0),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "ett-benchmark-accounting")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    journal = arguments.work / f"{arguments.steps}.jsonl"
    if not journal.exists():
        workload.write_journal(journal, arguments.steps)
    peer = peer_python(arguments.work / "peer")
    ours_runs, peer_runs = [], []
    for _ in range(arguments.runs):
        ours_runs.append(answer(sys.executable, "ours.py", "million", journal, arguments.steps))
        peer_runs.append(answer(peer, "peer.py", "million", arguments.steps))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print(speed_table(ours_runs, peer_runs))
    print()
    ours = answer(sys.executable, "ours.py", "scenarios", SCENARIOS)
    print(scenario_table(ours, answer(peer, "peer.py", "scenarios", SCENARIOS)))
    return 0


def peer_python(folder: Path) -> Path:
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PEER], check=True)
        (folder / "ready").touch()
    return python


def answer(python: str | Path, script: str, *words: object) -> dict[str, Any]:
    """What one side prints, run in a process of its own."""
    command = [str(python), str(HERE / script), *map(str, words)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def speed_table(ours: Sequence[dict[str, Any]], peer: Sequence[dict[str, Any]]) -> str:
    rows = ["| | ours | peer | ratio |", "|---|---|---|---|"]
    for name, key, unit, scale in QUANTITIES:
        mine, theirs = [r[key] * scale for r in ours], [r[key] * scale for r in peer]
        ratio = statistics.median(theirs) / statistics.median(mine)
        rows.append(f"| {name} | {spread(mine)} {unit} | {spread(theirs)} {unit} | {figure(ratio)} |")
    rows.append(f"| answer | {ours[0]['percent']:.2f} % | {peer[0]['percent']:.2f} % | |")
    return "\n".join(rows)


def spread(values: Sequence[float]) -> str:
    return f"{figure(statistics.median(values))} ({figure(min(values))} to {figure(max(values))})"


def figure(value: float) -> str:
    """Three digits, and all of them before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def scenario_table(ours: dict[str, Any], peer: dict[str, Any]) -> str:
    expected = {s["name"]: s["expect"]["ett_percent"] for s in json.loads(SCENARIOS.read_text())}
    rows = ["| scenario | right | ours | peer |", "|---|---|---|---|"]
    rows += [
        f"| {n} | {shown(right)} | {shown(ours[n])} | {shown(peer[n])} |" for n, right in expected.items()
    ]
    total = len(expected)
    rows.append(
        f"| **right, of {total}** | | **{count_right(expected, ours)}** | **{count_right(expected, peer)}** |"
    )
    return "\n".join(rows)


def count_right(expected: dict[str, Any], given: dict[str, Any]) -> int:
    return sum(is_right(expected[name], given[name]) for name in expected)


def is_right(right: float | None, given: object) -> bool:
    if right is None or not isinstance(given, float):
        return right is given
    return abs(right - given) <= TOLERANCE


def shown(value: object) -> str:
    if value is None:
        return "unobserved"
    return f"{value:.1f} %" if isinstance(value, float) else str(value).split(".")[0].replace("|", "/")


if __name__ == "__main__":
    sys.exit(main())
