"""Watches the rank processes of one node from outside, through their journals and `/proc`.

A rank that is killed cannot speak; its journal ends without `attempt_end` and its process is
gone. Whether that is a failure is decided by what else is known. Used by one thread, the
launcher's; it reads and signals nobody.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from ett_core.events import AttemptEnd, AttemptStart, decode
from ett_trainer_hooks.identity import start_ticks
from ett_trainer_hooks.journal import pid_of
from ett_trainer_hooks.segments import journals_in

LAST_LINES_BYTES = 1 << 16
PIDFD_OPEN: Callable[[int], int] | None = getattr(os, "pidfd_open", None)


class RankProcess(msgspec.Struct, frozen=True):
    """A process that keeps a journal. `started_ticks` tells it from a later one with its pid."""

    journal: Path
    rank: int
    attempt: int
    pid: int
    started_ticks: int | None


class Death(msgspec.Struct, frozen=True):
    """A rank process that is gone without having said so, first seen at Unix seconds `seen_at`."""

    process: RankProcess
    seen_at: float


class Verdict(msgspec.Struct, frozen=True):
    """What a death was. `exit_code` and `signal` are None where nobody told them."""

    is_failure: bool
    exit_code: int | None = None
    signal: int | None = None


class RankWatch:
    """Finds the ranks of a job in a directory of journals, and those that die without a word.

    Journals that lie there at the beginning are of earlier runs and left out.
    """

    def __init__(
        self, directory: Path, *, job_id: str, node: str, now: Callable[[], float], proc: Path = Path("/proc")
    ) -> None:
        self.attempt: int | None = None
        """The highest attempt that any rank has begun; None before the first."""
        self._directory = directory
        self._job_id = job_id
        self._node = node
        self._now = now
        self._proc = proc
        self._settled = set(journals_in(directory))
        self._alive: dict[Path, RankProcess] = {}

    @property
    def alive(self) -> list[RankProcess]:
        """The rank processes that were there at the last look."""
        return list(self._alive.values())

    def look(self) -> list[Death]:
        """Look again; the deaths since the last look."""
        for journal in journals_in(self._directory):
            if journal not in self._settled and journal not in self._alive:
                self._meet(journal)
        gone = [process for process in self.alive if not self._is_alive(process)]
        for process in gone:
            del self._alive[process.journal]
            self._settled.add(process.journal)
        return [Death(process, self._now()) for process in gone if not has_ended(process.journal)]

    def _meet(self, journal: Path) -> None:
        start = first_event(journal)
        pid = pid_of(journal)
        if start is None:
            return
        if pid is None or start.rank < 0 or start.job_id != self._job_id or start.node != self._node:
            self._settled.add(journal)
            return
        self.attempt = max(start.attempt, self.attempt or 0)
        ticks = start_ticks(pid, self._proc)
        self._alive[journal] = RankProcess(journal, start.rank, start.attempt, pid, ticks)

    def _is_alive(self, process: RankProcess) -> bool:
        ticks = start_ticks(process.pid, self._proc)
        return ticks is not None and ticks == process.started_ticks


def first_event(journal: Path) -> AttemptStart | None:
    """The `attempt_start` that opens a journal; None where there is none yet."""
    try:
        with journal.open("rb") as file:
            line = file.readline()
        event = decode(line)
    except (OSError, ValueError):
        return None
    return event if isinstance(event, AttemptStart) else None


def has_ended(journal: Path) -> bool:
    """The writer of a journal said that its attempt was over."""
    try:
        with journal.open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - LAST_LINES_BYTES, 0))
            return any(_is_end(line) for line in file.read().splitlines())
    except OSError:
        return False


def _is_end(line: bytes) -> bool:
    try:
        return isinstance(decode(line), AttemptEnd)
    except ValueError:
        return False


def judge(
    death: Death, *, told: Mapping[int, int], attempt: int, command_status: int | None
) -> Verdict | None:
    """What a death was, by what else is known; None while that is open.

    Args:
        death: of a rank that did not say that it was over.
        told: exit code by process, from the log of who started the ranks.
        attempt: the highest attempt of the job so far.
        command_status: of the command, once it is over (minus the signal that ended it).
    """
    process = death.process
    if process.pid in told:
        return verdict_of_status(told[process.pid])
    if attempt > process.attempt:
        return Verdict(is_failure=True)
    if command_status is not None:
        return Verdict(is_failure=command_status != 0)
    return None


def verdict_of_status(status: int) -> Verdict:
    """The verdict on an exit status (minus the signal where one ended the process).

    >>> verdict_of_status(-9)
    Verdict(is_failure=True, exit_code=None, signal=9)
    """
    if status < 0:
        return Verdict(is_failure=True, signal=-status)
    return Verdict(is_failure=status != 0, exit_code=status)


def in_words(who: str, verdict: Verdict) -> str:
    """A sentence about the end of a process.

    >>> in_words("rank 1 (pid 12)", Verdict(is_failure=True, signal=9))
    'rank 1 (pid 12) was ended by signal 9 (SIGKILL)'
    """
    if verdict.signal is not None:
        return f"{who} was ended by signal {verdict.signal}{_signal_name(verdict.signal)}"
    if verdict.exit_code is not None:
        return f"{who} exited with status {verdict.exit_code}"
    return f"{who} is gone without having reported its end"


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""


class Alarm:
    """Wakes its waiter as soon as one of the watched processes ends, where the kernel can tell."""

    def __init__(self, open_pid: Callable[[int], int] | None = PIDFD_OPEN) -> None:
        self._open_pid = open_pid
        self._poll = select.poll()
        self._watched: dict[int, int] = {}

    def watch(self, pids: Iterable[int]) -> None:
        """Watch these processes too; one that is gone, or a kernel without pidfds, is no error."""
        for pid in pids:
            if self._open_pid is None or pid in self._watched.values():
                continue
            try:
                descriptor = self._open_pid(pid)
            except OSError:
                continue
            self._watched[descriptor] = pid
            self._poll.register(descriptor, select.POLLIN)

    def wait(self, timeout_s: float) -> None:
        """Return when a watched process ends, at the latest after `timeout_s`."""
        for descriptor, _ in self._poll.poll(timeout_s * 1000.0):
            self._forget(descriptor)

    def close(self) -> None:
        """Watch nobody any more."""
        for descriptor in list(self._watched):
            self._forget(descriptor)

    def _forget(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        del self._watched[descriptor]
        os.close(descriptor)
