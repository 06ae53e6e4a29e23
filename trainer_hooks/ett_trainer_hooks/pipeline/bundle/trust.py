"""Whose bundles may be loaded: artifacts hold pickles and machine code, so a store is trusted or it is not.

A directory is trusted where nobody but its owner, the user, can have written to it. Any other
store is trusted through a key that a team shares: each entry carries a code that only the key
can make.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

SHORTEST_KEY = 32
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def why_untrusted(directory: Path, uid: int | None = None) -> str:
    """Why others may have put bundles into a directory; empty where only the user can have.

    The directory belongs to the user and nobody else may write to it; nobody else may replace it
    either, through a directory above it.
    """
    user = os.getuid() if uid is None else uid
    place = directory.resolve()
    facts = place.stat()
    if not stat.S_ISDIR(facts.st_mode):
        return f"{place} is no directory"
    if facts.st_uid != user:
        return f"{place} belongs to user {facts.st_uid}, not to {user}"
    if facts.st_mode & OTHERS_WRITE:
        return f"others may write to {place}: chmod go-w it, or share a key"
    return next(filter(None, (_why_replaceable(parent, user) for parent in place.parents)), "")


def own_directory(directory: Path) -> None:
    """Make a directory for the user alone, where it is not there.

    Raises:
        OSError: it cannot be made, or others may write to the one that is there.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if reason := why_untrusted(directory):
        raise PermissionError(reason)


def _why_replaceable(directory: Path, user: int) -> str:
    facts = directory.stat()
    if facts.st_uid not in (0, user):
        return f"{directory}, above it, belongs to user {facts.st_uid}"
    if facts.st_mode & OTHERS_WRITE and not facts.st_mode & stat.S_ISVTX:
        return f"others may write to {directory}, above it"
    return ""


def read_key(path: Path, uid: int | None = None) -> bytes:
    """The key in a file, without white space around it.

    Raises:
        ValueError: it cannot be read, is shorter than 32 bytes, or others could have written it.
    """
    user = os.getuid() if uid is None else uid
    try:
        facts, key = path.stat(), path.read_bytes().strip()
    except OSError as error:
        raise ValueError(f"the key in {path} cannot be read: {error.strerror}") from None
    if facts.st_uid not in (0, user) or facts.st_mode & OTHERS_WRITE:
        raise ValueError(f"the key in {path} could have been written by others")
    if len(key) < SHORTEST_KEY:
        raise ValueError(
            f"the key in {path} has {len(key)} bytes, needs {SHORTEST_KEY}: openssl rand -hex 32 > {path}"
        )
    return key
