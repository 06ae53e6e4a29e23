"""Whether an exporter keeps up with many journals that it watches, and what that takes.

    python benchmarks/exporter/watched.py [--journals 10000] [--rounds 3] [--growing 1000]

Journals of jobs of 8 ranks, a directory a job, lie below a directory that `ett exporter --watch` follows.
Told are the seconds until all of them are read the first time; then, `--rounds` times, until one more line
of each is taken in, and of `--growing` of them; the processor time of a minute in which nobody writes; and
the most descriptors that were open at any look of ours.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from ingest import RANKS, Server, exporter, running

from ett_core import events as ev

QUIET_S = 60.0
LOOK_S = 0.05


class Journal:
    """The journal of one rank, which trains."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._path = folder / f"{rank:016x}-{rank}.jsonl"
        self._where = {"job_id": folder.name, "writer": f"{rank:04x}{folder.name}", "attempt": 0}
        self._where |= {"rank": rank, "node": f"node-{rank}"}
        self._numbers = itertools.count()

    def grow(self, lines: int) -> int:
        """Write so many further lines; returns that number."""
        with self._path.open("ab") as journal:
            journal.write(b"".join(ev.encode(self._next()) + b"\n" for _ in range(lines)))
        return lines

    def _next(self) -> ev.AnyEvent:
        seq = next(self._numbers)
        where: dict[str, Any] = {**self._where, "seq": seq, "time": time.time()}
        match seq:
            case 0:
                return ev.AttemptStart(**where, world_size=RANKS, accelerators=RANKS, labels={"team": "ads"})
            case 1:
                return ev.FirstBatch(**where)
            case _:
                return ev.Progress(**where, step=10 * seq, steps=10, samples=640.0, data_wait_s=0.0)


class Watched:
    """An exporter that follows journals, and what was written to them so far."""

    def __init__(self, server: Server, written: int) -> None:
        self.most_open = 0
        self._server = server
        self._open = Path(f"/proc/{server.process.pid}/fd")
        self._written = written

    def taken_in_s(self, lines: int = 0) -> float:
        """Seconds until it has taken in everything that was written, with so many further lines."""
        self._written += lines
        began_s = time.perf_counter()
        while self._taken_in() < self._written:
            self.most_open = max(self.most_open, len(list(self._open.iterdir())))
            time.sleep(LOOK_S)
        return time.perf_counter() - began_s

    def _taken_in(self) -> int:
        address = f"http://127.0.0.1:{self._server.port}/api/v1/health"
        with urllib.request.urlopen(address, timeout=600) as answer:
            return int(json.load(answer)["events"])


def compare(place: Path, many: int, growing: int, rounds: int) -> None:
    folders = [place / "journals" / f"job-{number}" for number in range(many // RANKS)]
    for folder in folders:
        folder.mkdir(parents=True)
    journals = [Journal(folder, rank) for folder in folders for rank in range(RANKS)]
    written = sum(journal.grow(4) for journal in journals)
    command = [*exporter(str(place / "ett.sqlite")), "--watch", str(place / "journals")]
    print(f"{len(journals):,} journals of {len(folders):,} jobs\n")
    print("| what | seconds, median (range) |\n|---|---|")
    with running(command) as server:
        watched = Watched(server, written)
        _row(f"first look, {written:,} lines", [watched.taken_in_s()])
        for chosen in (journals, journals[:: len(journals) // growing]):
            seconds = [watched.taken_in_s(sum(each.grow(1) for each in chosen)) for _ in range(rounds)]
            _row(f"a line more in {len(chosen):,}", seconds)
        cpu_s = server.cpu_s()
        time.sleep(QUIET_S)
        _row(f"processor time of {QUIET_S:g} s in which nobody writes", [server.cpu_s() - cpu_s])
    print(f"\nAt most {watched.most_open} descriptors were open.")


def _row(what: str, seconds: list[float]) -> None:
    middle = statistics.median(seconds)
    print(f"| {what} | {middle:.1f} ({min(seconds):.1f} to {max(seconds):.1f}) |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--journals", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growing", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        compare(Path(place), arguments.journals, arguments.growing, arguments.rounds)


if __name__ == "__main__":
    main()
