"""Watches the rank processes of one node from outside, through their journals and `/proc`.

A rank that is killed cannot speak; its journal ends without `attempt_end` and its process is
gone. Whether that is a failure is for `verdicts` to say. Used by one thread, the
launcher's; it reads and signals nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from pathlib import Path

import msgspec

from ett_core.events import AttemptEnd, AttemptStart, decode
from ett_trainer_hooks.journal.parts import all_parts, first_part, last_part, pid_of
from ett_trainer_hooks.journal.segments import journals_in
from ett_trainer_hooks.launcher.output.listener import last_bytes
from ett_trainer_hooks.launcher.standbys import StandIn
from ett_trainer_hooks.launcher.torchrun import ERROR_FILE
from ett_trainer_hooks.procfs import (
    Process,
    environment,
    moment_of_ticks,
    pids_by_namespace,
    process_of,
    processes,
    start_ticks,
)

LAST_LINES_BYTES = 1 << 16
STARTS_DIFFER_S = 2.0
"""Two readings of when a process started that lie further apart are of two processes."""
SILENT_AFTER_S = 60.0
"""Six heartbeats: a process that cannot be seen may be gone after that."""


class RankProcess(msgspec.Struct, frozen=True):
    """A process that keeps a journal. `started_ticks` tells it from a later one with its pid.

    `pid` is that by which it can be watched from here. `local_rank` and `error_file` are those that
    torchrun gave it, where it did.
    """

    journal: Path
    rank: int
    attempt: int
    pid: int
    started_ticks: int | None
    local_rank: int | None = None
    error_file: Path | None = None


class Death(msgspec.Struct, frozen=True):
    """A rank process that is gone without having said so, first seen at Unix seconds `seen_at`."""

    process: RankProcess
    seen_at: float


class Unseen:
    """A process that keeps a journal and cannot be found here: dead at once, or in another pid namespace.

    A journal that grows after it was met has a writer that lives.
    """

    def __init__(self, process: RankProcess, size: int, now: float) -> None:
        self.process = process
        self.met_at = now
        self.lives_elsewhere = False
        self.heard_at = now
        self.is_silent = False
        self._size = size

    def look(self, size: int, now: float) -> bool:
        """Look at the size of the journal; True once, when it has been silent for too long."""
        if size != self._size:
            self._size, self.heard_at = size, now
            self.lives_elsewhere, self.is_silent = True, False
            return False
        falls_silent = self.lives_elsewhere and not self.is_silent and now - self.heard_at > SILENT_AFTER_S
        self.is_silent = self.is_silent or falls_silent
        return falls_silent


class RankWatch:
    """Finds the ranks of a job in a directory of journals, and those that die without a word.

    `stand_ins` tells of standbys that have taken over: who waits in their place, and its environment.
    Journals that lie there at the beginning are of earlier runs and left out. A process in another
    pid namespace is watched where its pid here can be found; else its silence is all that is known,
    and silence is no death.
    """

    def __init__(  # noqa: PLR0913 - the world is injected
        self,
        directory: Path,
        *,
        job_id: str,
        node: str,
        now: Callable[[], float],
        proc: Path = Path("/proc"),
        stand_ins: Mapping[int, StandIn] | None = None,
    ) -> None:
        self.attempt: int | None = None
        """The highest attempt that any rank has begun; None before the first."""
        self.rank_of_local: dict[int, int] = {}
        """The ranks of this node by the numbers that torchrun gives them there."""
        self.departed: list[RankProcess] = []
        """The processes that were found to be over at the last look, whether or not they said so."""
        self.fallen_silent: list[RankProcess] = []
        """Those that cannot be seen from here and of which nothing has been heard for long."""
        self.met: set[int] = set()
        """The pids of all ranks that have begun a journal."""
        self._directory = directory
        self._job_id = job_id
        self._node = node
        self._now = now
        self._proc = proc
        self._stand_ins = {} if stand_ins is None else stand_ins
        self._settled = set(journals_in(directory))
        self._alive: dict[Path, RankProcess] = {}
        self._unseen: dict[Path, Unseen] = {}

    @property
    def alive(self) -> list[RankProcess]:
        """The rank processes that were there at the last look."""
        return list(self._alive.values())

    def look(self, told: Container[int] = (), *, at_end: bool = False) -> list[Death]:
        """Look again; the deaths since the last look.

        `told` holds the pids whose exit somebody else has told; `at_end` where the command is over.
        """
        for journal in {first_part(path) for path in journals_in(self._directory)}:
            if not {journal} & (self._settled | self._alive.keys() | self._unseen.keys()):
                self._meet(journal)
        self.departed = [process for process in self.alive if not self._is_alive(process)]
        for process in self.departed:
            self._settle(process)
        deaths = [Death(process, self._now()) for process in self.departed if not has_ended(process.journal)]
        return deaths + self._look_for_unseen(told, at_end=at_end)

    def _look_for_unseen(self, told: Container[int], *, at_end: bool) -> list[Death]:
        """Deaths of those that cannot be found; they are not told of any that lives elsewhere."""
        self.fallen_silent = []
        deaths: list[Death] = []
        for unseen in list(self._unseen.values()):
            process = unseen.process
            if has_ended(process.journal):
                self._settle(process)
                self.departed.append(process)
                continue
            if unseen.look(size_of(process.journal), self._now()):
                self.fallen_silent.append(process)
            is_over = at_end or (self.attempt or 0) > process.attempt
            if process.pid in told or (is_over and not unseen.lives_elsewhere):
                self._settle(process)
                self.departed.append(process)
                deaths.append(Death(process, unseen.met_at))
        return deaths

    def _settle(self, process: RankProcess) -> None:
        self._alive.pop(process.journal, None)
        self._unseen.pop(process.journal, None)
        self._settled.add(process.journal)

    def _meet(self, journal: Path) -> None:
        start = first_event(journal)
        pid = pid_of(journal)
        if start is None:
            return
        if pid is None or start.rank < 0 or start.job_id != self._job_id or start.node != self._node:
            self._settled.add(journal)
            return
        self.attempt = max(start.attempt, self.attempt or 0)
        found, environ = self._found(pid, start.process_started_at)
        process = RankProcess(
            journal,
            start.rank,
            start.attempt,
            pid if found is None else found.pid,
            None if found is None else found.started_ticks,
            _local_rank(environ),
            Path(environ[ERROR_FILE]) if environ.get(ERROR_FILE) else None,
        )
        self.met |= {pid, process.pid}
        if pid in self._stand_ins:
            self.met.add(self._stand_ins[pid].rank_pid)
        if process.local_rank is not None:
            self.rank_of_local[process.local_rank] = process.rank
        if found is None:
            self._unseen[journal] = Unseen(process, size_of(journal), self._now())
        else:
            self._alive[journal] = process

    def _found(self, pid: int, started_at: float | None) -> tuple[Process | None, Mapping[str, str]]:
        """The process of a journal, and what it was started with: a standby as the rank that it runs for."""
        if (stand_in := self._stand_ins.get(pid)) is not None:
            return process_of(pid, self._proc), stand_in.environ
        found = find_process(pid, started_at, self._proc)
        return found, {} if found is None else environment(found.pid, self._proc)

    def _is_alive(self, process: RankProcess) -> bool:
        ticks = start_ticks(process.pid, self._proc)
        return ticks is not None and ticks == process.started_ticks


def find_process(pid: int, started_at: float | None, proc: Path = Path("/proc")) -> Process | None:
    """The process that calls itself `pid` and started at Unix seconds `started_at`; None: it is not here.

    In another pid namespace the same number is another process: the start tells them apart. A
    namespace below this one can be looked into.
    """
    mine = process_of(pid, proc)
    if mine is not None and _started_then(mine, started_at, proc):
        return mine
    if started_at is None:
        return None
    for other in processes(proc):
        pids = pids_by_namespace(other.pid, proc)
        if len(pids) > 1 and pids[-1] == pid and _started_then(other, started_at, proc):
            return other
    return None


def _started_then(found: Process, started_at: float | None, proc: Path) -> bool:
    """The process may be the one that started then."""
    at = moment_of_ticks(found.started_ticks, proc)
    return started_at is None or at is None or abs(at - started_at) <= STARTS_DIFFER_S


def _local_rank(environ: Mapping[str, str]) -> int | None:
    text = environ.get("LOCAL_RANK", "")
    return int(text) if text.isdecimal() else None


def size_of(path: Path) -> int:
    """Bytes of the last part of a journal; 0 where it is gone."""
    try:
        return last_part(path).stat().st_size
    except OSError:
        return 0


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
    """The writer of a journal said that its attempt was over.

    That stands at the end of the last part, or of the one before, where the last one holds nothing but
    what was kept of one that was removed for it.
    """
    ends = (last_bytes(part, LAST_LINES_BYTES) for part in all_parts(journal)[-2:])
    return any(_is_end(line) for text in ends for line in text.split("\n"))


def _is_end(line: str) -> bool:
    try:
        return isinstance(decode(line), AttemptEnd)
    except ValueError:
        return False
