r"""The lines of the kernel's log that may explain the death of a training process.

Used by the launcher's main thread: a bounded number of records at each look, without waiting.
Where the log may not be read (`/dev/kmsg` is for root on many machines) there are none.

>>> record(b"4,1207,5140900000,-;NVRM: Xid (PCI:0000:07:00): 79, GPU fell off the bus.\n SUBSYSTEM=pci\n")
KernelRecord(text='NVRM: Xid (PCI:0000:07:00): 79, GPU fell off the bus.', uptime_s=5140.9)
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

RECORD_BYTES = 8192
"""More than any record of the kernel's log."""
LOOK_RECORDS = 1000
_TELLING = re.compile(
    r"Xid|NVRM|nvidia|nvlink|NVSwitch|amdgpu"
    r"|[Oo]ut of memory|oom[-_]kill|oom_reaper|invoked oom-killer|page allocation failure"
    r"|blocked for more than|soft lockup|hard LOCKUP|rcu.{0,40}stall"
    r"|[Mm]achine [Cc]heck|\bmce\b|Hardware Error|EDAC|AER:|PCIe Bus Error"
    r"|segfault at|general protection|traps:|\bBUG:|\bOops\b|[Kk]ernel panic"
    r"|I/O error|EXT4-fs error|XFS.{0,40}(?:error|[Cc]orruption)|[Rr]emounting filesystem read-only"
    r"|nfs: server|lustre|LustreError|mlx[45]_core|infiniband|[Ll]ink (?:is )?(?:down|Down)|thermal|throttled"
)


_OOM_KILL = re.compile(r"oom-kill:.{0,400}task_memcg=([^,]*).{0,400}pid=(\d+)")
_KILLED_PID = re.compile(r"oom-kill:.{0,900}pid=(\d+)|Killed process (\d+)")


class KernelRecord(msgspec.Struct, frozen=True):
    """One line of the kernel's log, `uptime_s` seconds after the machine started."""

    text: str
    uptime_s: float


class KernelLog:
    """Reads what the kernel says from now on."""

    def __init__(self, path: Path = Path("/dev/kmsg")) -> None:
        self._fd: int | None = None
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError:
            self.close()

    def look(self) -> list[KernelRecord]:
        """The lines since the last look that may explain a failure."""
        found: list[KernelRecord] = []
        for _ in range(LOOK_RECORDS):
            data = self._next()
            if not data:
                break
            lines = (record(line) for line in data.splitlines() if line[:1].isdigit())
            found += [line for line in lines if line is not None and is_telling(line.text)]
        return found

    def close(self) -> None:
        """Read no more."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _next(self) -> bytes:
        """The next record of the device (of a file: the next bytes); none where there is none yet."""
        if self._fd is None:
            return b""
        try:
            return os.read(self._fd, RECORD_BYTES)
        except BrokenPipeError:  # records were overwritten before they were read: go on with the oldest
            return b"\n"
        except OSError:
            return b""


def is_telling(text: str) -> bool:
    """The line may explain a failure; the frames of a stack, which are indented, do not.

    >>> is_telling("Out of memory: Killed process 4711 (python3)"), is_telling(" oom_kill_process+0x8/0x8a")
    (True, False)
    """
    return not text.startswith(" ") and _TELLING.search(text) is not None


def of_this_job(records: Sequence[KernelRecord], cgroup: str) -> list[KernelRecord]:
    """Without what was said about processes ended for want of memory in the cgroups of others.

    `cgroup` is the path of this job's memory cgroup; from inside a container it is not known (`/`),
    and nothing is left out.

    >>> def at(text): return KernelRecord(text, 1.0)
    >>> theirs = "oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/job_8,task=python3,pid=99,uid=0"
    >>> told = [at(theirs), at("Memory cgroup out of memory: Killed process 99 (python3)"), at("Xid 79")]
    >>> [each.text for each in of_this_job(told, "/job_7")]
    ['Xid 79']
    >>> len(of_this_job(told, "/job_8")), len(of_this_job(told, "/"))
    (3, 3)
    """
    if cgroup in ("", "/"):
        return list(records)
    kills = [(mark, each) for each in records if (mark := _OOM_KILL.search(each.text))]
    foreign = {mark[2] for mark, _ in kills if not f"{mark[1]}/".startswith(f"{cgroup}/")}
    spared = len(foreign) == len(kills) > 0
    return [
        each
        for each in records
        if not ((mark := _KILLED_PID.search(each.text)) and (mark[1] or mark[2]) in foreign)
        and not (spared and "invoked oom-killer" in each.text)
    ]


def record(data: bytes) -> KernelRecord | None:
    """A record of the kernel's log; None where it is none."""
    head, semicolon, text = data.partition(b"\n")[0].partition(b";")
    fields = head.split(b",")
    if not semicolon or len(fields) < 3 or not fields[2].isdigit():  # noqa: PLR2004 - level, number, time
        return None
    return KernelRecord(text.decode("utf-8", "replace"), int(fields[2]) / 1e6)
