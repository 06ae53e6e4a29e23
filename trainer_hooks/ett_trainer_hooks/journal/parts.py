"""The files of one journal: `<writer>-<pid>.jsonl`, then `<writer>-<pid>.part000001.jsonl` and so on.

A journal goes on in its next part once one has grown to a size. No file is ever renamed, so that
offsets into it stay true, and the parts sort by name in the order in which they were written. When
all of them together reach a bound, one is removed: of those between the first, which tells how the
attempt began, and the last one that every exporter has acknowledged, else the oldest; the lines of
it that an account cannot do without go to the current part first. `PartFiles` belongs to the thread
that writes the journal.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ett_trainer_hooks.journal.segments import acked_offsets, acked_path

SUFFIX = ".jsonl"
PART = ".part"
DIGITS = 6
WEIGHTY = ("attempt_start", "attempt_end", "job_end", "failure", "checkpoint_durable", "checkpoint_failed")
"""Kinds of events that are kept when their part is removed, and that are on their way to the disk itself
(fsync) as soon as they are written."""
_WEIGHTY_HEADS = tuple(f'{{"kind":"{kind}",'.encode() for kind in WEIGHTY)
LEAST_PARTS = 4
MOST_DIGITS = 18
KEPT_SHARE = 0.5
"""At most this share of a part's size is kept of one that is removed, the latest lines of it."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large the files of one process may grow."""

    part_bytes: int = 64 << 20
    """A journal goes on in its next part when one has reached this size; a part is larger by the last
    lines that were written at once."""
    max_bytes: int = 2 << 30
    """All parts together stay below this, whatever that costs; at least four times `part_bytes`."""

    def __post_init__(self) -> None:
        """Check what a person has given.

        Raises:
            ValueError: a setting is wrong; the message names it.
        """
        if self.part_bytes < 1:
            raise ValueError(f"part_bytes={self.part_bytes!r} is not above 0")
        if self.max_bytes < LEAST_PARTS * self.part_bytes:
            raise ValueError(f"max_bytes={self.max_bytes!r} is less than {LEAST_PARTS} times part_bytes")

    @classmethod
    def from_env(cls, environ: Mapping[str, str], say: Callable[[str], object]) -> Sizes:
        """The sizes that `ETT_JOURNAL_PART_BYTES` and `ETT_JOURNAL_MAX_BYTES` set.

        A bound alone makes parts small enough for it. Where they cannot be used, the usual ones; `say` is
        told why.
        """
        names = {"part_bytes": "ETT_JOURNAL_PART_BYTES", "max_bytes": "ETT_JOURNAL_MAX_BYTES"}
        texts = {field: environ.get(name, "").strip() for field, name in names.items()}
        try:
            given = {field: whole_number(text) for field, text in texts.items() if text}
            if "part_bytes" not in given and "max_bytes" in given:
                given["part_bytes"] = min(cls.part_bytes, given["max_bytes"] // LEAST_PARTS)
            return cls(**given)
        except ValueError as error:
            settings = " and ".join(f"{names[field]}={text!r}" for field, text in texts.items() if text)
            say(f"{settings}: {error}; the usual sizes of journals are used")
            return cls()


def whole_number(text: str) -> int:
    """The number of bytes that a text says.

    Raises:
        ValueError: it says none.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
        raise ValueError("that is not a whole number of bytes")
    return int(text)


def journal_path(directory: Path, writer: str, pid: int) -> Path:
    """Where a process begins its journal; the name tells the launcher whom to watch."""
    return directory / f"{writer}-{pid}{SUFFIX}"


def part_path(first: Path, number: int) -> Path:
    """A part of the journal that begins in `first`, from number 1.

    >>> part_path(Path("/run/journal/00ff-4711.jsonl"), 2).name
    '00ff-4711.part000002.jsonl'
    """
    return first.with_name(f"{first.name.removesuffix(SUFFIX)}{PART}{number:0{DIGITS}}{SUFFIX}")


def first_part(path: Path) -> Path:
    """Where the journal begins that `path` is a part of.

    >>> first_part(Path("00ff-4711.part000002.jsonl")), first_part(Path("00ff-4711.jsonl"))
    (PosixPath('00ff-4711.jsonl'), PosixPath('00ff-4711.jsonl'))
    """
    stem, part, digits = path.name.removesuffix(SUFFIX).rpartition(PART)
    return path.with_name(f"{stem}{SUFFIX}") if part and digits.isdecimal() else path


def all_parts(first: Path) -> list[Path]:
    """The parts of a journal in the order in which they were written; only the first need not be there."""
    return [first, *sorted(first.parent.glob(f"{first.name.removesuffix(SUFFIX)}{PART}*{SUFFIX}"))]


def last_part(first: Path) -> Path:
    """The part that a journal was last written to, by their names."""
    return all_parts(first)[-1]


def part_number(path: Path) -> int:
    """Which part of its journal a file is, from 0.

    >>> part_number(Path("00ff-4711.part000002.jsonl")), part_number(Path("00ff-4711.jsonl"))
    (2, 0)
    """
    _, part, digits = path.name.removesuffix(SUFFIX).rpartition(PART)
    return int(digits) if part and digits.isdecimal() else 0


def pid_of(path: Path) -> int | None:
    """The process that writes a journal, from the name of any of its parts.

    >>> pid_of(Path("/run/journal/00ff00ff00ff00ff-4711.jsonl")), pid_of(Path("00ff-4711.part000002.jsonl"))
    (4711, 4711)
    """
    _, _, digits = first_part(path).stem.rpartition("-")
    return int(digits) if digits.isdecimal() else None


def is_weighty(line: bytes) -> bool:
    """The line is of a kind that no account can do without."""
    return line.startswith(_WEIGHTY_HEADS)


def is_acknowledged(path: Path, size: int) -> bool:
    """Every exporter that a part was ever sent to holds all of it."""
    offsets = acked_offsets(path).values()
    return bool(offsets) and all(offset == size for offset in offsets)


class PartFiles:
    """Appends to the parts of a journal; `path` is the current one.

    `lost_lines` counts lines that were removed with a part and that no exporter is known to hold;
    `was_removed` where somebody else has removed one.
    """

    def __init__(self, first: Path, sizes: Sizes, write: Callable[[int, bytes], int] = os.write) -> None:
        self.path = first
        self.lost_lines = 0
        self.was_removed = False
        self._first = first
        self._sizes = sizes
        self._write = write
        self._number = 0
        self._bytes = 0
        self._full: dict[Path, int] = {}
        self._fd: int | None = None

    @property
    def descriptor(self) -> int:
        """The current part, open for appending.

        Raises:
            OSError: it cannot be opened.
        """
        if self._fd is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return self._fd

    def append(self, data: bytes) -> int:
        """Append as much as the disk takes at once; the bytes that it took.

        Where somebody has removed the file, the journal goes on in its next part: offsets into the one
        that is gone are known under its name.

        Raises:
            OSError: it takes nothing.
        """
        if self._fd is not None and os.fstat(self._fd).st_nlink == 0:
            self.was_removed = True
            self._begin_next()
        taken = self._write(self.descriptor, data)
        self._bytes += taken
        return taken

    @property
    def is_full(self) -> bool:
        """The journal goes on in its next part."""
        return self._bytes >= self._sizes.part_bytes

    def turn(self) -> bytes:
        """Called between two lines: goes on in the next part where the current one is full.

        Returns lines to append before anything else: what is kept of a part that was removed.
        """
        if not self.is_full:
            return b""
        self._full[self.path] = self._bytes
        self._begin_next()
        return b"".join(self._make_room())

    def close(self) -> None:
        """Let go of the current part."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def _begin_next(self) -> None:
        self.close()
        self._number += 1
        self.path = part_path(self._first, self._number)
        self._bytes = 0

    def _make_room(self) -> Iterable[bytes]:
        """Remove parts until the next one fits under the bound; the lines to keep."""
        while sum(self._full.values()) + self._sizes.part_bytes > self._sizes.max_bytes:
            between = [path for path in self._full if path != self._first]
            held = [path for path in between if is_acknowledged(path, self._full[path])]
            for path in (held or between)[:1]:
                yield from self._removed(path, is_held=bool(held))
            if not between:
                return

    def _removed(self, path: Path, *, is_held: bool) -> list[bytes]:
        """Remove a part; its weighty lines, unless an exporter holds them."""
        del self._full[path]
        kept: list[bytes] = []
        try:
            if not is_held:
                kept = self._kept_of(path)
            path.unlink()
        except OSError:
            return kept
        acked_path(path).unlink(missing_ok=True)
        return kept

    def _kept_of(self, path: Path) -> list[bytes]:
        kept: deque[bytes] = deque()
        room = self._sizes.part_bytes * KEPT_SHARE
        with path.open("rb") as file:
            for line in file:
                self.lost_lines += 1
                if is_weighty(line):
                    kept.append(line)
                    room -= len(line)
                while room < 0:
                    room += len(kept.popleft())
        self.lost_lines -= len(kept)
        return list(kept)
