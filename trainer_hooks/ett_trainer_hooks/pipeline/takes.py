"""Who is at work: a lease that its holder renews, that runs out once it is dead, and that nobody shares.

    take-1.json   of the first one: who it is; renewed by touching it, of the year 1970 once it let go
    take-2.json   of the next one, which found the first dead

Exactly one process creates `take-N.json`, and only after it has seen that the holder of `take-(N-1)` is
gone: its lock is free (the kernel frees it; for holders on this machine) or the file was not renewed for
`LEASE_S` (by the clock of the disk, so hosts need not agree on the time). A holder that stood still for so
long finds the next number there and has lost its lease.

Execution: one thread renews; `lost` is asked on any thread.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from ett_trainer_hooks.pipeline.durable import create_whole

LEASE_S = 60.0
"""Seconds without a renewal after which a holder that cannot be asked is taken to be dead."""
RENEWALS = 6
"""Renewals in that time."""
LET_GO = (0, 0)
"""Times of a take whose holder has let go; those of a holder that died are when it was last renewed."""
_NAME = re.compile(r"take-(\d+)\.json")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who has taken it: its job, machine and process, and when (Unix seconds)."""

    job_id: str
    node: str
    boot: str
    pid: int
    taken_at: float


class LostError(Exception):
    """The lease has run out, and another process has taken over."""


class Lease:
    """A lease that this process holds until it is released or dies.

    `number`: which take this is, the first being 1.
    """

    def __init__(self, folder: Path, number: int, handle: int) -> None:
        self.number = number
        self._folder = folder
        self._path = folder / f"take-{number}.json"
        self._handle = handle
        self._over = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._renewing.start()

    @property
    def lost(self) -> bool:
        """Another process has taken over, or others by now."""
        return (self._folder / f"take-{self.number + 1}.json").exists() or not self._path.exists()

    def check(self) -> None:
        """Go on only while nobody has taken over.

        Raises:
            LostError: somebody has.
        """
        if self.lost:
            raise LostError(f"take {self.number} of {self._folder} ran out, another process has taken over")

    def release(self) -> None:
        """Let another process have it at once."""
        self._over.set()
        self._renewing.join()
        if not self.lost:
            os.utime(self._path, LET_GO)
        os.close(self._handle)

    def _renew(self) -> None:
        while not self._over.wait(LEASE_S / RENEWALS) and not self.lost:
            with suppress(OSError):  # a disk that stutters; the next time, or the lease runs out
                os.utime(self._path)


def take(folder: Path, job_id: str) -> Lease | Holder:
    """Take what lies in a folder; returns who has it where somebody does.

    Raises:
        OSError: the disk cannot be asked.
    """
    number, holder = latest(folder)
    if holder is not None and is_alive(folder, number, holder):
        return holder
    mine = Holder(
        job_id=job_id, node=socket.gethostname(), boot=_boot(), pid=os.getpid(), taken_at=time.time()
    )
    path = folder / f"take-{number + 1}.json"
    handle = create_whole(path, msgspec.json.encode(mine), _lock)
    if handle is not None:
        return Lease(folder, number + 1, handle)
    return msgspec.json.decode(path.read_bytes(), type=Holder)


def latest(folder: Path) -> tuple[int, Holder | None]:
    """The latest take of a folder: its number, 0 where there is none, and whose it is."""
    matches = [_NAME.fullmatch(entry.name) for entry in folder.iterdir()]
    number = max((int(match[1]) for match in matches if match), default=0)
    if not number:
        return 0, None
    return number, msgspec.json.decode((folder / f"take-{number}.json").read_bytes(), type=Holder)


def deaths(folder: Path, but: int) -> int:
    """Takes of a folder whose holders have not let go, `but` one."""
    found = [(match, path) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
    return sum(int(match[1]) != but and path.stat().st_mtime != LET_GO[1] for match, path in found)


def forget_deaths(folder: Path) -> None:
    """What has killed its holders is taken as often as before."""
    for path in folder.iterdir():
        if _NAME.fullmatch(path.name):
            os.utime(path, LET_GO)


def forget_older(folder: Path, number: int) -> None:
    """Take away what is older than the take before this one, at which somebody may still look."""
    for path in folder.iterdir():
        if (match := _NAME.fullmatch(path.name)) and int(match[1]) < number - 1:
            path.unlink(missing_ok=True)


def is_here(holder: Holder) -> bool:
    """Whether the holder is, or was, a process of this machine."""
    return holder.boot == _boot()


def is_alive(folder: Path, number: int, holder: Holder) -> bool:
    """Whether the holder of a take may still be at work."""
    path = folder / f"take-{number}.json"
    if _now(folder) - path.stat().st_mtime > LEASE_S:
        return False
    return not is_here(holder) or _is_locked(path)


def _lock(handle: int) -> None:
    """Locked before it can be seen, so that nobody takes its maker for dead."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a disk without locks: the lease alone has to do
        return


def _is_locked(path: Path) -> bool:
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _now(folder: Path) -> float:
    """The time by the clock that dates the files of a folder."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".partial") as probe:
            probe.write(b".")
            probe.flush()
            return os.fstat(probe.fileno()).st_mtime
    except OSError:  # only looked at: what cannot be written to cannot be taken either
        return time.time()


def _boot() -> str:
    """One text for one kernel, whatever the containers on it are called."""
    return _BOOT.read_text().strip() if _BOOT.exists() else socket.gethostname()
