"""Counts the processes that the kernel has ended in this job's memory cgroup, of version 1 or 2.

Reads one small file at each look, from the launcher's main thread. A process that is ended for
want of memory cannot say so, and of its SIGKILL nobody else tells the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

LIMIT_FILES = ("memory.max", "memory.limit_in_bytes")
UNLIMITED = 1 << 60
"""A limit above this is none: version 1 writes the largest number of pages that there is."""


class OomCounter:
    """Tells how many processes were ended for want of memory since the last look."""

    def __init__(self, proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> None:
        self.kills = 0
        """Processes that were ended so since this counter was made."""
        self._file = next((path for path in _candidates(proc, root) if oom_kills(path) is not None), None)
        self.path = memory_cgroup(proc)
        """The memory cgroup as the kernel's log calls it; `/` where it is not known."""
        self._count = oom_kills(self._file) if self._file else None

    def look(self) -> str:
        """What happened since the last look, in a sentence; empty where nothing did."""
        count = oom_kills(self._file) if self._file else None
        if self._file is None or count is None or self._count is None or count <= self._count:
            return ""
        fresh, before = count - self._count, self._count
        self._count = count
        self.kills += fresh
        return (
            f"memory cgroup out of memory: the kernel's oom-killer ended {fresh} "
            f"{'process' if fresh == 1 else 'processes'} of this job's cgroup "
            f"({self._file}: oom_kill {before} -> {count}, {limit_of(self._file.parent)})"
        )

    def denial(self) -> str:
        """That the kernel ended nothing for want of memory, in a sentence; empty where that is not sure.

        A SIGKILL of a process of this job then came from somebody else.
        """
        count = oom_kills(self._file) if self._file else None
        if self._file is None or count is None or count != self._count or self.kills:
            return ""
        return (
            "memory cgroup: the kernel's oom-killer ended no process of this job's cgroup "
            f"({self._file}: oom_kill {count})"
        )


def oom_kills(path: Path) -> int | None:
    """The count of processes ended by the OOM killer in a file of counters; None where it has none."""
    try:
        words = path.read_text().split()
    except (OSError, ValueError):
        return None
    pairs = dict(zip(words[::2], words[1::2], strict=False))
    text = pairs.get("oom_kill", "")
    return int(text) if text.isdecimal() else None


def limit_of(directory: Path) -> str:
    """The memory limit of a cgroup, in words."""
    for name in LIMIT_FILES:
        try:
            text = (directory / name).read_text().strip()
        except (OSError, ValueError):
            continue
        if text.isdecimal() and int(text) < UNLIMITED:
            return f"limit {int(text)} bytes"
        return "no limit of its own"
    return "limit unknown"


def memory_cgroup(proc: Path = Path("/proc")) -> str:
    """The path of this process's memory cgroup, of version 1 before version 2; `/` where it is not known."""
    paths = {version: path for version, path in _memberships(proc) if ".." not in Path(path).parts}
    return paths.get(1) or paths.get(2) or "/"


def _candidates(proc: Path, root: Path) -> Iterator[Path]:
    """Where the counters of this process's cgroup may be, the likeliest first.

    Inside a container the path may be that of the host, while only the own cgroup is mounted.
    """
    for version, path in _memberships(proc):
        below = "" if ".." in Path(path).parts else path.lstrip("/")
        if version == 1:
            yield root / "memory" / below / "memory.oom_control"
            yield root / "memory" / "memory.oom_control"
        else:
            yield root / below / "memory.events"
            yield root / "unified" / below / "memory.events"
            yield root / "memory.events"


def _memberships(proc: Path) -> Iterator[tuple[int, str]]:
    """The version and path of each cgroup of this process that counts memory."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            yield 1, path
        elif number == "0" and not controllers:
            yield 2, path
