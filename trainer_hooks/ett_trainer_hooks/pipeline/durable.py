"""Small files that are whole and on the disk, some of them created by exactly one of several processes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

MODE = 0o644


def create_whole(path: Path, data: bytes, before: Callable[[int], object] = lambda _: None) -> int | None:
    """Create a file that must not be there yet; None where it is, whoever made it.

    `before` is called with the open file before it can be seen under its name. Returns the open file.

    Raises:
        OSError: the disk does not take it.
    """
    handle, partial = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(data)
        os.fchmod(handle, MODE)
        os.fsync(handle)
        before(handle)
        os.link(partial, path)
    except FileExistsError:
        os.close(handle)
        return None
    except BaseException:
        os.close(handle)
        raise
    finally:
        Path(partial).unlink(missing_ok=True)
    sync_folder(path.parent)
    return handle


def created(path: Path, data: bytes) -> bool:
    """As `create_whole`, for who does not want the file: whether it was created here."""
    handle = create_whole(path, data)
    if handle is not None:
        os.close(handle)
    return handle is not None


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Bring the bytes of a file to the disk."""
    sync_folder(path)  # the same call


def put_whole(path: Path, data: bytes, partial: Path, before: Callable[[], object] = lambda: None) -> None:
    """Write a file, in place of one that was, by way of `partial` in the same folder, which must be there.

    `before` is called when all is on the disk, and nothing seen of it under its name.
    """
    try:
        with partial.open("wb") as file:
            os.fchmod(file.fileno(), MODE)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        before()
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
