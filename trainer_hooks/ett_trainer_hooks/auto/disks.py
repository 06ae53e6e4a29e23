"""Whether a file system was full when a save to it broke, which torch does not say itself.

Used by the thread that saves, only once its save has raised.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

FULL_BYTES = 64 << 10
"""A file system with less room than this for ordinary users takes no checkpoint."""


def full_disk(target: object, statvfs: Callable[[Path], os.statvfs_result] = os.statvfs) -> str:
    """That nothing is left on the file system of a path, in a sentence; empty where there is room.

    >>> full_disk("/proc/no/such/place"), full_disk(None)
    ('', '')
    """
    if not isinstance(target, str | os.PathLike):
        return ""
    path = Path(os.fspath(target))
    try:
        space = statvfs(path if path.is_dir() else path.parent)
    except (OSError, ValueError):
        return ""
    free, whole = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
    if whole and free < FULL_BYTES:
        return f"no space left on device: {free} of {whole} bytes are free where {path} was to be written"
    if space.f_files and not space.f_favail:
        return f"no space left on device: no inode is free where {path} was to be written"
    return ""
