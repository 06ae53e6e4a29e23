"""A process beside a rank that writes and hashes its files, so that the training keeps the interpreter.

It gets orders over a socket, reads the copies in shared memory, and does nothing that involves other
ranks: their agreement stays with the thread that gives the orders. It ends with its rank, at the
end of the order in hand; what it still writes then lies in a directory that nobody commits.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from torch.distributed.checkpoint.planner import SavePlan, SavePlanner

from ett_trainer_hooks.pipeline.checkpoint.snapshot import Snapshot, SnapshotPlanner
from ett_trainer_hooks.pipeline.checkpoint.writer import Place, Written, write_files
from ett_trainer_hooks.recording.spans import describe

GRACE_S = 5.0
"""Longest time that one takes to be gone which is about to end by itself."""
KINDNESS = 10
"""How far its priority is below that of the training, whose start its imports shall not hold up."""
_RUN = f"""
import os, sys
os.nice({KINDNESS})
from ett_trainer_hooks.pipeline.checkpoint.scribe import serve
serve(int(sys.argv[1]))
"""


class ScribeError(Exception):
    """The process could not write, or ended."""


class Scribe:
    """The process as its rank sees it: started at once, and anew where it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: Connection
        self._start()

    @property
    def pid(self) -> int | None:
        """Of the process; None where there is none."""
        return self._process.pid if self._process else None

    def write(self, place: Place, plan: SavePlan, planner: SavePlanner, threads: int) -> Written:
        """As `write_files`, there, with the planner of a snapshot.

        Raises:
            ScribeError: it has not written, and why.
        """
        if self._process is None:
            self._start()
        try:
            self._orders.send((place, plan, planner.taken, threads))
            answer = self._orders.recv()
        except (EOFError, OSError):
            raise ScribeError(f"the process that writes ended with {self.close(GRACE_S)}") from None
        if not isinstance(answer, Written):
            raise ScribeError(answer)
        return answer

    def close(self, grace_s: float = 0.0) -> int | None:
        """End the process, whatever it does, after `grace_s`; returns its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        self._orders.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
        process.kill()
        return process.wait()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            kept = {name: text for name, text in os.environ.items() if not name.startswith("ETT_")}
            self._process = subprocess.Popen(
                [sys.executable, "-c", _RUN, str(theirs.fileno())],
                env={**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
            self._orders = Connection(ours.detach())


def serve(handle: int) -> None:
    """Carry out orders until the rank is gone: what the process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, for the rank
    orders = Connection(handle)
    with suppress(EOFError, OSError):
        while True:
            orders.send(_written_or_why_not(*orders.recv()))


def _written_or_why_not(place: Place, plan: SavePlan, taken: Snapshot, threads: int) -> Written | str:
    try:
        return write_files(place, plan, SnapshotPlanner(taken), threads)
    except Exception as error:  # noqa: BLE001 - raised where the order was given
        return describe(error)
