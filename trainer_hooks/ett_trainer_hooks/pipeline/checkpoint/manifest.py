"""What a checkpoint consists of: the manifest, which is written last, and the check against it.

Hashes are XXH3 of 128 bits of whole files, as `xxh128sum` prints them: they find what disks, networks
and interrupted copies do to files, not what an attacker does. Files are read side by side; the
hash releases the interpreter.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec
import xxhash

from ett_trainer_hooks.pipeline.side_by_side import side_by_side

FORMAT = 1
NAME = "manifest.json"
WORKERS = 8
"""Files that are read at once."""
CHUNK = 4 << 20
NAMED = 3
"""Faults that a message names, of those found."""


class DamagedError(Exception):
    """A checkpoint is not what was committed; the message says in what."""


class ForeignError(DamagedError):
    """Another version of this library wrote it: no use here, and no reason to take it away."""


class FileMark(msgspec.Struct, frozen=True):
    """A file as it was when it was committed."""

    size: int
    xxh128: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A committed checkpoint.

    `sequence` grows with every commit of a store, also where training went back to an earlier step;
    `commit` is unlike that of any other commit. `files` by their path below the directory.
    """

    step: int
    sequence: int
    commit: str
    world_size: int
    made_at: float
    metrics: dict[str, float]
    files: dict[str, FileMark]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(mark.size for mark in self.files.values())


class _Sealed(msgspec.Struct, frozen=True):
    format: int
    xxh128: str
    body: msgspec.Raw


def encoded(manifest: Manifest) -> bytes:
    """The manifest as a file, with its own hash."""
    body = msgspec.json.encode(manifest)
    return msgspec.json.encode(_Sealed(FORMAT, xxhash.xxh3_128_hexdigest(body), msgspec.Raw(body)))


def decoded(data: bytes) -> Manifest:
    """The manifest that a file holds.

    Raises:
        DamagedError: it was changed, cut short, or (ForeignError) written by another version.
    """
    try:
        sealed = msgspec.json.decode(data, type=_Sealed)
        if sealed.format != FORMAT:
            raise ForeignError(f"its manifest has format {sealed.format}; this version reads {FORMAT}")
        if xxhash.xxh3_128_hexdigest(bytes(sealed.body)) != sealed.xxh128:
            raise DamagedError("its manifest was changed")
        return msgspec.json.decode(sealed.body, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedError(f"its manifest cannot be read: {error}") from error


def read(directory: Path) -> Manifest:
    """The manifest of the checkpoint in a directory.

    Raises:
        DamagedError: there is none that can be used.
        OSError: the store cannot be read now.
    """
    try:
        return decoded((directory / NAME).read_bytes())
    except FileNotFoundError:
        raise DamagedError("it has no manifest") from None


def mark(path: Path, *, sync: bool = False) -> FileMark:
    """Size and hash of a file; with `sync` it has also reached the disk."""
    digest, size, buffer = xxhash.xxh3_128(), 0, memoryview(bytearray(CHUNK))
    with path.open("rb", buffering=0) as file:
        if sync:
            os.fsync(file.fileno())
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
            size += count
    return FileMark(size, digest.hexdigest())


def marks(
    directory: Path, names: Iterable[str], *, workers: int = WORKERS, sync: bool = False
) -> dict[str, FileMark]:
    """Sizes and hashes of files below a directory, by name."""
    wanted = sorted(names)
    found = side_by_side(
        partial(mark, sync=sync), [directory / name for name in wanted], workers, "checkpoint hash"
    )
    return dict(zip(wanted, found, strict=True))


def names_in(directory: Path) -> set[str]:
    """All files below a directory but its manifest."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix() for path in files} - {NAME}


def wrong(directory: Path, files: Mapping[str, FileMark]) -> dict[str, FileMark]:
    """Those of the files that are not as they were committed; the others have also reached the disk."""
    there = [name for name, mark in files.items() if size_of(directory / name) == mark.size]
    found = marks(directory, there, sync=True)
    return {name: mark for name, mark in files.items() if found.get(name) != mark}


def check(directory: Path, files: Mapping[str, FileMark], *, workers: int = WORKERS) -> None:
    """Every file is there as it was committed; files that were put there later do no harm.

    Raises:
        DamagedError: one is missing, cut short, or changed.
        OSError: the store cannot be read now.
    """
    sizes = {name: size_of(directory / name) for name in files}
    faults = [text for name, mark in files.items() if (text := _length_fault(name, mark, sizes[name]))]
    if not faults:  # only then is it worth to read them
        found = marks(directory, files, workers=workers)
        faults = [f"{name} was changed" for name, mark in files.items() if found[name] != mark]
    if faults:
        raise DamagedError(summary(faults))


def strangers(directory: Path, files: Mapping[str, FileMark]) -> list[str]:
    """Files in a directory that are not among these, such as those of another world size."""
    return sorted(names_in(directory) - set(files))


def summary(faults: list[str]) -> str:
    """The first faults in words, and how many more there are.

    >>> summary(["a is missing", "b was changed"])
    'a is missing, b was changed'
    >>> summary([f"{name} is missing" for name in "abcde"])
    'a is missing, b is missing, c is missing and 2 more'
    """
    more = f" and {len(faults) - NAMED} more" if len(faults) > NAMED else ""
    return ", ".join(faults[:NAMED]) + more


def size_of(path: Path) -> int | None:
    """Bytes of a file; None where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _length_fault(name: str, mark: FileMark, size: int | None) -> str | None:
    if size is None:
        return f"{name} is missing"
    return None if size == mark.size else f"{name} has {size} of {mark.size} bytes"
