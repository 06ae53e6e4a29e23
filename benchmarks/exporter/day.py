"""How long an exporter with very many jobs takes to start, and to answer about their day, over HTTP.

    python benchmarks/exporter/day.py --jobs 10000 --rounds 20

The store is the one of `benchmarks/app/fleet.py`, made once; a copy of it is served. Told are the seconds
until all jobs are folded again (events are taken from the first second on), until no question about the
fleet's day misses a job (each has sums of its own), and what whoever asks waits for each answer: at rest,
and while four fifths of the jobs report every 30 s. `queries.py` has the rival.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).parents[1] / "app"))
from fleet import MADE, STORE, feeding, make, serving, tell

QUESTIONS = {
    "24 h": "window=24h",
    "24 h by team": "window=24h&group_by=team",
    "24 h in 12 parts": "window=24h&buckets=12",
    "7 days": "window=7d",
}
GIVE_UP_S = 900.0
FED_S = 90.0
"""So that each job reported three times before anybody asks."""


def asked(exporter: str, query: str) -> tuple[float, int]:
    """The seconds that an answer about the fleet took, and how many jobs it misses."""
    began_s = time.perf_counter()
    with urlopen(f"{exporter}/api/v1/fleet?{query}") as answer:  # noqa: S310 - our own address
        body = answer.read()
    return time.perf_counter() - began_s, json.loads(body)["missing"]


def is_ready(exporter: str) -> bool:
    """Whether it knows all its jobs again."""
    try:
        with urlopen(f"{exporter}/readyz"):  # noqa: S310 - our own address
            return True
    except HTTPError:
        return False


def start(exporter: str, began_s: float) -> None:
    """Tell when it is ready, and when it misses nothing."""
    while not is_ready(exporter):
        give_up_after(began_s)
        time.sleep(0.5)
    tell(f"ready after {time.monotonic() - began_s:.0f} s")
    while missing := max(asked(exporter, query)[1] for query in QUESTIONS.values()):
        tell(f"{missing:,} jobs missing after {time.monotonic() - began_s:.0f} s")
        give_up_after(began_s)
        time.sleep(10)
    tell(f"nothing missing after {time.monotonic() - began_s:.0f} s\n")


def give_up_after(began_s: float) -> None:
    """Raises: SystemExit: it takes too long."""
    if time.monotonic() - began_s > GIVE_UP_S:
        raise SystemExit("the exporter has not become ready")


def measure(exporter: str, when: str, rounds: int) -> None:
    """A row a question."""
    seconds: dict[str, list[float]] = {}
    missed = dict.fromkeys(QUESTIONS, 0)
    for _ in range(rounds):
        for name, query in QUESTIONS.items():
            took_s, missing = asked(exporter, query)
            seconds.setdefault(name, []).append(took_s)
            missed[name] = max(missed[name], missing)
        time.sleep(1)
    for name, of in seconds.items():
        ms = [1e3 * s for s in sorted(of)]
        took = f"{statistics.median(ms):.0f} ({ms[0]:.0f} to {ms[-1]:.0f})"
        tell(f"| {name} | {when} | {took} | {missed[name]} |")


def main() -> None:
    """Make what is missing, serve it, ask."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="of the store (default: one a number of jobs, in /tmp)")
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.gettempdir()) / f"ett-fleet-{chosen.jobs}"
    make(folder, chosen.jobs)
    tell(f"{chosen.jobs:,} jobs, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as scratch:
        for file in folder.glob(f"{STORE}*"):
            shutil.copy(file, scratch)
        began_s = time.monotonic()
        with serving("exporter", "--database", str(Path(scratch) / STORE)) as (exporter, _):
            start(exporter, began_s)
            tell("| question | when | ms, median (range) | jobs missing, at most |\n|---|---|---|---|")
            measure(exporter, "at rest", chosen.rounds)
            with feeding(exporter, chosen.jobs, folder / MADE):
                time.sleep(FED_S)
                measure(exporter, "beside reports", chosen.rounds)


if __name__ == "__main__":
    main()
