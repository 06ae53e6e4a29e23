"""Sees to it that a command can print although the disk that holds its output is full.

Used by the launcher's main thread. Blocks are set aside on the disk ahead of the end of the output
file; nobody else can take them. Where they run low and no more are to be had, the blocks of output
that was passed on already are given up and set aside anew, so that a full disk costs old output
that somebody has read, and no program its `print`. Where the file system knows no such blocks
(some network ones), nothing is set aside.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

AHEAD_BYTES = 16 << 20
"""What is set aside for one stream."""
LEAST_BYTES = 64 << 10
KEPT_BYTES = 1 << 30
"""Output of one stream that stays on the disk; what was passed on before it is given up."""
SHARE = 4
"""At most one part in so many of the space that is left is set aside at once."""
BLOCK_BYTES = 4096
KEEP_SIZE, PUNCH_HOLE = 1, 2

Allocate = Callable[[int, int, int, int], None]
"""As `fallocate` of Linux: descriptor, mode, offset, bytes; raises OSError."""


def fallocate(descriptor: int, mode: int, offset: int, size: int) -> None:
    """Set blocks of a file aside, or give them up.

    Raises:
        OSError: the kernel or the file system does not.
    """
    try:
        function = ctypes.CDLL(None, use_errno=True).fallocate
    except (OSError, AttributeError) as error:
        raise OSError(str(error)) from error
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong)
    if function(descriptor, mode, offset, size) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class OutputRoom:
    """Keeps room for one file of output.

    `done_with` tells how many bytes of it nobody needs any more; `say` is told the path, once, when
    the first of them are given up.
    """

    def __init__(
        self,
        path: Path,
        done_with: Callable[[], int],
        say: Callable[[Path], object],
        allocate: Allocate = fallocate,
    ) -> None:
        self.given_up = 0
        """Bytes from the beginning of the file that are on the disk no more."""
        self._say = say
        self._has_said = False
        self._path = path
        self._done_with = done_with
        self._allocate = allocate
        self._until = 0
        self._size = 0

    def look(self) -> None:
        """See to it that there is room."""
        try:
            before, size = self._size, self._path.stat().st_size
            if size < before:  # another file has taken the name
                self.given_up = self._until = 0
            self._size = size
            is_short = self._until - size < AHEAD_BYTES // 2
            is_large = self._done_with() - self.given_up > 2 * KEPT_BYTES
            if is_short or is_large:
                descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
                try:
                    self._make_room(descriptor, size, is_large=is_large)
                finally:
                    os.close(descriptor)
        except OSError:
            return

    def close(self) -> None:
        """Nobody writes to the file any more: what is set aside is free again."""
        try:
            os.truncate(self._path, self._path.stat().st_size)
        except OSError:
            return

    def _make_room(self, descriptor: int, size: int, *, is_large: bool) -> None:
        if is_large:
            self._give_up(descriptor, self._done_with() - KEPT_BYTES)
        if not self._set_aside(descriptor, size) and self._until - size < AHEAD_BYTES // SHARE:
            self._give_up(descriptor, self._done_with())
            self._set_aside(descriptor, size)

    def _set_aside(self, descriptor: int, size: int) -> bool:
        """Set aside what the disk has room for; False where that is nothing to speak of."""
        space = os.fstatvfs(descriptor)
        wanted = min(AHEAD_BYTES, space.f_bavail * space.f_frsize // SHARE)
        if wanted < LEAST_BYTES:
            return False
        try:
            self._allocate(descriptor, KEEP_SIZE, size, wanted)
        except OSError:
            return False
        self._until = max(self._until, size + wanted)
        return True

    def _give_up(self, descriptor: int, until: int) -> None:
        """Free the blocks of the file up to there."""
        until = until // BLOCK_BYTES * BLOCK_BYTES
        if until > self.given_up:
            self._allocate(descriptor, KEEP_SIZE | PUNCH_HOLE, 0, until)
            self.given_up = until
            if not self._has_said:
                self._has_said = True
                self._say(self._path)
