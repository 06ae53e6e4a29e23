"""A standby for the next start of this rank: declared by the trainer, made by `ett run --standby`.

A rank that is started again imports, opens its data and compiles once more. A standby has done that
beforehand: a process of its own, made in the background while the job trains, that waits. Once torchrun
starts the rank anew, the program runs in it, from its first line. Without `ett run --standby`
nothing here does anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from ett_trainer_hooks.guard import warn_on_stderr
from ett_trainer_hooks.recording.handover import PROCESS
from ett_trainer_hooks.standby.handing_over import ASKED, PLACE, started_with
from ett_trainer_hooks.standby.understudy import State, function_of
from ett_trainer_hooks.standby.wanted import Wanted


def prepare(
    function: Callable[..., Any], *arguments: str, environ: MutableMapping[str, str] = os.environ
) -> bool:
    """Have a standby made for this rank, which calls `function(*arguments)` and keeps what it returns.

    To be called by every rank after its first steps. The function must not join the other ranks, use an
    accelerator, or leave torch's settings changed; it runs with the hooks off. False where there is nobody
    who would make a standby, and in a program without a recorder of its own.

    Raises:
        ValueError: the function cannot be imported by its name, as one of the program itself or within
            another one.
    """
    name = f"{function.__module__}:{function.__qualname__}"
    if function.__module__ == "__main__" or "<" in name or function_of(name) is not function:
        raise ValueError(f"{name} cannot be imported by another process; put it into a module of its own")
    if environ.get(PLACE) and not PROCESS.is_taken:
        warn_on_stderr("no standby: this program makes no Recorder, and would not be observed in one")
        return False
    return ask_for(name, arguments, environ)


def ask_for(name: str, arguments: Sequence[str], environ: MutableMapping[str, str] = os.environ) -> bool:
    """Have a standby made that calls the function `module:name`; False where nobody makes any."""
    place, local_rank = environ.get(PLACE), environ.get("LOCAL_RANK", "")
    if not place or not local_rank.isdecimal():
        return False
    try:
        wanted = Wanted(
            function=name,
            arguments=list(arguments),
            argv=list(sys.orig_argv),
            executable=sys.executable,
            cwd=str(Path.cwd()),
            environ=dict(State.started_with or started_with()),
        )
        wanted.save(Path(place) / f"{local_rank}.wanted")
        environ[ASKED] = "1"
    except OSError as error:
        warn_on_stderr(f"no standby for local rank {local_rank}: {error}")
        return False
    return True


def prepared() -> Any:  # noqa: ANN401 - what the trainer's function has returned
    """What the standby has made ready, once; None in a process that was started plainly."""
    result, State.result = State.result, None
    return result
