"""One job of the benchmark under `ett train`, by a scheduler that starts it again after a preemption.

Its output is followed: what it prints of steps and losses tells when a fault is due.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import faults
from faults import JOB_PREEMPTED, Fault

HERE = Path(__file__).parent
GRACE_S = 30
TAIL = 3000
_LOSS = re.compile(r"step (\d+) of \d+: loss ([\d.]+)")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job on a host of its own: a folder with its caches, temporary files and checkpoints."""

    job_id: str
    host: Path
    words: Sequence[str]
    """Options of `ett train` beside those of the job's file."""
    exporter_url: str

    def command(self) -> list[str]:
        """The words that start it, or start it again."""
        ett = str(Path(sys.executable).with_name("ett"))
        places = {
            "--job-id": self.job_id,
            "--journal-dir": self.host / "journal",
            "--checkpoint-dir": self.host / "checkpoints",
            "--cache": self.host / "cache",
            "--publish-to": self.host / "published",
            "--exporter": self.exporter_url,
            "--grace": GRACE_S,
        }
        given = (str(word) for pair in places.items() for word in pair)
        return [ett, "train", "--config", str(HERE / "job.toml"), *given, *self.words]

    def environment(self) -> dict[str, str]:
        """That of a host without caches, which keeps what compilers leave there over restarts."""
        places = {"TMPDIR": "tmp", "TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
        mine = {name: text for name, text in os.environ.items() if not name.startswith(("TORCH", "ETT_"))}
        return {**mine, **{name: str(self.host / folder) for name, folder in places.items()}}


@dataclass
class Trained:
    """What a job printed and what was done to it."""

    losses: Mapping[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Losses by step, one each time that the step was trained."""
    struck: list[str] = field(default_factory=list)


def trained(job: Job, planned: Sequence[Fault]) -> Trained:
    """Run a job to its last step, through its faults.

    Raises:
        RuntimeError: it failed by itself.
    """
    (job.host / "tmp").mkdir(parents=True)
    left, told = list(planned), Trained()
    while True:
        preempted = _once(job, left, told)
        if not preempted:
            break
    if left:
        raise RuntimeError(f"{job.job_id} was over before {left[0].kind} at step {left[0].at_step}")
    return told


def _once(job: Job, left: list[Fault], told: Trained) -> bool:
    """Start the job, strike it with what is due; returns whether it was preempted."""
    preempted = False
    log = job.host / "stderr.log"
    with (
        log.open("a") as errors,
        subprocess.Popen(
            job.command(), env=job.environment(), stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None  # noqa: S101 - for the type checker
        for line in process.stdout:
            if (found := _LOSS.match(line)) is None:
                continue
            step = int(found[1])
            told.losses[step].append(float(found[2]))
            if left and step >= left[0].at_step:
                fault = left.pop(0)
                preempted |= fault.kind == JOB_PREEMPTED
                done = faults.strike(
                    fault,
                    launcher=process.pid,
                    journals=job.host / "journal",
                    checkpoints=job.host / "checkpoints",
                )
                told.struck.append(f"{fault.kind} after step {step}: {done}")
                print(f"{job.job_id}: {told.struck[-1]}", file=sys.stderr, flush=True)
    if process.returncode and not preempted:
        raise RuntimeError(f"{job.job_id} failed by itself:\n{log.read_text()[-TAIL:]}")
    return preempted
