"""The processes of a command: finds those that outlive it, reaps them, ends them.

Used by the launcher's main thread. torchrun starts each rank in a session of its own; when
torchrun is killed, its ranks live on, hold their devices, and belong to nobody. The launcher
makes itself the one whose children they become (Linux: "child subreaper"), so that it sees them
and learns how they end. Where the kernel refuses that, a mark in their environment finds them.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ett_trainer_hooks import procfs
from ett_trainer_hooks.launcher.stopping import signal_process
from ett_trainer_hooks.procfs import PROC, Process

MARK = "ETT_LAUNCHER"
"""The variable that tells which launcher a process descends from, by the launcher's writer."""
SHOWN_PIDS = 8
ELASTIC_RUN = "TORCHELASTIC_RUN_ID"
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37


@contextmanager
def adopting_orphans() -> Iterator[bool]:
    """Processes that lose their parent become children of this one for a while; False: the kernel refuses."""
    before = ctypes.c_int(0)
    adopts = _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before)) and _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield adopts
    finally:
        if adopts:
            _prctl(_PR_SET_CHILD_SUBREAPER, before.value)


def _prctl(option: int, argument: object) -> bool:
    try:
        return bool(ctypes.CDLL(None).prctl(option, argument, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


class Family:
    """The processes that descend from a command started by the launcher `mark`.

    With `adopted` they are the descendants of the launcher, whoever of them has died; else the mark
    in their environment finds those that lost their parent, at the price of a look at all processes.
    """

    def __init__(  # noqa: PLR0913 - the world is injected
        self,
        mark: str,
        environ: Mapping[str, str],
        *,
        adopted: bool,
        proc: Path = PROC,
        launcher: int | None = None,
        onlookers: Callable[[], Collection[int]] = tuple,
    ) -> None:
        self._mark = mark
        self._own_run = environ.get(ELASTIC_RUN)
        self._adopted = adopted
        self._proc = proc
        self._launcher = os.getpid() if launcher is None else launcher
        self.onlookers = onlookers
        """Processes that do no work of the job, and end by themselves when it does."""

    def living(self) -> list[Process]:
        """Everything of the family that lives, in order of pid.

        What the launcher itself started beside the command is in its session or in that of an onlooker,
        and not of the family.
        """
        below = procfs.tree_below(self._launcher, self._proc)
        own = procfs.process_of(self._launcher, self._proc)
        besides = self.onlookers()
        found = {
            each.pid: each
            for each in below
            if own is None or (each.session != own.session and each.session not in besides)
        }
        if not self._adopted:
            table = procfs.processes(self._proc)
            found |= {each.pid: each for each in table if self._is_marked(each.pid)}
        return [
            found[pid]
            for pid in sorted(found)
            if found[pid].lives and pid != self._launcher and pid not in besides
        ]

    def workers(self, ranks: Iterable[int]) -> list[Process]:
        """The ranks of the family that live; `ranks` are those that keep a journal.

        Others are those that torchrun started, and what a rank started. What else a command leaves
        behind (a server, a shell) may be there on purpose.
        """
        living = self.living()
        known = set(ranks)
        roots = [each.pid for each in living if each.pid in known or self._is_elastic(each.pid)]
        wanted = {*roots, *procfs.descendants(roots, living)}
        return [each for each in living if each.pid in wanted]

    def reap(self, command: int) -> dict[int, int]:
        """Wait for adopted processes that have ended; their exit statuses by pid.

        The command itself, and what the launcher started beside it, is left to whoever started it.
        """
        statuses: dict[int, int] = {}
        for pid in self.ended(command):
            try:
                waited, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
            if waited:
                statuses[pid] = os.waitstatus_to_exitcode(status)
        return statuses

    def ended(self, command: int) -> list[int]:
        """Adopted processes that have ended and were not waited for; their last threads may be left."""
        children = (
            procfs.process_of(pid, self._proc) for pid in procfs.children_of(self._launcher, self._proc)
        )
        own, besides = os.getsid(0), {command, *self.onlookers()}
        return [
            child.pid
            for child in children
            if child is not None and not child.lives and child.session != own and child.pid not in besides
        ]

    def _is_marked(self, pid: int) -> bool:
        return procfs.environment(pid, self._proc).get(MARK) == self._mark

    def _is_elastic(self, pid: int) -> bool:
        """Torchrun of this command started the process, or one of its ancestors."""
        run = procfs.environment(pid, self._proc).get(ELASTIC_RUN)
        return run is not None and run != self._own_run


def end_all(processes: Iterable[Process], number: int = signal.SIGTERM) -> None:
    """Send a signal to each of the processes, where it is still the same one."""
    for each in processes:
        now = procfs.process_of(each.pid)
        if now is not None and now.started_ticks == each.started_ticks:
            signal_process(each.pid, number)


def in_pids(processes: Iterable[Process]) -> str:
    """Processes by their numbers, for a person.

    >>> in_pids([Process(7, 1, 7, 7, "S", 0), Process(9, 7, 7, 7, "S", 0)])
    '2 processes (pids 7, 9)'
    """
    pids = [each.pid for each in processes]
    shown = ", ".join(map(str, pids[:SHOWN_PIDS])) + (", ..." if len(pids) > SHOWN_PIDS else "")
    return f"{len(pids)} {'process' if len(pids) == 1 else 'processes'} (pids {shown})" if pids else "nothing"
