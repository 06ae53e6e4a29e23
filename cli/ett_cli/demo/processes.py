"""Processes as `/proc` shows them: which carry a mark in their environment, which is a rank.

Reads only. A process that ends while it is looked at is simply not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

PROC = Path("/proc")


def marked(mark: str, value: str, *, proc: Path = PROC) -> Iterator[int]:
    """Process ids whose environment holds `mark=value`."""
    for pid in _pids(proc):
        if environment(pid, proc=proc).get(mark) == value:
            yield pid


def rank_process(mark: str, value: str, rank: int, *, proc: Path = PROC) -> int | None:
    """The process id of a rank among the marked ones; None where it does not run.

    Helpers that the rank started inherit its environment, so of several the one is taken
    whose parent is no process of the rank.
    """
    members = {
        pid for pid in marked(mark, value, proc=proc) if environment(pid, proc=proc).get("RANK") == str(rank)
    }
    return next((pid for pid in sorted(members) if parent(pid, proc=proc) not in members), None)


def environment(pid: int, *, proc: Path = PROC) -> Mapping[str, str]:
    """The environment that a process was started with; empty where it cannot be read."""
    try:
        pairs = (proc / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    texts = (pair.decode(errors="replace").partition("=") for pair in pairs)
    return {name: value for name, equals, value in texts if equals}


def parent(pid: int, *, proc: Path = PROC) -> int | None:
    """The process id of the parent; None where the process is gone."""
    try:
        return int((proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _pids(proc: Path) -> Iterator[int]:
    return (int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal())
