"""The keeper of one standby: its parent, its door, and the one who tells how it ended.

`python -m ett_trainer_hooks.standby CONTROL WANTED SOCKET`, started by `ett run`. One thread that waits
for whatever comes first. Until a rank has come for the standby, both end with the launcher (`CONTROL`, a
socket of it, is closed then); from then on the fates of rank and standby are one, and the launcher's is
another. What is told to the launcher is told once and never waited for. The directory of the sockets is
the launcher's; where that could not remove it, the first keeper to end after it does.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ett_trainer_hooks import procfs
from ett_trainer_hooks.standby.handing_over import PASSED_ON, STANDARD, by_number, surroundings
from ett_trainer_hooks.standby.understudy import FAILED, MESSAGE_BYTES, READY, stand_by, told_in
from ett_trainer_hooks.standby.wanted import Wanted, misfit

LOOK_S = 1.0
HANDSHAKE_S = 5.0
AUTOGROUP = Path("/proc/self/autogroup")
TRY_S = 0.05
WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)


def keep(control: socket.socket, wanted: Wanted, path: Path) -> Callable[[], None]:
    """Keep a standby to its end. Returns in the standby only, once it is to run the program."""
    for number in by_number(PASSED_ON):
        signal.signal(number, signal.SIG_IGN)
    be_nice(19)
    keeper, (mine, its) = os.getpid(), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        control.close()
        mine.close()
        return stand_by(its, wanted, keeper)
    its.close()
    control.setblocking(False)  # noqa: FBT003
    _Keeper(control, wanted, path, child, mine).run()
    os._exit(0)


def be_nice(nice: int, tries: int = 100) -> None:
    """Have the keeper and all below it come after others (19) or beside them (0), where autogroups share.

    There it does not matter how a process is scheduled beside one of another autogroup, and torchrun starts
    each rank in one of its own. Source: sched(7), autogroups.
    """
    while tries and not _is_nice(nice):
        tries -= 1
        time.sleep(TRY_S)


def _is_nice(nice: int) -> bool:
    """Whether there is nothing left to try."""
    try:
        AUTOGROUP.write_text(str(nice))
    except BlockingIOError:  # all users of a host together may do it ten times a second
        return False
    except OSError:  # this kernel does not
        pass
    return True


class _Keeper:
    """The keeper's side; `run` returns when the standby is gone."""

    def __init__(
        self, control: socket.socket, wanted: Wanted, path: Path, child: int, link: socket.socket
    ) -> None:
        self._control = control
        self._wanted = wanted
        self._path = path
        self._child = child
        self._link = link
        self._surroundings = json.loads(json.dumps(surroundings()))

    def run(self) -> None:
        """From the preparing to the end of the program."""
        self._keep()
        if self._was_left():
            shutil.rmtree(self._path.parent, ignore_errors=True)

    def _was_left(self) -> bool:
        """Whether the launcher is gone without a word of parting."""
        try:
            return not self._control.recv(MESSAGE_BYTES)
        except BlockingIOError:
            return False
        except ConnectionResetError:  # it has not heard all; what it said comes next
            return not self._control.recv(MESSAGE_BYTES)

    def _keep(self) -> None:
        if not self._is_ready():
            self._kill()
            return
        rank = self._rank()
        self._path.unlink(missing_ok=True)
        if rank is None:
            self._kill()
            return
        status = self._until_end(rank)
        self._say({"ended": self._child, "status": status})
        with suppress(OSError):  # the rank is gone
            rank.send(str(status).encode())

    def _is_ready(self) -> bool:
        """Wait until the standby has prepared; False where it failed, or the launcher is gone."""
        if self._first(self._link, self._control) is self._control:
            return False
        told = self._link.recv(MESSAGE_BYTES)
        if told != READY:
            self._say({"failed": told.removeprefix(FAILED).decode(errors="replace") or self._end()})
        return told == READY

    def _end(self) -> str:
        """How the standby ended, or will in a moment."""
        ended = os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOWAIT)
        assert ended is not None  # noqa: S101 - only with WNOHANG
        how = "exit status" if ended.si_code == os.CLD_EXITED else "signal"
        return f"its process ended with {how} {ended.si_status}"

    def _promote(self) -> None:
        """Have the standby run as this process does: it need not wait for an idle processor to do so."""
        with suppress(OSError):
            if os.sched_getscheduler(self._child) == os.SCHED_IDLE:
                os.sched_setscheduler(self._child, os.sched_getscheduler(0), os.sched_param(0))

    def _rank(self) -> socket.socket | None:
        """Wait at the door until a rank has come that the standby fits; None: it is not wanted any more."""
        self._path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.bind(str(self._path))
            door.listen()
            self._say({"ready": self._child, "bytes": resident_bytes(self._child)})
            while (first := self._first(door, self._control, self._link)) is door:
                line, _ = door.accept()
                line.settimeout(HANDSHAKE_S)
                try:
                    if self._took_over(line):
                        return line
                except (OSError, ValueError, KeyError):  # it changed its mind, or is none of ours
                    pass
                line.close()
            if first is self._link:
                self._say({"failed": f"{self._end()} while it was waiting"})
            return None

    def _took_over(self, line: socket.socket) -> bool:
        """Talk to a rank; True once the standby runs its program."""
        pid, uid, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        _, given, _, _ = socket.recv_fds(line, MESSAGE_BYTES, 1 + len(STANDARD))
        try:
            if uid != os.geteuid() or len(given) != 1 + len(STANDARD):
                return False
            asked = json.loads(told_in(os.dup(given[0])))
            if reason := misfit(self._wanted, asked, self._surroundings):
                self._say({"refused": reason, "rank_pid": pid})
                line.send(b"no")
                return False
            line.send(b"fits")
            if line.recv(MESSAGE_BYTES) != b"go":
                return False
            self._say({"taken": self._child, "rank_pid": pid, "environ": told_to_launcher(asked["environ"])})
            self._promote()
            socket.send_fds(self._link, [str(pid).encode()], given)
            be_nice(0)  # what the standby has started stays in the keeper's autogroup
            return True
        finally:
            for descriptor in given:
                os.close(descriptor)

    def _until_end(self, rank: socket.socket) -> int:
        """Pass signals on until the standby ends, which it does when the rank does; its exit status."""
        poll = select.poll()
        poll.register(rank, select.POLLIN)
        with_descriptor = descriptor_of(self._child)
        if with_descriptor is not None:
            poll.register(with_descriptor, select.POLLIN)
        rank.setblocking(False)  # noqa: FBT003
        gone = False
        while True:
            pid, status = os.waitpid(self._child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            ready = [number for number, _ in poll.poll(LOOK_S * 1000)]
            if rank.fileno() in ready and not gone:
                gone = not self._passed_on(rank)
                if gone:
                    poll.unregister(rank)
                    self._kill_all()

    def _passed_on(self, rank: socket.socket) -> bool:
        """Pass on a signal that the rank got; False where the rank is gone."""
        try:
            told = rank.recv(MESSAGE_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        for number in told:
            if number not in WARNINGS or procfs.catches(self._child, number):
                os.kill(self._child, number)
        return bool(told)

    def _kill_all(self) -> None:
        """End the standby and what it has started, as torchrun does with the group of a rank."""
        try:
            os.killpg(self._child, signal.SIGKILL)
        except ProcessLookupError:  # not the leader of a group yet
            os.kill(self._child, signal.SIGKILL)

    def _kill(self) -> None:
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)

    def _first(self, *lines: socket.socket) -> socket.socket:
        """The first of the sockets that has something to say, its end included."""
        ready, _, _ = select.select(lines, [], [])
        return next(line for line in lines if line in ready)

    def _say(self, told: Mapping[str, Any]) -> None:
        with suppress(OSError):  # the launcher is gone, or slow
            self._control.send(json.dumps(told).encode())


def told_to_launcher(environ: Mapping[str, str]) -> dict[str, str]:
    """What the launcher needs to know of the environment of a rank."""
    return {name: environ[name] for name in ("LOCAL_RANK", "TORCHELASTIC_ERROR_FILE") if name in environ}


def descriptor_of(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the kernel has none."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def resident_bytes(pid: int) -> int:
    """Memory that a process holds, as the kernel counts it; 0 where it does not tell."""
    try:
        pages = int((procfs.PROC / str(pid) / "statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
