"""One start of a job writes checkpoints to a directory: another one learns who does, and waits or is refused.

Where the launcher was killed its ranks may train on, and a second start beside them would clear away what
they write, and they what it writes. `writer/` below the directory holds a lease of the rank that leads
(`pipeline.takes`): gone with its process on this machine, and a minute after that elsewhere. It is no use
for directories that the other start does not share, such as disks of nodes, nor for URLs.

Where its launcher starts a job again on another machine, nobody waits for that minute: the later start takes
over at once. Should the earlier one live on, it publishes nothing more, whatever moment it was in (the store
that was given the lease sees to that).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.guard import warn_on_stderr
from ett_trainer_hooks.identity import launch_from_env
from ett_trainer_hooks.pipeline import takes
from ett_trainer_hooks.pipeline.takes import Holder, Lease, Machine, Start

FOLDER = "writer"
HERE_S = 30.0
"""Longest wait for a process on this machine, which may just be ending."""
ELSEWHERE_S = takes.LEASE_S + 10.0
"""Longest wait for one elsewhere: until it has renewed its lease once more, or not."""
NOBODY = "-"
"""The job of a recorder that is off."""


class OccupiedError(Exception):
    """Another start writes to the directory; the message tells which, since when, and what to do."""

    def __init__(self, directory: Path, holder: Holder) -> None:
        super().__init__(
            f"another start writes to {directory}: {holder}. End it and what has started it "
            f"(pstree -sp {holder.pid}, there), or wait until it ends; then start again"
        )


def claim(  # noqa: PLR0913 - the world is injected
    directory: Path,
    recorder: Recorder,
    *,
    start: Start | None = None,
    here: Machine | None = None,
    pause: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    say: Callable[[str], object] = warn_on_stderr,
) -> Lease:
    """Be the one that writes to a directory, until the lease is released or this process ends.

    Whoever writes asks `check` of the lease before each save: it raises once another start has taken over
    from this one. A `decision`, and a line on stderr, tell of a wait, and of an earlier start that was not
    waited for.

    Args:
        directory: where checkpoints lie.
        recorder: what is told to.
        start: which start of the job this is (`this_start`); for a lease that the store is given that writes.
        here: this machine.
        pause: waits so many seconds.
        clock: seconds.
        say: takes a sentence for whoever watches the start.

    Raises:
        OccupiedError: another start writes there.
        OSError: the disk does not take it.
    """
    folder, job_id = directory / FOLDER, recorder.identity.job_id
    folder.mkdir(parents=True, exist_ok=True)
    began_s, told = clock(), False
    while isinstance(taken := takes.take(folder, job_id, start=start, here=here), Holder):
        patience_s = HERE_S if takes.is_here(taken, here) else ELSEWHERE_S
        if clock() - began_s > patience_s:
            raise OccupiedError(directory, taken)
        if not told:
            told = True
            ends = time.strftime("%H:%M:%S", time.localtime(time.time() + patience_s))
            what = "this start waits for the one that writes its checkpoints"
            _tell(recorder, say, what, f"{taken}, in {directory}; it waits until {ends}, then gives up")
        pause(takes.LOOK_EVERY_S)
    if told:
        say(f"{directory} is free after a wait of {clock() - began_s:.0f} s")
    if taken.took_from is not None and start is not None:
        what = "this start takes over from an earlier one that may still write checkpoints"
        why = f"{taken.took_from}; this is attempt {start.attempt}, what that process saves is not published"
        _tell(recorder, say, what, why)
    takes.forget_older(folder, taken.number)
    return taken


def this_start(recorder: Recorder, environ: Mapping[str, str] = os.environ) -> Start | None:
    """Which start of its job this process belongs to; None where nobody says."""
    if recorder.identity.job_id == NOBODY:
        return None
    try:
        launch = launch_from_env(environ)
    except ValueError:  # of a variable that was changed since the recorder was made
        return None
    return Start(launch, recorder.identity.attempt)


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


def writer_elsewhere(
    directory: Path,
    *,
    pause: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    say: Callable[[str], object] = warn_on_stderr,
) -> Holder | None:
    """The process of another machine that is seen to write to a directory.

    It is watched for up to 15 seconds where its lease has not run out, which `say` is told.
    """
    folder = directory / FOLDER
    try:
        number, holder = takes.latest(folder)
        if holder is None or takes.is_here(holder) or not takes.is_alive(folder, number, holder):
            return None
        patience = f"up to {takes.SEEN_WITHIN_S:g} s to see whether it still does"
        say(f"{holder}, was writing to {directory}: {patience}")
        return holder if takes.is_renewed(folder, number, pause=pause, clock=clock) else None
    except OSError:
        return None


def _tell(recorder: Recorder, say: Callable[[str], object], what: str, why: str) -> None:
    recorder.decision(what, why)
    say(f"{what}: {why}")
