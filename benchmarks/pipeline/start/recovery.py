"""Time to recover from SIGKILL of a rank: plain, with the parts, with the parts and standbys, in turns.

    python benchmarks/pipeline/start/recovery.py --out results [--rounds 5] [--hosts same new] [--minutes 60]

torchrun starts both ranks again. On the *same* host they find the caches that the first start has filled;
for a *new* host these are removed before the kill (the store of `--cache` stays, as a shared one does, and
so do standbys). The rank is killed once a checkpoint is durable, and the standbys, where there are any,
are ready. Figures are read from the journals by the accounting of core.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import jobs
import turns
from jobs import JobFailedError, Start

from ett_cli.journals import read_journals
from ett_core.events import AnyEvent, AttemptStart, CheckpointDurable, Decision, Progress

PARTS = "all,-interval_control,-standby"
WAYS = {
    "plain": Start(),
    "parts": Start(parts=PARTS),
    "standby": Start(parts=f"{PARTS},standby"),
}
HOSTS = ("same", "new")
LOOK_S = 2.0
"""Between two looks into the journals, which take processor time from what is measured."""
KILLED = 1
CACHES = ("inductor", "triton", "tmp/torchinductor_*", "tmp/ett-kept-*")
"""What a host that nobody has used lacks: the precompiled header and what was made of the data included."""


def main() -> None:
    parser = turns.arguments(__doc__)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--hosts", nargs="+", choices=HOSTS, default=list(HOSTS))
    parser.add_argument("--warmup", type=float, default=15.0, help="seconds until the data are there")
    given = parser.parse_args()
    columns = turns.Columns(("time to recover, s",), "times faster than the first", turns.times_less)
    turns.run([on(host, given.ways, given.warmup) for host in given.hosts], columns, given)


def on(kind: str, ways: list[str], warmup_s: float) -> turns.Comparison:
    """The ways on one kind of host."""

    def measure(way: str, host: Path, _lasting: Path) -> tuple[float]:
        return (recovered(way, host, warmup_s, is_new=kind == "new"),)

    return turns.Comparison(f"{kind} host, data warm up for {warmup_s:g} s", ways, measure)


def recovered(way: str, host: Path, warmup_s: float, *, is_new: bool) -> float:
    """Seconds from the death of a rank to the loop of the next attempt."""
    environ = {**jobs.new_host(host), "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    options = ["--standby"] if way == "standby" else []
    start = Start(parts=WAYS[way].parts, warmup_s=warmup_s)
    words = jobs.command(start, host, host / jobs.STORE, options=options, steps=1_000_000, restarts=1)
    journal = host / "journal"
    with jobs.running([*words, "--checkpoint-every-s", "4"], environ, host) as job:
        wait_for(lambda: is_ready(journal, standbys=jobs.RANKS * len(options)), job, host)
        for cache in CACHES if is_new else ():
            for folder in host.glob(cache):
                shutil.rmtree(folder)
        os.kill(pid_of_rank(journal, KILLED), signal.SIGKILL)
        wait_for(lambda: has_gone_on(journal), job, host)
    (failure, *_) = jobs.account(journal).failures
    shutil.rmtree(host, ignore_errors=True)
    if failure.ttr_s is None:
        raise JobFailedError(f"{way} has gone on, and its journals tell of no recovery")
    return failure.ttr_s


def wait_for(condition: Callable[[], bool], job: subprocess.Popen[bytes], host: Path) -> None:
    """Wait while the job runs; JobFailedError with its last words where it ends before."""
    until = time.monotonic() + jobs.LIMIT_S
    while not condition():
        if job.poll() is not None or time.monotonic() > until:
            raise JobFailedError(jobs.last_words(host))
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
