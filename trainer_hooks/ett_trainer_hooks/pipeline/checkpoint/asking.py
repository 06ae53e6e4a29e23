"""A place at a URL that fsspec understands, asked again where it throttles. Used on any thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ett_trainer_hooks.guard import type_and_text
from ett_trainer_hooks.pipeline.side_by_side import side_by_side

P = ParamSpec("P")
T = TypeVar("T")
PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before a store is asked again, and how often."""


class RemoteError(Exception):
    """The remote store cannot be used now; the message says why."""


class Asked:
    """The place: `files` of fsspec, and `root` in it.

    Args:
        url: such as `s3://bucket/job-17`; what fsspec needs for it must be installed.
        pause: waits so many seconds before it is asked again.

    Raises:
        RemoteError: nobody knows this kind of URL, or its package is missing.
    """

    def __init__(self, url: str, pause: Callable[[float], None] = time.sleep) -> None:
        try:
            import fsspec.core  # noqa: PLC0415 - an extra

            files, root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise RemoteError(f"{url}: {error}") from error
        self.url = url
        self.files: Any = files
        self.root = str(root).rstrip("/")
        self._pause = pause

    def ask(self, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer of the store; FileNotFoundError and FileExistsError are answers.

        Raises:
            RemoteError: it cannot be had.
        """
        for pause_s in (*PAUSES_S, None):
            try:
                return question(*args, **kwargs)
            except (FileNotFoundError, FileExistsError):  # noqa: PERF203 - asked of a network
                raise
            except Exception as error:  # stores of all kinds raise errors of all kinds
                if pause_s is None or isinstance(error, PermissionError):
                    raise RemoteError(f"{self.url}: {type_and_text(error)}") from error
                self._pause(pause_s)
        raise AssertionError

    def paths(self) -> list[str]:
        """What lies in the place, files and folders; empty where there is no such place.

        Raises:
            RemoteError: it cannot be asked.
        """
        self.files.invalidate_cache()
        try:
            entries = self.ask(self.files.ls, self.root, detail=False)
        except FileNotFoundError:
            return []
        return [str(entry).rstrip("/") for entry in entries]

    def put(self, folder: Path, sizes: dict[str, int], place: str, *, workers: int) -> None:
        """Bring files of a folder of this machine there, and look whether they have arrived whole.

        Args:
            folder: where they lie.
            sizes: bytes by their path below the folder.
            place: the folder that they get.
            workers: files on their way at once.

        Raises:
            RemoteError: they are not there.
        """
        for made in sorted({f"{place}/{name}".rpartition("/")[0] for name in sizes} | {place}):
            self.ask(self.files.makedirs, made, exist_ok=True)
        self.each(sizes, lambda name: self.files.put_file(str(folder / name), f"{place}/{name}"), workers)
        self.files.invalidate_cache()
        for name, wanted in sizes.items():
            size = self.ask(self.files.size, f"{place}/{name}")
            if size != wanted:
                raise RemoteError(f"{self.url}: {name} has {size} of {wanted} bytes after its upload")

    def each(self, names: dict[str, Any], work: Callable[[str], object], workers: int) -> None:
        """Ask something for each name, several at once.

        Raises:
            RemoteError: one cannot be answered.
        """
        side_by_side(lambda name: self.ask(work, name), names, workers, "remote files")
