"""What `/proc` tells of other processes. Pure readers of a `/proc` root; nothing is signalled.

Every function answers for one moment: a process may be gone in the next.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

PROC = Path("/proc")
_STATE, _PARENT, _GROUP, _SESSION, _START, _EXIT_CODE = 0, 1, 2, 3, 19, 49
_TIMES = slice(11, 15)


class Process(msgspec.Struct, frozen=True):
    """One process. `state` is the kernel's letter, `started_ticks` counts from boot."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    started_ticks: int

    @property
    def lives(self) -> bool:
        """It runs or could run; a zombie does not."""
        return self.state not in "ZX"


def process_of(pid: int, proc: Path = PROC) -> Process | None:
    """A process, a zombie included; None where there is none."""
    fields = _fields(pid, proc)
    try:
        return Process(
            pid,
            int(fields[_PARENT]),
            int(fields[_GROUP]),
            int(fields[_SESSION]),
            fields[_STATE],
            int(fields[_START]),
        )
    except (ValueError, IndexError):
        return None


def processes(proc: Path = PROC) -> list[Process]:
    """All processes, zombies included."""
    try:
        pids = [int(entry.name) for entry in os.scandir(proc) if entry.name.isdecimal()]
    except OSError:
        return []
    return [found for pid in sorted(pids) if (found := process_of(pid, proc)) is not None]


def descendants(roots: Iterable[int], among: Iterable[Process]) -> set[int]:
    """The processes that descend from any of the roots, without these.

    >>> table = [Process(p, q, 0, 0, "S", 0) for p, q in ((2, 1), (3, 2), (4, 3), (5, 1))]
    >>> sorted(descendants([2], table))
    [3, 4]
    """
    children: dict[int, list[int]] = {}
    for each in among:
        children.setdefault(each.parent, []).append(each.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        fresh = [pid for pid in children.get(waiting.pop(), []) if pid not in found]
        found.update(fresh)
        waiting += fresh
    return found


def children_of(pid: int, proc: Path = PROC) -> list[int]:
    """The children of a process, zombies included."""
    try:
        texts = [(task / "children").read_text() for task in (proc / str(pid) / "task").iterdir()]
    except FileNotFoundError:  # a thread or the process is gone, or the kernel keeps no such lists
        return [each.pid for each in processes(proc) if each.parent == pid]
    except OSError:
        return []
    return sorted(int(word) for text in texts for word in text.split())


def ancestors(pid: int, proc: Path = PROC) -> list[int]:
    """A process and those that it descends from, as far as they can be seen."""
    found: list[int] = []
    while pid > 0 and pid not in found:
        found.append(pid)
        process = process_of(pid, proc)
        pid = 0 if process is None else process.parent
    return found


def tree_below(pid: int, proc: Path = PROC) -> list[Process]:
    """The processes that descend from a process, without it; reads of these only where the kernel allows."""
    found: dict[int, Process] = {}
    waiting = children_of(pid, proc)
    while waiting:
        child = process_of(waiting.pop(), proc)
        if child is not None and child.pid not in found:
            found[child.pid] = child
            waiting += children_of(child.pid, proc)
    return [found[pid] for pid in sorted(found)]


def exit_status(pid: int, proc: Path = PROC) -> int | None:
    """The exit status of a process that nobody has waited for yet (minus the signal that ended it).

    None where it lives, is gone, or belongs to somebody else, of whom the kernel does not tell.
    """
    fields = _fields(pid, proc)
    try:
        if fields[_STATE] != "Z" or not _is_told_all((proc / str(pid)).stat().st_uid):
            return None
        return os.waitstatus_to_exitcode(int(fields[_EXIT_CODE]))
    except (OSError, ValueError, IndexError):
        return None


def processor_s(pid: int, proc: Path = PROC) -> float:
    """Processor seconds of a process and of all that it has started; 0 where it is gone."""
    pids = [pid, *(each.pid for each in tree_below(pid, proc))]
    ticks = [int(ticks) for each in pids for ticks in _fields(each, proc)[_TIMES]]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def queued_s(pid: int, proc: Path = PROC) -> float | None:
    """Seconds that a process, and all that it has started, could have run and had no processor.

    Of the threads that live, added up; None where the kernel does not count them.
    """
    waits = [
        _waited_ns(thread)
        for each in (pid, *(below.pid for below in tree_below(pid, proc)))
        for thread in (proc / str(each) / "task").glob("*/schedstat")
    ]
    return sum(waits) / 1e9 if waits else None


def moment_of_ticks(ticks: int, proc: Path = PROC) -> float | None:
    """Unix seconds of a moment in clock ticks since boot; None where `/proc` does not tell."""
    try:
        uptime_s = float((proc / "uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return time.time() - max(uptime_s - ticks / os.sysconf("SC_CLK_TCK"), 0.0)


def start_ticks(pid: int, proc: Path = PROC) -> int | None:
    """Start of a live process in clock ticks since boot; None where it is gone or a zombie."""
    found = process_of(pid, proc)
    return found.started_ticks if found is not None and found.lives else None


def process_started_at(pid: int, proc: Path = PROC) -> float | None:
    """Unix seconds at which a live process started, to 10 ms; None where `/proc` does not tell."""
    ticks = start_ticks(pid, proc)
    return None if ticks is None else moment_of_ticks(ticks, proc)


def environment(pid: int, proc: Path = PROC) -> Mapping[str, str]:
    """The environment that a process was started with; empty where it may not be read."""
    try:
        words = (proc / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (word.decode("utf-8", "replace").partition("=") for word in words if word)
    return {name: text for name, _, text in pairs}


def name(pid: int, proc: Path = PROC) -> str:
    """The name of a process, as `ps` shows it; empty where it is not known."""
    try:
        return (proc / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def catches(pid: int, number: int, proc: Path = PROC) -> bool:
    """The process has a handler of its own for signal `number`."""
    mask = _status_field(pid, "SigCgt", proc)
    try:
        return bool(int(mask, 16) >> (number - 1) & 1)
    except ValueError:
        return False


def pids_by_namespace(pid: int, proc: Path = PROC) -> list[int]:
    """The pids of one process, in this namespace first and in its own last; empty where it is not known."""
    words = _status_field(pid, "NSpid", proc).split()
    return [int(word) for word in words if word.isdecimal()]


def _status_field(pid: int, field: str, proc: Path) -> str:
    try:
        lines = (proc / str(pid) / "status").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{field}:")), "")


def _waited_ns(schedstat: Path) -> int:
    """Of a thread, from the kernel's `ns run, ns waited, turns`; 0 where it has ended."""
    try:
        return int(schedstat.read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _fields(pid: int, proc: Path) -> list[str]:
    """The fields of `stat` after the name, which may itself hold spaces and brackets."""
    try:
        return (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _is_told_all(owner: int) -> bool:
    """The kernel hides nothing of a process with this owner from this one."""
    return os.geteuid() in (0, owner)
