"""What happens to a job and at which step: for one seed the same, whoever trains."""

from __future__ import annotations

import os
import random
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from ett_core.events import decode
from ett_trainer_hooks.journal.parts import pid_of
from ett_trainer_hooks.journal.segments import journals_in

RANK_KILLED, JOB_PREEMPTED, CHECKPOINT_DAMAGED = "rank killed", "job preempted", "checkpoint damaged"
AT = {RANK_KILLED: 0.25, JOB_PREEMPTED: 0.5, CHECKPOINT_DAMAGED: 0.75}
"""Shares of the training at which faults strike, about."""
SPREAD = 0.08
"""They strike so much earlier or later, evenly: anywhere between two saves."""
VICTIM_RANK = 1
_STEP = re.compile(r"step_(\d+)")


@dataclass(frozen=True)
class Fault:
    """What happens once the job has printed a step of at least `at_step`."""

    kind: str
    at_step: int


def planned(seed: int, steps: int) -> list[Fault]:
    """The faults of a run, in order.

    >>> [fault.kind for fault in planned(0, 1000)]
    ['rank killed', 'job preempted', 'checkpoint damaged']
    >>> planned(0, 1000) == planned(0, 1000) != planned(1, 1000)
    True
    """
    draw = random.Random(seed)  # noqa: S311 - nothing secret
    return [Fault(kind, round(steps * (at + draw.uniform(-SPREAD, SPREAD)))) for kind, at in AT.items()]


def strike(fault: Fault, *, launcher: int, journals: Path, checkpoints: Path) -> str:
    """Let a fault happen to the job of a launcher; says what was done."""
    if fault.kind == JOB_PREEMPTED:
        os.kill(launcher, signal.SIGTERM)
        return "SIGTERM to the launcher"
    os.kill(process_of(VICTIM_RANK, journals), signal.SIGKILL)
    said = f"SIGKILL to rank {VICTIM_RANK}"
    return f"{said}, {damage(checkpoints)}" if fault.kind == CHECKPOINT_DAMAGED else said


def process_of(rank: int, journals: Path) -> int:
    """The process id of the rank that trains: that of its newest journal."""
    begun: list[tuple[float, int]] = []
    for path in journals_in(journals):
        with path.open("rb") as lines:
            event = decode(next(lines))
        if event.rank == rank and (pid := pid_of(path)):
            begun.append((event.time, pid))
    return max(begun)[1]


def damage(checkpoints: Path) -> str:
    """Cut the largest file of the newest checkpoint in half, as a disk that was full does; says which."""
    steps = {
        int(found[1]): path for path in checkpoints.rglob("step_*") if (found := _STEP.fullmatch(path.name))
    }
    if not steps:
        raise RuntimeError(f"there is no checkpoint under {checkpoints} that could be damaged")
    newest = steps[max(steps)]
    largest = max(
        (file for file in newest.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size
    )
    os.truncate(largest, largest.stat().st_size // 2)
    return f"{newest.name}/{largest.name} cut in half"
