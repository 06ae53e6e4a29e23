"""Where models are published: a directory, or a folder at any URL that fsspec understands.

    step_400-0123456789abcdef.1/      a model: dense.pt2, tables/, card.json, README.md
    step_400-0123456789abcdef.json    its name, created once: only now it is published
    latest                            the name of the model published last

Each publisher fills a folder of its own, whose number is that of its take, so two never write into one.
The file beside it is created exclusively: of two publishers of one checkpoint one has published, and the
other learns it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ett_trainer_hooks.pipeline.bundle.files import LOCAL, write_whole
from ett_trainer_hooks.pipeline.checkpoint.asking import Asked
from ett_trainer_hooks.pipeline.durable import MODE, created, sync_file, sync_folder

WORKERS = 4


class Place(Protocol):
    """A flat set of small files, and folders that are brought there whole."""

    address: str

    def begin(self, name: str) -> Path:
        """An empty folder on this machine, to be filled with what will lie there under a name."""
        ...

    def abandon(self, name: str) -> None:
        """Give up what was begun, as far as that is possible."""
        ...

    def bring(self, name: str) -> None:
        """Have what was filled lie there, on the disk or at the URL, before this returns."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Create a file; False where it is there already."""
        ...

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where there is none."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Write a file, whether or not it is there."""
        ...

    def clear(self, prefix: str, but: str) -> None:
        """Take away folders whose name begins so, but one; as far as that is possible."""
        ...

    def close(self) -> None:
        """Give back what is needed no longer on this machine."""
        ...


class LocalPlace:
    """A directory of this machine, or one that it shares."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.address = str(self.root)

    def begin(self, name: str) -> Path:
        """As `Place`."""
        self.root.mkdir(parents=True, exist_ok=True)
        folder = self.root / name
        folder.mkdir()
        return folder

    def abandon(self, name: str) -> None:
        """As `Place`."""
        shutil.rmtree(self.root / name, ignore_errors=True)

    def bring(self, name: str) -> None:
        """As `Place`."""
        for path in (self.root / name).rglob("*"):
            sync_file(path)
        sync_folder(self.root / name)
        sync_folder(self.root)

    def create(self, name: str, data: bytes) -> bool:
        """As `Place`."""
        return created(self.root / name, data)

    def read(self, name: str) -> bytes | None:
        """As `Place`."""
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def replace(self, name: str, data: bytes) -> None:
        """As `Place`."""
        write_whole(self.root / name, data, MODE)

    def clear(self, prefix: str, but: str) -> None:
        """As `Place`."""
        for folder in self.root.glob(f"{prefix}*"):
            if folder.is_dir() and folder.name != but:
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """As `Place`."""


class RemotePlace:
    """A folder at a URL; what goes there is first made in a directory for temporary files.

    Raises:
        RemoteError: nobody knows this kind of URL, or its package is missing.
    """

    def __init__(self, url: str, *, pause: Callable[[float], None] = time.sleep) -> None:
        self.address = url
        self._remote = Asked(url, pause)
        self._made = Path(tempfile.mkdtemp(prefix="ett-publish-"))

    def begin(self, name: str) -> Path:
        """As `Place`."""
        folder = self._made / name
        folder.mkdir()
        return folder

    def abandon(self, name: str) -> None:
        """As `Place`: what is there already is cleared by the next publisher."""

    def bring(self, name: str) -> None:
        """As `Place`.

        Raises:
            RemoteError: it is not there, or not whole.
        """
        files = {path for path in (self._made / name).rglob("*") if path.is_file()}
        sizes = {path.relative_to(self._made / name).as_posix(): path.stat().st_size for path in files}
        self._remote.put(self._made / name, sizes, self._path(name), workers=WORKERS)

    def create(self, name: str, data: bytes) -> bool:
        """As `Place`: a request that is repeated after its answer was lost finds what it has created."""
        try:
            self._remote.ask(self._remote.files.pipe_file, self._path(name), data, mode="create")
        except FileExistsError:
            return self.read(name) == data
        return True

    def read(self, name: str) -> bytes | None:
        """As `Place`."""
        try:
            data: bytes = self._remote.ask(self._remote.files.cat_file, self._path(name))
        except FileNotFoundError:
            return None
        return data

    def replace(self, name: str, data: bytes) -> None:
        """As `Place`."""
        self._remote.ask(self._remote.files.pipe_file, self._path(name), data)

    def clear(self, prefix: str, but: str) -> None:
        """As `Place`."""
        for path in self._remote.paths():
            name = path.rpartition("/")[2]
            if name.startswith(prefix) and name not in (but, f"{prefix}json"):
                self._remote.ask(self._remote.files.rm, self._path(name), recursive=True)

    def close(self) -> None:
        """As `Place`."""
        shutil.rmtree(self._made, ignore_errors=True)

    def _path(self, name: str) -> str:
        return f"{self._remote.root}/{name}"


def place_at(address: str) -> Place:
    """The place of a path or URL.

    Raises:
        RemoteError: nobody knows this kind of URL, or its package is missing.

    >>> place_at("file:///srv/models").address
    '/srv/models'
    """
    if "://" not in address or address.startswith(LOCAL):
        return LocalPlace(Path(address.removeprefix(LOCAL)).expanduser())
    return RemotePlace(address)
