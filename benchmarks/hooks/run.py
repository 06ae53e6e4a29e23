"""What a step of `Recorder.batches()` costs, against the same loop without it.

One process, one thread beside it (the journal's); the loop body is empty, so that nothing but the
hook is measured. Usage: python benchmarks/hooks/run.py [--steps 200000] [--runs 9]
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal, NullJournal

Loop = Callable[[Iterable[int]], Iterable[int]]


def seconds_of(loop: Loop, steps: int) -> float:
    """Seconds of `steps` steps with an empty body."""
    began_s = time.perf_counter()
    for _ in loop(range(steps)):
        pass
    return time.perf_counter() - began_s


def with_two_clock_reads(loader: Iterable[int]) -> Iterable[int]:
    """The floor: what no recorder that times data wait can do without."""
    for batch in loader:
        time.monotonic()
        yield batch
        time.monotonic()


def recorder_in(directory: Path) -> tuple[Recorder, Journal]:
    identity = Identity(job_id="benchmark", writer="bench")
    clock = Clock()
    journal = Journal(directory / "bench-1.jsonl", identity, clock=clock)
    return Recorder(identity=identity, journal=journal, clock=clock), journal


def microseconds(loop: Loop, steps: int, runs: int) -> list[float]:
    """Microseconds a step over an empty loop, run by run; the two loops take turns."""
    return [1e6 * (seconds_of(loop, steps) - seconds_of(iter, steps)) / steps for _ in range(runs)]


def row(name: str, costs: list[float]) -> str:
    low, high = min(costs), max(costs)
    return f"| {name} | {statistics.median(costs):.2f} | {low:.2f} to {high:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=9)
    arguments = parser.parse_args()
    off = Recorder(identity=Identity(job_id="-", writer="-"), journal=NullJournal())
    with tempfile.TemporaryDirectory() as directory:
        on, journal = recorder_in(Path(directory))
        loops: dict[str, Loop] = {
            "two clock reads in a generator (floor)": with_two_clock_reads,
            "recorder off (`ETT_DISABLED=1`)": off.batches,
            "recorder on, journal on disk": on.batches,
        }
        print(f"Python {platform.python_version()}, {arguments.steps} steps, {arguments.runs} runs\n")
        print("| loop | median µs a step over the bare loop | range |\n| --- | --- | --- |")
        for name, loop in loops.items():
            print(row(name, microseconds(loop, arguments.steps, arguments.runs)))
        journal.close()


if __name__ == "__main__":
    main()
