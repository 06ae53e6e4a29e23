"""Who is at work: a lease that its holder renews, that runs out once it is dead, and that nobody shares.

    take-1.json   of the first one: who it is; renewed by touching it, of the year 1970 once it let go
    take-2.json   of the next one, which found the first dead

Exactly one process creates `take-N.json`, and only after it has seen that the holder of `take-(N-1)` is
gone: its lock is free (the kernel frees it; for holders on this machine) or the file was not renewed for
`LEASE_S` (by the clock of the disk, so hosts need not agree on the time). A holder that stood still for so
long finds the next number there and has lost its lease. So does one whose job is started again on another
machine, where both starts say which they are (`Start`): a later one does not wait at all, one of the same
number no longer than a holder that lives needs to be seen.

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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ett_trainer_hooks.pipeline.durable import create_whole

LEASE_S = 60.0
"""Seconds without a renewal after which a holder that cannot be asked is taken to be dead."""
RENEWALS = 6
"""Renewals in that time."""
SEEN_WITHIN_S = 1.5 * LEASE_S / RENEWALS
"""A holder that lives renews its take within this time."""
LOOK_EVERY_S = 0.5
LET_GO = (0, 0)
"""Times of a take whose holder has let go; those of a holder that died are when it was last renewed."""
_NAME = re.compile(r"take-(\d+)\.json")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Machine(NamedTuple):
    """A machine: its name, and one text for its running kernel."""

    node: str
    boot: str


def this_machine() -> Machine:
    """The machine of this process, whatever the containers on it are called."""
    node = socket.gethostname()
    return Machine(node, _BOOT.read_text().strip() if _BOOT.exists() else node)


class Start(NamedTuple):
    """Which start of its job a holder is: the number that its launcher gave it, and that of its attempt.

    Only for a holder that can do no harm once it has lost its lease.
    """

    launch: int
    attempt: int


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who has taken it: its job, machine and process, and when (Unix seconds)."""

    job_id: str
    node: str
    boot: str
    pid: int
    taken_at: float
    start: Start | None = None

    def __str__(self) -> str:
        """In words."""
        attempt = f", attempt {self.start.attempt}" if self.start else ""
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.taken_at))
        return f"process {self.pid} on {self.node}, of job {self.job_id}{attempt}, since {since}"


class LostError(Exception):
    """Another process has taken over, as the lease had run out or the job was started again."""


class Lease:
    """A lease that this process holds until it is released or dies.

    `number`: which take this is, the first being 1; `took_from`: an earlier start of the same
    job that may still be at work, if any.
    """

    def __init__(self, folder: Path, number: int, handle: int, took_from: Holder | None = None) -> None:
        self.number = number
        self.took_from = took_from
        self._folder = folder
        self._path = folder / f"take-{number}.json"
        self._handle = handle
        self._over = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._renewing.start()

    @property
    def lost(self) -> bool:
        """Another process has taken over, or others by now.

        Raises:
            OSError: the disk does not tell.
        """
        return _is_there(self._folder / f"take-{self.number + 1}.json") or not _is_there(self._path)

    def check(self, *, anew: bool = False) -> None:
        """Go on only while nobody has taken over.

        With `anew` whoever has taken over by now is seen, whatever a network disk remembers of the folder.

        Raises:
            LostError: somebody has.
        """
        if anew:
            _now(self._folder)  # a change of our own has such a disk ask for those of others
        if self.lost:
            number, holder = latest(self._folder)
            who = f": {holder}" if holder is not None and number > self.number else ""
            raise LostError(f"another process has taken over {self._folder}{who}")

    def release(self) -> None:
        """Let another process have it at once."""
        self._over.set()
        self._renewing.join()
        try:
            if not self.lost:
                os.utime(self._path, LET_GO)
        finally:
            os.close(self._handle)

    def _renew(self) -> None:
        while not self._over.wait(LEASE_S / RENEWALS):
            with suppress(OSError):  # a disk that stutters; the next time, or the lease runs out
                if self.lost:
                    return
                os.utime(self._path)


def take(
    folder: Path, job_id: str, *, start: Start | None = None, here: Machine | None = None
) -> Lease | Holder:
    """Take what lies in a folder; returns who has it where somebody does.

    `start`: which one of its job this is, where leases of earlier ones on other machines last less long.

    Raises:
        OSError: the disk cannot be asked.
    """
    node, boot = here = here or this_machine()
    mine = Holder(job_id=job_id, node=node, boot=boot, pid=os.getpid(), taken_at=time.time(), start=start)
    number, holder = latest(folder)
    if holder is not None and not is_alive(folder, number, holder, here):
        holder = None
    if holder is not None:
        seconds = lasts_s(holder, mine, _overtaken(folder, number, job_id))
        if is_alive(folder, number, holder, here, seconds):
            return holder
    path = folder / f"take-{number + 1}.json"
    handle = create_whole(path, msgspec.json.encode(mine), _lock)
    if handle is not None:
        return Lease(folder, number + 1, handle, holder)
    return msgspec.json.decode(path.read_bytes(), type=Holder)


def lasts_s(holder: Holder, other: Holder, before: Holder | None = None) -> float:
    """How long after its last renewal a holder on another machine has its lease, where another one comes.

    `before`: whom the holder has overtaken. Where that was no earlier start by its number, nobody numbers the
    starts of the job: a higher number is then that of a restart of ranks, maybe of those that were overtaken.

    >>> holder = Holder(job_id="dlrm", node="n1", boot="a", pid=7, taken_at=0, start=Start(0, 2))
    >>> again = msgspec.structs.replace(holder, node="n2", boot="b")
    >>> later = msgspec.structs.replace(again, start=Start(1000, 1000))
    >>> lasts_s(holder, later), lasts_s(holder, again), lasts_s(later, holder)
    (0.0, 15.0, 60.0)
    >>> lasts_s(again, msgspec.structs.replace(holder, start=Start(0, 3)), before=holder)
    15.0
    """
    if holder.start is None or other.start is None or holder.start > other.start:
        return LEASE_S
    if holder.job_id != other.job_id or holder.boot == other.boot:
        return LEASE_S
    told_by_number = before is None or before.start is None or before.start < holder.start
    return 0.0 if told_by_number and holder.start < other.start else SEEN_WITHIN_S


def latest(folder: Path) -> tuple[int, Holder | None]:
    """The latest take of a folder: its number, 0 where there is none, and whose it is."""
    matches = [_NAME.fullmatch(entry.name) for entry in folder.iterdir()]
    number = max((int(match[1]) for match in matches if match), default=0)
    if not number:
        return 0, None
    return number, msgspec.json.decode((folder / f"take-{number}.json").read_bytes(), type=Holder)


def _overtaken(folder: Path, number: int, job_id: str) -> Holder | None:
    """Who of a job had it before the holder of a take, and had not let go."""
    path = folder / f"take-{number - 1}.json"
    try:
        if _renewed_at(path) == LET_GO[1]:
            return None
        before = msgspec.json.decode(path.read_bytes(), type=Holder)
    except FileNotFoundError:
        return None
    return before if before.job_id == job_id else None


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


def is_here(holder: Holder, here: Machine | None = None) -> bool:
    """Whether the holder is, or was, a process of this machine."""
    return holder.boot == (here or this_machine()).boot


def is_alive(
    folder: Path, number: int, holder: Holder, here: Machine | None = None, lasts_s: float = LEASE_S
) -> bool:
    """Whether the holder of a take may still be at work."""
    path = folder / f"take-{number}.json"
    if max(_now(folder) - _renewed_at(path), 0.0) >= lasts_s:
        return False
    return not is_here(holder, here) or _is_locked(path)


def is_renewed(
    folder: Path, number: int, *, pause: Callable[[float], object], clock: Callable[[], float]
) -> bool:
    """Whether the holder of a take is seen to renew it, which takes a while."""
    path = folder / f"take-{number}.json"
    known, ends_s = _renewed_at(path), clock() + SEEN_WITHIN_S
    while clock() < ends_s:
        pause(LOOK_EVERY_S)
        if (latest := _renewed_at(path)) != known:
            return latest != LET_GO[1]
    return False


def _is_there(path: Path) -> bool:
    """Whether there is such a file; what else a disk may answer is no answer to that.

    Raises:
        OSError: it does not tell.
    """
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def _renewed_at(path: Path) -> float:
    """A network disk tells the truth of a file when it is opened."""
    with path.open("rb") as file:
        return os.fstat(file.fileno()).st_mtime


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
