"""Bytes of what was saved; I/O on the local file system only."""

from __future__ import annotations

from pathlib import Path


def bytes_of(path: object) -> int | None:
    """Bytes of a file, or of the files in a directory at any depth; None where it is not on this disk.

    >>> bytes_of("no such file"), bytes_of(None)
    (None, None)
    """
    if not isinstance(path, str | Path):
        return None
    place = Path(path)
    try:
        if place.is_dir():
            return sum(each.stat().st_size for each in place.rglob("*") if each.is_file())
        return place.stat().st_size
    except OSError:
        return None
