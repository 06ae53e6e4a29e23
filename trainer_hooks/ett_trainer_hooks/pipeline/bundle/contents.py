"""The content of a bundle: the compiler's artifacts and files of native code in one archive. Pure.

An archive is a ZIP with `artifacts` and `native/<path>`, nothing else. It is only opened after
its hash was checked, and even then nothing in it can name a file outside the folder that it is
unpacked to, or grow beyond the size that was allowed.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping

import msgspec

from ett_trainer_hooks.pipeline.bundle.entry import Entry, RefusedError

ARTIFACTS = "artifacts"
NATIVE = "native/"
LARGEST = 4 * 2**30
"""Bytes that a bundle may unpack to."""
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    OSError,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OverflowError,
    ValueError,
)
"""What the reader of archives raises, by its forms of compression."""
_PATH = re.compile(r"[A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}){1,3}")
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Contents(msgspec.Struct, frozen=True):
    """What a bundle holds: artifacts in torch's own form, and native files by path."""

    artifacts: bytes
    native: Mapping[str, bytes]

    def hashes(self) -> dict[str, str]:
        """SHA-256 of each native file."""
        return {path: hashlib.sha256(data).hexdigest() for path, data in self.native.items()}


def packed(contents: Contents) -> bytes:
    """The archive; the same contents give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(_member(ARTIFACTS), contents.artifacts)
        for path in sorted(contents.native):
            archive.writestr(_member(NATIVE + path), contents.native[path])
    return buffer.getvalue()


def unpacked(data: bytes, entry: Entry, largest: int = LARGEST) -> Contents:
    """What an archive holds, checked against its entry before anything in it is read.

    Raises:
        RefusedError: other bytes than the entry says, a path that leads out, too large, or no archive.
    """
    if len(data) != entry.size or hashlib.sha256(data).hexdigest() != entry.sha256:
        raise RefusedError("its content has been changed or cut short: the hash is another")
    return opened(data, largest)


def opened(data: bytes, largest: int = LARGEST) -> Contents:
    """What an archive from a trusted place holds.

    Raises:
        RefusedError: a path that leads out, too large, or no archive.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = _read(archive, largest)
    except RefusedError:
        raise
    except UNREADABLE as error:
        raise RefusedError(f"its content is no readable archive ({error})") from None
    if ARTIFACTS not in members:
        raise RefusedError("its content holds no artifacts")
    artifacts = members.pop(ARTIFACTS)
    return Contents(artifacts, {safe_path(name): content for name, content in members.items()})


def safe_path(member: str) -> str:
    """The path of a native file by the name of its member.

    >>> safe_path("native/ab/cab.main.so")
    'ab/cab.main.so'

    Raises:
        RefusedError: it is no plain path of two to four parts below `native/`.
    """
    path = member.removeprefix(NATIVE)
    if path == member or not _PATH.fullmatch(path):
        raise RefusedError(f"it holds a file at a place of its own: {member[:80]!r}")
    return path


def _read(archive: zipfile.ZipFile, largest: int) -> dict[str, bytes]:
    infos = archive.infolist()
    if sum(info.file_size for info in infos) > largest:
        raise RefusedError(f"it would unpack to more than {largest:,} bytes")
    members: dict[str, bytes] = {}
    for info in infos:
        if info.filename in members:
            raise RefusedError(f"it holds {info.filename[:80]!r} twice")
        with archive.open(info) as member:
            members[info.filename] = member.read(info.file_size)
    return members


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=_EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info
