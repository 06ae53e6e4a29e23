"""Starts of the reference trainer on hosts of their own, read from the product's own events.

A host is a folder: its compiler caches, temporary files (the precompiled header among them) and
checkpoints lie there, so a new folder is a new host. What `--cache` names is elsewhere and may
outlive it, as a shared store does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from ett_cli.journals import read_journals
from ett_core.accounting import JobAccount, JobFold

HERE = Path(__file__).parent
RANKS = 2
STEPS = 20
LIMIT_S = 900
ENDING_S = 60
"""How long a job that was told to end may take."""
STORE = "store"


class JobFailedError(RuntimeError):
    """A job did not do what is measured; carries its last words."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """How the trainer is started."""

    parts: str = ""
    warmup_s: float = 0.0
    primed: bool = False
    """Whether an earlier start, on another host, has filled the store."""
    stock: bool = False
    """Whether torch's own MegaCache is used, whose artifacts lie in the store too."""


def prime(start: Start, lasting: Path) -> None:
    """Have an earlier start, on a host of its own, fill the store in a folder, where one is wanted."""
    if start.primed and not (lasting / STORE).exists():
        before = lasting / "before"
        shutil.rmtree(before, ignore_errors=True)
        _started(replace(start, warmup_s=0.0), before / "host", before / STORE)
        (before / STORE).rename(lasting / STORE)


def started(start: Start, host: Path, lasting: Path) -> JobAccount:
    """The account of one job on a host that nobody has used; one that is primed has the store of a folder."""
    return _started(start, host, lasting / STORE if start.primed else host / STORE)


def _started(start: Start, host: Path, store: Path) -> JobAccount:
    environ = {**new_host(host), "STOCK_ARTIFACTS": str(store)}
    with running(command(start, host, store), environ, host) as job:
        if job.wait(timeout=LIMIT_S):
            raise JobFailedError(last_words(host))
    found = account(host / "journal")
    shutil.rmtree(host)
    return found


def new_host(host: Path) -> dict[str, str]:
    """The environment of a host without caches."""
    places = {"TMPDIR": "tmp", "TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
    (host / "tmp").mkdir(parents=True)
    given = {name: str(host / folder) for name, folder in places.items()}
    mine = {name: text for name, text in os.environ.items() if not name.startswith(("TORCH", "ETT_"))}
    return {**mine, **given, "OMP_NUM_THREADS": "1"}


@contextmanager
def running(
    words: Sequence[str], environ: Mapping[str, str], host: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A job on a host while the block runs; what it says is kept there, none of its processes is."""
    with (host / "output").open("wb") as output:
        job = subprocess.Popen(words, env=environ, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield job
    finally:
        job.terminate()
        try:
            job.wait(timeout=ENDING_S)
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
        clear(host)


def clear(host: Path) -> None:
    """End what still runs on a host: known by its folder for temporary files."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("TMPDIR") == str(host / "tmp"):
                process.kill()


def last_words(host: Path) -> str:
    """The end of what the job of a host has said."""
    return f"the job under {host} failed:\n{(host / 'output').read_text(errors='replace')[-3000:]}"


def command(  # noqa: PLR0913 - what differs from benchmark to benchmark
    start: Start,
    host: Path,
    store: Path,
    *,
    options: Sequence[str] = (),
    steps: int = STEPS,
    restarts: int = 0,
) -> list[str]:
    """Words that start the job under `ett run` with these options; torchrun restarts its ranks so often."""
    ett = str(Path(sys.executable).with_name("ett"))
    watched = [ett, "run", "--job-id", "start", "--journal-dir", str(host / "journal"), *options, "--"]
    ranks = ["--nproc-per-node", str(RANKS), "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    ranks += ["--max-restarts", str(restarts)]
    program = [str(HERE / "stock.py")] if start.stock else ["-m", "ett_trainer_hooks.reference"]
    launcher = [sys.executable, "-m", "torch.distributed.run", *ranks, *program]
    given = {
        "--steps": steps,
        "--checkpoint-dir": host / "checkpoints",
        "--parts": start.parts,
        "--cache": store,
        "--data-warmup-s": start.warmup_s,
    }
    return [*watched, *launcher, *(str(word) for pair in given.items() for word in pair)]


def account(journal: Path) -> JobAccount:
    """What the journals of a job add up to."""
    fold = JobFold("start")
    for part in read_journals([str(journal)]):
        fold.add(part.events)
    found = fold.account(time.time())
    if found is None or found.tts_s is None:
        raise JobFailedError(f"the journals under {journal} tell of no start")
    return found


def compile_s(found: JobAccount) -> float:
    """Seconds of compilation before the loop, waited for or hidden, over all attempts."""
    waited = sum(found.components.get(f"{when}.compile", 0.0) for when in ("start", "recover"))
    return waited + sum(attempt.hidden.get("compile", 0.0) for attempt in found.attempts)


def cache_load_s(found: JobAccount) -> float:
    """Seconds that the start waited for stores and for what they hold to be put in place."""
    return sum(found.components.get(f"{when}.cache_load", 0.0) for when in ("start", "recover"))


def plan_s(found: JobAccount) -> float:
    """Seconds that the start waited for the sharding plan."""
    return sum(found.components.get(f"{when}.sharding_plan", 0.0) for when in ("start", "recover"))


def tts_s(found: JobAccount) -> float:
    """Seconds from the first process of the job, its launcher, to its loop."""
    assert found.tts_s is not None  # noqa: S101 - `account` has looked
    return found.tts_s
