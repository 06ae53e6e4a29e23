"""One start of a job writes checkpoints to a directory: another one learns who does, and waits or is refused.

Where the launcher was killed its ranks may train on, and a second start beside them would clear away what
they write, and they what it writes. `writer/` below the directory holds a lease of the rank that leads
(`pipeline.takes`): gone with its process on this machine, and a minute after that elsewhere. It is no use
for directories that the other start does not share, such as disks of nodes, nor for URLs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline import takes
from ett_trainer_hooks.pipeline.takes import Holder, Lease

FOLDER = "writer"
HERE_S = 30.0
"""Longest wait for a process on this machine, which may just be ending."""
ELSEWHERE_S = takes.LEASE_S + 10.0
"""Longest wait for one elsewhere: until it has renewed its lease once more, or not."""
LOOK_EVERY_S = 0.5


class OccupiedError(Exception):
    """Another start writes to the directory; the message tells which, since when, and what to do."""

    def __init__(self, directory: Path, holder: Holder) -> None:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.taken_at))
        super().__init__(
            f"another start writes to {directory}: process {holder.pid} on {holder.node}, of job "
            f"{holder.job_id}, since {since}. End it and what has started it (pstree -sp {holder.pid}, "
            "there), or wait until it ends; then start again"
        )


def claim(
    directory: Path,
    recorder: Recorder,
    *,
    pause: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Lease:
    """Be the one that writes to a directory, until the lease is released or this process ends.

    Whoever writes asks `check` of the lease before each save: it raises once another start has taken over
    from a process that stood still for too long. A `decision` tells of a wait.

    Raises:
        OccupiedError: another start writes there.
        OSError: the disk does not take it.
    """
    folder = directory / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    began_s, told = clock(), False
    while isinstance(taken := takes.take(folder, recorder.identity.job_id), Holder):
        if clock() - began_s > (HERE_S if takes.is_here(taken) else ELSEWHERE_S):
            raise OccupiedError(directory, taken)
        if not told:
            told = True
            why = str(OccupiedError(directory, taken))
            recorder.decision("this start waits for the one that writes its checkpoints", why)
        pause(LOOK_EVERY_S)
    takes.forget_older(folder, taken.number)
    return taken


def writer_here(directory: Path) -> Holder | None:
    """The process of this machine that writes to a directory; None where there is none, or none is known."""
    folder = directory / FOLDER
    try:
        number, holder = takes.latest(folder)
        if holder is not None and takes.is_here(holder) and takes.is_alive(folder, number, holder):
            return holder
    except OSError:  # no such folder, or none that we may read: the first rank will say so
        return None
    return None
