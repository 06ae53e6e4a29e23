"""Wakes the launcher as soon as a process ends, by the process descriptors of Linux.

Used by the launcher's main thread. Where the kernel has none, the launcher looks at its usual times.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
from collections.abc import Callable, Iterable

from ett_trainer_hooks.procfs import exit_status

PIDFD_OPEN: Callable[[int], int] | None = getattr(os, "pidfd_open", None)
PIDFD_INFO = struct.Struct("=QQ11Ii")
"""`struct pidfd_info` of `linux/pidfd.h`: a mask, the cgroup, eleven ids, the status to wait for."""
PIDFD_GET_INFO = 3 << 30 | PIDFD_INFO.size << 16 | 0xFF << 8 | 11
PIDFD_INFO_EXIT = 1 << 3


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

    def wait(self, timeout_s: float) -> dict[int, int]:
        """Return when a watched process ends, at the latest after `timeout_s`.

        The result is the exit status by pid of those that ended (minus the signal that ended it),
        as far as the kernel tells it.
        """
        statuses: dict[int, int] = {}
        for descriptor, _ in self._poll.poll(timeout_s * 1000.0):
            pid = self._watched[descriptor]
            status = status_by_descriptor(descriptor)
            status = exit_status(pid) if status is None else status
            if status is not None:
                statuses[pid] = status
            self._forget(descriptor)
        return statuses

    def close(self) -> None:
        """Watch nobody any more."""
        for descriptor in list(self._watched):
            self._forget(descriptor)

    def _forget(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        del self._watched[descriptor]
        os.close(descriptor)


def status_by_descriptor(descriptor: int) -> int | None:
    """The exit status of the process behind a pidfd, also after somebody waited for it.

    None where the kernel does not tell (before Linux 6.15), or the process lives.
    """
    answer = bytearray(PIDFD_INFO.size)
    PIDFD_INFO.pack_into(answer, 0, PIDFD_INFO_EXIT, *[0] * 13)
    try:
        fcntl.ioctl(descriptor, PIDFD_GET_INFO, answer)
    except OSError:
        return None
    mask, *_, wait_status = PIDFD_INFO.unpack(answer)
    return os.waitstatus_to_exitcode(wait_status) if mask & PIDFD_INFO_EXIT else None
