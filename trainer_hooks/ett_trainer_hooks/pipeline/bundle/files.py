"""Where a store keeps its files: a local directory, or whatever fsspec reaches by a URL.

Both write a file whole or not at all, as far as the place allows (a torn one is found by its
hash), and are safe for several processes at once.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

LOCAL = "file://"
IN_MEMORY = "memory://"
PARTIAL = ".partial"
FOLDERS = ("entries", "objects", "used")
"""All that a store has; what else lies in its directory is not touched."""


class Files(Protocol):
    """A flat set of files with paths such as `objects/x.zip`. Every call may raise what its place raises."""

    address: str

    def read(self, path: str) -> bytes:
        """The content of a file; FileNotFoundError where there is none."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Put a file there, in place of one that was."""
        ...

    def sizes(self, folder: str) -> dict[str, int]:
        """Bytes of each file below a folder, by path; empty where there is no such folder."""
        ...

    def remove(self, path: str) -> None:
        """Take a file away, if it is there."""
        ...

    def remove_partial(self, before: float) -> None:
        """Take away what killed writers have left, last changed `before` a moment (Unix seconds)."""
        ...


class LocalFiles:
    """Files below a directory that is made for the user alone."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.address = str(self.root)

    def read(self, path: str) -> bytes:
        """As `Files`."""
        return (self.root / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        """As `Files`: written beside its place, then moved there."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self.root / path, data)

    def sizes(self, folder: str) -> dict[str, int]:
        """As `Files`."""
        return dict(self._sizes(self.root / folder))

    def remove(self, path: str) -> None:
        """As `Files`."""
        (self.root / path).unlink(missing_ok=True)

    def remove_partial(self, before: float) -> None:
        """As `Files`."""
        for folder in FOLDERS:
            for path in (self.root / folder).rglob(f"tmp*{PARTIAL}"):
                facts = _facts(path)
                if facts is not None and stat.S_ISREG(facts.st_mode) and facts.st_mtime < before:
                    path.unlink(missing_ok=True)

    def _sizes(self, folder: Path) -> Iterator[tuple[str, int]]:
        for path in sorted(folder.rglob("*")):
            facts = _facts(path)
            if facts is not None and stat.S_ISREG(facts.st_mode) and not path.name.endswith(PARTIAL):
                yield path.relative_to(self.root).as_posix(), facts.st_size


class RemoteFiles:
    """Files below a URL that fsspec understands: `s3://bucket/folder`, `gs://`, `memory://`, ...

    Raises:
        ModuleNotFoundError: fsspec, or its package for this kind of URL, is not installed.
        ValueError: nobody knows this kind of URL.
    """

    def __init__(self, url: str) -> None:
        import fsspec.core  # noqa: PLC0415 - an extra

        self._fs: Any
        self._fs, self._root = fsspec.core.url_to_fs(url)
        self._root = self._root.rstrip("/")
        self.address = url

    def read(self, path: str) -> bytes:
        """As `Files`."""
        data: bytes = self._fs.cat_file(f"{self._root}/{path}")
        return data

    def write(self, path: str, data: bytes) -> None:
        """As `Files`."""
        place = f"{self._root}/{path}"
        self._fs.makedirs(place.rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(place, data)

    def sizes(self, folder: str) -> dict[str, int]:
        """As `Files`."""
        self._fs.invalidate_cache()
        try:
            found = self._fs.find(f"{self._root}/{folder}", detail=True)
        except FileNotFoundError:
            return {}
        return {
            str(path).removeprefix(self._root + "/"): int(facts.get("size") or 0)
            for path, facts in sorted(found.items())
            if facts.get("type", "file") == "file"
        }

    def remove(self, path: str) -> None:
        """As `Files`."""
        try:
            self._fs.rm_file(f"{self._root}/{path}")
        except FileNotFoundError:
            return

    def remove_partial(self, before: float) -> None:
        """As `Files`: such places show a file once it is whole."""


def is_shared(address: str) -> bool:
    """Whether others may reach the place, whatever its permissions here.

    >>> is_shared("s3://team/bundles"), is_shared("/var/lib/bundles"), is_shared("memory://x")
    (True, False, False)
    """
    return "://" in address and not address.startswith((LOCAL, IN_MEMORY))


def files_at(address: str) -> LocalFiles | RemoteFiles:
    """The files at a path or URL.

    >>> files_at("file:///var/lib/bundles").address
    '/var/lib/bundles'
    """
    if "://" not in address or address.startswith(LOCAL):
        return LocalFiles(Path(address.removeprefix(LOCAL)).expanduser())
    return RemoteFiles(address)


def _facts(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:  # somebody else takes away what is no longer used
        return None


def write_whole(path: Path, data: bytes, mode: int = 0o600, *, durable: bool = True) -> None:
    """Write a file that is there whole or not at all; a disk that is full leaves nothing behind.

    Without `durable` it need not survive the machine.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, suffix=PARTIAL)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        Path(partial).chmod(mode)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
