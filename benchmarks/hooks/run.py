"""What the hooks cost a training process: a step, CPU beside a step, memory, the exit, the disk.

One process, side by side: the same loop with an empty body is run bare and under each recorder, in
turns. Rows whose package is not installed are left out. Usage:

    python benchmarks/hooks/run.py [--runs 399] [--steps 1000] [--many-steps 10000000] [--seconds 20]
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

from automatic import observed, seams_alone

from ett_core.events import Decision
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal, NullJournal

Loop = Callable[[Iterable[int]], Iterable[int]]
IDENTITY = Identity(job_id="benchmark", writer="bench")
STEP_S = 0.01
OTHER_RUNS = 15
LEAVING = """
import sys, time
from ett_trainer_hooks import Recorder
if sys.argv[1] != "bare":
    recorder = Recorder.from_env()
    for _ in recorder.batches(range(1000)):
        pass
print(time.monotonic(), flush=True)
if sys.argv[1] == "close":
    recorder.close()
"""


def with_two_clock_reads(loader: Iterable[int]) -> Iterator[int]:
    """The floor: what no recorder that times data wait can do without."""
    for batch in loader:
        time.monotonic()
        yield batch
        time.monotonic()


def recorder_in(directory: str) -> tuple[Recorder, Journal]:
    clock = Clock()
    journal = Journal(Path(directory) / "bench-1.jsonl", IDENTITY, clock=clock)
    return Recorder(identity=IDENTITY, journal=journal, clock=clock), journal


class Discarding:
    """In the place of the peer's cloud logger: takes entries and does nothing."""

    def write_cloud_logging_entry(self, entry: object) -> None:  # noqa: ARG002 - as the peer's
        return


class Logging(Discarding):
    """The same with the `logging` call that the peer's own logger makes, into a handler that discards."""

    def __init__(self) -> None:
        self._logger = logging.getLogger("benchmark.peer")
        self._logger.setLevel(logging.INFO)
        self._logger.addHandler(logging.NullHandler())
        self._logger.propagate = False

    def write_cloud_logging_entry(self, entry: object) -> None:
        self._logger.info(entry)


def peer_loop(logger: object) -> Loop:
    """A loop that tells the peer's recorder the start of each step."""
    from ml_goodput_measurement.src.goodput import GoodputRecorder  # noqa: PLC0415 - may be missing

    recorder: Any = GoodputRecorder("job", "log", logging_enabled=True, cloud_logger=logger)

    def loop(loader: Iterable[int]) -> Iterator[int]:
        for step, batch in enumerate(loader):
            recorder.record_step_start_time(step)
            yield batch

    return loop


def microseconds_of(loop: Loop, steps: int) -> float:
    """A step's time, without the beginning and the end of the loop."""
    batches = iter(loop(repeat(0)))
    next(batches), next(batches)
    began_s = time.perf_counter()
    for _ in islice(batches, steps):
        pass
    return 1e6 * (time.perf_counter() - began_s) / steps


class Cost(NamedTuple):
    """Microseconds a step over the bare loop: run by run, and of the quietest runs of both."""

    each: list[float]
    least: float


def costs_of(loops: dict[str, Loop], steps: int, runs: int) -> dict[str, Cost]:
    """The costs of loops that take turns, each beside a bare one."""
    bare: dict[str, list[float]] = {name: [] for name in loops}
    full: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(runs):
        for name, loop in loops.items():
            bare[name].append(microseconds_of(iter, steps))
            full[name].append(microseconds_of(loop, steps))
    quietest = min(map(min, bare.values()))
    return {
        name: Cost([a - b for a, b in zip(full[name], bare[name], strict=True)], min(full[name]) - quietest)
        for name in loops
    }


def print_rows(costs: dict[str, Cost], floor: str) -> None:
    print("| loop | median | range | quietest runs | times the floor |\n| --- | --- | --- | --- | --- |")
    for name, (each, least) in costs.items():
        figures = f"{statistics.median(each):.2f} | {min(each):.2f} to {max(each):.2f} | {least:.2f}"
        print(f"| {name} | {figures} | {least / costs[floor].least:.1f} |")


def cpu_share(recorder: Recorder, hook_us: float, seconds: float) -> str:
    """CPU of the hook and of our threads beside steps of 10 ms."""
    steps = round(seconds / STEP_S)
    before_s, began_s = threads_cpu_s(), time.monotonic()
    for _ in recorder.batches(range(steps)):
        time.sleep(STEP_S)
    threads_s, wall_s = threads_cpu_s() - before_s, time.monotonic() - began_s
    share = (threads_s + hook_us * 1e-6 * steps) / wall_s
    return (
        f"{100 * share:.4f} % of {steps} steps of 10 ms: {1000 * threads_s:.1f} ms in the threads, "
        f"{hook_us * steps / 1000:.1f} ms in the loop, {wall_s:.1f} s"
    )


def threads_cpu_s() -> float:
    """CPU seconds of our threads so far."""
    ours = [thread.native_id for thread in threading.enumerate() if thread.name.startswith("ett-")]
    texts = [Path(f"/proc/self/task/{each}/schedstat").read_text() for each in ours]
    return sum(int(text.split()[0]) for text in texts) / 1e9


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def memory_growth(recorder: Recorder, steps: int) -> str:
    """Resident memory over many steps, from a tenth of them on."""
    marks = []
    for number, _ in enumerate(recorder.batches(repeat(0, steps))):
        if number % (steps // 10) == 0:
            marks.append(resident_bytes() // 1024)
    return f"{marks[-1] - marks[1]:+d} KiB from step {steps // 10:,} to {steps:,} ({marks[1]:,} KiB resident)"


def exit_delays_ms(mode: str, runs: int) -> list[float]:
    """Milliseconds from the last statement of a program to the end of its process."""
    delays = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as directory:
            environ = {**os.environ, "ETT_JOB_ID": "benchmark", "ETT_JOURNAL_DIR": directory}
            command = [sys.executable, "-c", LEAVING, mode]
            with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as child:
                assert child.stdout is not None  # noqa: S101 - of Popen
                left_s = float(child.stdout.readline())
                child.wait()
                delays.append(1000 * (time.monotonic() - left_s))
    return delays


def journal_rates(directory: str, events: int, runs: int) -> tuple[list[float], list[float]]:
    """Thousand events a second that are put, and that are put and on their way to the disk."""
    put, written = [], []
    for run in range(runs):
        path = Path(directory) / f"rate{run}-1.jsonl"
        journal = Journal(path, IDENTITY, clock=Clock(), limit=2 * events)
        began_s = time.perf_counter()
        for _ in range(events):
            journal.put(Decision, 1e9, what="interval", why="cheaper", values={"interval_s": 600.0})
        put.append(events / (time.perf_counter() - began_s) / 1000)
        journal.flush(60.0)
        written.append(events / (time.perf_counter() - began_s) / 1000)
        journal.close()
    return put, written


def in_words(values: Sequence[float], unit: str) -> str:
    return f"median {statistics.median(values):.1f} {unit} ({min(values):.1f} to {max(values):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=399)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--many-steps", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as watched:
        off = Recorder(identity=Identity(job_id="-", writer="-"), journal=NullJournal())
        on, journal = recorder_in(directory)
        floor, ours = "two clock reads in a generator (floor)", "`batches()`, journal on disk"
        loops: dict[str, Loop] = {
            floor: with_two_clock_reads,
            "`batches()` with the recorder off": off.batches,
            ours: on.batches,
        }
        watch = observed(watched) if find_spec("torch") and "torch" not in sys.modules else None
        if find_spec("ml_goodput_measurement"):
            peer = "ml-goodput-measurement `record_step_start_time`"
            loops[f"{peer}, logger that discards"] = peer_loop(Discarding())
            loops[f"{peer}, through `logging` into a handler that discards"] = peer_loop(Logging())
        print(f"Python {platform.python_version()}, {arguments.steps:,} steps, {arguments.runs} runs\n")
        costs = costs_of(loops, arguments.steps, arguments.runs)
        if watch is not None:
            seams = seams_alone(watch, arguments.steps, arguments.runs)
            costs["nothing in the code (hook and wrapper alone)"] = Cost(seams, statistics.median(seams))
        print_rows(costs, floor)
        print("\nCPU:", cpu_share(on, costs[ours].least, arguments.seconds))
        print("memory:", memory_growth(on, arguments.many_steps))
        journal.close()
        put, written = journal_rates(directory, 50_000, OTHER_RUNS)
        print("journal, events put:", in_words(put, "thousand a second"))
        print("journal, events written:", in_words(written, "thousand a second"))
    for mode, what in (("bare", "no recorder"), ("close", "`close()`"), ("end", "no `close()`")):
        print(f"exit, {what}:", in_words(exit_delays_ms(mode, OTHER_RUNS), "ms"))


if __name__ == "__main__":
    main()
