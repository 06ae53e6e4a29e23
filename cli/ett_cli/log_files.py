"""Logs on a disk that are read in pieces, from their beginning as often as is asked for.

What cannot be read twice (standard input, a pipe) is copied to a temporary file first.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from ett_cli.imports.formats import Log
from ett_core.plain_text import name_as_text
from ett_core.reasons import reason_within

STDIN = "-"
PIECE_BYTES = 1 << 18


class LogFile:
    """A log; `lines` of the last time that it was read, `trouble` where it could not be read to its end."""

    def __init__(self, name: str, path: Path, written_at: float) -> None:
        self.name = name
        self.lines = 0
        self.trouble = ""
        self._path = path
        self._written_at = written_at

    def described(self) -> Log:
        """The log for those who take it apart."""
        return Log(self.name, self.pieces, self._written_at)

    def pieces(self, size: int = PIECE_BYTES) -> Iterator[bytes]:
        """The contents."""
        lines, last = 0, b"\n"
        try:
            with self._path.open("rb") as file:
                while piece := file.read(size):
                    lines, last = lines + piece.count(b"\n"), piece
                    yield piece
        except OSError as error:
            self.trouble = reason_within(error)
        self.lines = lines + (not last.endswith(b"\n"))


class Sources:
    """Finds logs by their names; `unread` says why some cannot be read.

    `latest` (Unix seconds) dates standard input, or all of them where it `is_given`.
    """

    def __init__(self, stdin: Callable[[], BinaryIO], latest: float, *, is_given: bool) -> None:
        self.unread: list[str] = []
        self._held = ExitStack()
        self._stdin = stdin
        self._latest = latest
        self._is_given = is_given

    def __enter__(self) -> Sources:  # noqa: PYI034 - Self is younger than Python 3.10
        """Begin; the end removes the copies."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the copies."""
        self._held.close()

    def logs(self, names: Iterable[str]) -> list[LogFile]:
        """The logs behind `names`: files, directories (their files, at any depth) or `-`."""
        logs: list[LogFile] = []
        for name in names:
            logs += self._behind(name)
        return logs

    def _behind(self, name: str) -> Iterator[LogFile]:
        try:
            if name == STDIN:
                yield LogFile("<stdin>", self._copied(self._stdin()), self._latest)
            else:
                yield from map(self._found, files(Path(name)))
        except OSError as error:
            self.unread.append(f"{name_as_text(str(error.filename or name))}: {reason_within(error)}")

    def _found(self, path: Path) -> LogFile:
        with path.open("rb") as file:
            written_at = self._latest if self._is_given else os.fstat(file.fileno()).st_mtime
            return LogFile(
                name_as_text(str(path)), path if path.is_file() else self._copied(file), written_at
            )

    def _copied(self, stream: BinaryIO) -> Path:
        copy = tempfile.NamedTemporaryFile(prefix="ett-import-")  # noqa: SIM115 - `_held` closes it
        self._held.enter_context(copy)
        shutil.copyfileobj(stream, copy, PIECE_BYTES)
        copy.flush()
        return Path(copy.name)


def files(path: Path) -> list[Path]:
    """The file, or the files of a directory at any depth, in the order of their names."""
    if not path.is_dir():
        return [path]
    found = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sorted(file for file in found if file.is_file() and not file.name.startswith("."))
