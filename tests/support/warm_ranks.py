"""Ranks that find their imports done: forks of processes that have imported torch, one for each rank.

A rank has variables, arguments, a directory and an output of its own and ends as a program does; that an
import takes long is paid for once in a run of tests. Each rank has an origin of its own, for the hashes of
texts are others in each process: what goes by the order of a set differs between ranks here as in a job.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ranks import LIMIT_S, variables

IMPORTS = ("torch.distributed.checkpoint", "torchrec.distributed", "torchrec.distributed.planner")


class Origin:
    """A process from which ranks are forked, one after the other: it runs a program that calls `forked`."""

    def __init__(self, environ: Mapping[str, str], program: str = __file__) -> None:
        self._process = subprocess.Popen(
            [sys.executable, program],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def begin(self, rank: Mapping[str, Any]) -> None:
        """Have a rank begin."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(rank) + "\n")
        self._process.stdin.flush()

    def status(self, limit_s: float) -> int | None:
        """The exit status of the rank that was begun; None where it has not ended in time."""
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], limit_s)
        line = self._process.stdout.readline() if readable else ""
        return int(line) if line else None

    def end(self) -> None:
        """End the process and its rank."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


ORIGINS: list[Origin] = []


def end_origins() -> None:
    """End all of them; those that come after begin anew."""
    while ORIGINS:
        ORIGINS.pop().end()


def outputs_of(
    program: Path, words: Sequence[str], folder: Path, ranks: int, environ: Mapping[str, str]
) -> list[str]:
    """What each rank of a program prints, in their order; all have ended well, within the limit.

    Programs find what lies beside this file.
    """
    here = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    path = {"PYTHONPATH": os.pathsep.join(here)}
    if not ORIGINS:
        atexit.register(end_origins)
    ORIGINS.extend(Origin(variables(rank, ranks, path)) for rank in range(len(ORIGINS), ranks))
    used, told = ORIGINS[:ranks], [folder / f"rank{rank}" for rank in range(ranks)]
    for rank, origin in enumerate(used):
        where = {"folder": str(folder), "told": str(told[rank])}
        origin.begin(
            {"argv": [str(program), *words], "environ": variables(rank, ranks, {**path, **environ}), **where}
        )
    statuses = [origin.status(LIMIT_S) for origin in used]
    if None in statuses:
        end_origins()
    errors = [
        f"status {status}: {each.with_suffix('.err').read_text()[-3000:]}"
        for status, each in zip(statuses, told, strict=True)
        if status != 0
    ]
    assert not errors, "\n".join(errors)
    return [each.with_suffix(".out").read_text() for each in told]


def forked(imports: Sequence[str]) -> dict[str, Any]:
    """Forks a rank for each line of the input and answers how it ended; returns in a fork, with what it is.

    Whatever else is printed here, by what is imported, goes to standard error. What is imported stays, so
    that no fork looks through it for what can go.
    """
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for name in imports:
            import_module(name)
        gc.freeze()
        while line := sys.stdin.readline():
            pid = os.fork()
            if pid == 0:
                return json.loads(line)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=answers, flush=True)
    sys.exit()


def become(rank: Mapping[str, Any]) -> None:
    """Have what a process gets that is started."""
    os.environ.clear()
    os.environ.update(rank["environ"])
    os.chdir(rank["folder"])
    for number, path in enumerate((os.devnull, f"{rank['told']}.out", f"{rank['told']}.err")):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    sys.argv = rank["argv"]
    sys.path[0] = str(Path(sys.argv[0]).parent)


if __name__ == "__main__":
    become(forked(IMPORTS))
    runpy.run_path(sys.argv[0], run_name="__main__")
