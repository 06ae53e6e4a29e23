"""Time to recover from SIGKILL of a rank: plain, with the parts, with the parts and standbys, in turns.

    python benchmarks/pipeline/start/recovery.py [--rounds 5] [--ways plain parts standby] [--hosts same new]

torchrun starts both ranks again. On the *same* host they find the caches that the first start has filled;
for a *new* host these are removed before the kill (the store of `--cache` stays, as a shared one does, and
so do standbys). The rank is killed once a checkpoint is durable, and the standbys, where there are any,
are ready. Figures are read from the journals by the accounting of core.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jobs
from jobs import Start
from run import spread

from ett_cli.journals import read_journals
from ett_core.events import AnyEvent, AttemptStart, CheckpointDurable, Decision, Progress

PARTS = "all,-interval_control,-standby"
WAYS = {
    "plain": Start(),
    "parts": Start(parts=PARTS),
    "standby": Start(parts=f"{PARTS},standby"),
}
HOSTS = ("same", "new")
LOOK_S = 0.5
KILLED = 1
CACHES = ("inductor", "triton", "tmp/torchinductor_*")
"""What a host that nobody has used lacks, the precompiled header in the temporary directory included."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--hosts", nargs="+", choices=HOSTS, default=list(HOSTS))
    parser.add_argument("--warmup", type=float, default=15.0, help="seconds until the data are there")
    given = parser.parse_args()
    print("| host | way | time to recover, s | times faster than the first | load |", flush=True)
    print("|---|---|---|---|---|", flush=True)
    for host in given.hosts:
        with tempfile.TemporaryDirectory(prefix="recovery-") as folder:
            figures = measured(given.ways, given.rounds, given.warmup, Path(folder), is_new=host == "new")
        for way, rows in figures.items():
            faster = [first[0] / own[0] for first, own in zip(figures[given.ways[0]], rows, strict=True)]
            times, loads = (spread([row[place] for row in rows]) for place in range(2))
            print(f"| {host} | {way} | {times} | {spread(faster)} | {loads} |", flush=True)


def measured(
    ways: list[str], rounds: int, warmup_s: float, folder: Path, *, is_new: bool
) -> dict[str, list[tuple[float, float]]]:
    """Time to recover and load of each way, round by round; the order turns round from round to round."""
    figures: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in ways if number % 2 == 0 else ways[::-1]:
            host = folder / f"{number}-{way}"
            found = recovered(way, host, warmup_s, is_new=is_new)
            figures[way].append((found, os.getloadavg()[0]))
            print(f"{way} of round {number}: {found:.1f} s, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
            shutil.rmtree(host, ignore_errors=True)
    return figures


def recovered(way: str, host: Path, warmup_s: float, *, is_new: bool) -> float:
    """Seconds from the death of a rank to the loop of the next attempt."""
    environ = {**jobs.new_host(host), "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    options = ["--standby"] if way == "standby" else []
    start = Start(parts=WAYS[way].parts, warmup_s=warmup_s)
    words = jobs.command(start, host, host / "store", options=options, steps=1_000_000, restarts=1)
    with (host / "output").open("wb") as output:
        job = subprocess.Popen(
            [*words, "--checkpoint-every-s", "4"], env=environ, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            wait_for(lambda: is_ready(host / "journal", standbys=jobs.RANKS * len(options)), job, host)
            for cache in CACHES if is_new else ():
                for folder in host.glob(cache):
                    shutil.rmtree(folder)
            os.kill(pid_of_rank(host / "journal", KILLED), signal.SIGKILL)
            wait_for(lambda: has_gone_on(host / "journal"), job, host)
        finally:
            job.terminate()
            job.wait(timeout=jobs.LIMIT_S)
    (failure, *_) = jobs.account(host / "journal").failures
    assert failure.ttr_s is not None  # noqa: S101 - it has gone on
    return failure.ttr_s


def wait_for(condition: Callable[[], bool], job: subprocess.Popen[bytes], host: Path) -> None:
    """Wait while the job runs; RuntimeError with its last words where it ends before."""
    until = time.monotonic() + jobs.LIMIT_S
    while not condition():
        if job.poll() is not None or time.monotonic() > until:
            raise RuntimeError((host / "output").read_text(errors="replace")[-3000:])
        time.sleep(LOOK_S)


def events(journal: Path) -> list[AnyEvent]:
    return [event for part in read_journals([str(journal)]) for event in part.events]


def is_ready(journal: Path, *, standbys: int) -> bool:
    """A checkpoint is durable, and so many standbys wait."""
    seen = events(journal)
    waiting = [event for event in seen if isinstance(event, Decision) and event.what == "a standby is ready"]
    return any(isinstance(event, CheckpointDurable) for event in seen) and len(waiting) >= standbys


def has_gone_on(journal: Path) -> bool:
    """A step of the second attempt is done."""
    return any(
        isinstance(event, Progress) and event.attempt == 1 and event.rank == 0 for event in events(journal)
    )


def pid_of_rank(journal: Path, rank: int) -> int:
    """The process of a rank, by its journal's name."""
    (path,) = (
        path
        for path in journal.glob("*.jsonl")
        for event in events(path)[:1]
        if isinstance(event, AttemptStart) and event.rank == rank
    )
    return int(path.stem.rpartition("-")[2])


if __name__ == "__main__":
    main()
