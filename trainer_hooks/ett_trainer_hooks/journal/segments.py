"""Segments: whole lines of one journal, from the offset that was acknowledged last.

The offsets lie beside the journal in `<journal>.acked`, one line an exporter: bytes, a space, its
address. A line without an address holds for every exporter. The file is replaced atomically, only
after an exporter said that the lines are durable. A reader of files; it never touches the journals.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import msgspec

SEGMENT_BYTES = 1 << 20
TAIL_BYTES = 1 << 16
ANY_EXPORTER = ""
"""Stands for the exporter in a line of `.acked` that names none."""


class Segment(msgspec.Struct, frozen=True):
    """Whole lines of a journal: `data` begins at byte `start`, the next segment at `end`.

    `data` is empty where a single line is longer than a segment may be; it is passed over.
    """

    journal: Path
    start: int
    end: int
    data: bytes


def journals_in(directory: Path) -> list[Path]:
    """The journals of a directory, in the order of their names; none where it does not exist."""
    return sorted(directory.glob("*.jsonl"))


def journals_below(directory: Path) -> list[Path]:
    """The journals of a directory and of those in it, at any depth."""
    return sorted(path for path in directory.rglob("*.jsonl") if path.is_file())


def packed_journals_below(directory: Path) -> list[Path]:
    """The journals that were packed by gzip, at any depth."""
    return sorted(path for path in directory.rglob("*.jsonl.gz") if path.is_file())


def packed_below(directory: Path, exporter: str) -> list[Path]:
    """Journals at any depth that were packed by gzip before `exporter` acknowledged any of their lines.

    The shipper sends none that is packed. Where the plain one lies beside it, that is sent.
    """
    plain = {path: path.with_suffix("") for path in packed_journals_below(directory)}
    return [
        path
        for path, journal in plain.items()
        if not journal.exists() and not acked_offset(journal, exporter)
    ]


def acked_path(journal: Path) -> Path:
    """The file that holds the acknowledged offset of a journal."""
    return journal.with_name(journal.name + ".acked")


def acked_offsets(journal: Path) -> dict[str, int]:
    """Bytes of a journal by the exporter that has acknowledged them; what cannot be read is not there."""
    try:
        lines = acked_path(journal).read_text().splitlines()
    except (OSError, ValueError):
        return {}
    parts = [line.partition(" ") for line in lines]
    return {exporter: int(digits) for digits, _, exporter in parts if digits.isdecimal()}


def acked_offset(journal: Path, exporter: str) -> int:
    """Bytes of a journal that `exporter` has acknowledged; 0 where that is not known."""
    offsets = acked_offsets(journal)
    return offsets.get(exporter, offsets.get(ANY_EXPORTER, 0))


def held_bytes(journal: Path, exporter: str, size: int) -> int:
    """Bytes of a journal of this size that `exporter` holds; none of one that somebody has cut since."""
    offset = acked_offset(journal, exporter)
    return offset if offset <= size else 0


def acknowledge(journal: Path, exporter: str, offset: int) -> None:
    """Remember that `exporter` holds a journal up to `offset`."""
    offsets = {**acked_offsets(journal), exporter: offset}
    offsets.pop(ANY_EXPORTER, None)
    path = acked_path(journal)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text("".join(f"{bytes_held} {name}\n" for name, bytes_held in offsets.items()))
    fresh.replace(path)


def next_segment(journal: Path, exporter: str, limit: int = SEGMENT_BYTES) -> Segment | None:
    """The next whole lines to send to `exporter`, at most `limit` bytes; None where there are none yet.

    A torn last line waits until it is whole, which it may never be.
    """
    try:
        file = journal.open("rb")
    except FileNotFoundError:
        return None
    with file:
        start = held_bytes(journal, exporter, os.fstat(file.fileno()).st_size)
        file.seek(start)
        chunk = file.read(limit)
        length = chunk.rfind(b"\n") + 1
        if length:
            return Segment(journal, start, start + length, chunk[:length])
        if len(chunk) < limit:
            return None
        rest = file.readline()
        if not rest.endswith(b"\n"):
            return None
        return Segment(journal, start, file.tell(), b"")


def halved(segment: Segment) -> Segment | None:
    r"""About the first half of the lines of a segment; None where it is a single line.

    >>> halved(Segment(Path("j"), 10, 16, b"a\nb\nc\n")).data
    b'a\n'
    """
    lines = segment.data.splitlines(keepends=True)
    if len(lines) < 2:  # noqa: PLR2004 - one line has no halves
        return None
    data = b"".join(lines[: len(lines) // 2])
    return Segment(segment.journal, segment.start, segment.start + len(data), data)


def unsent_bytes(journal: Path, exporter: str) -> int:
    """Bytes of whole lines that `exporter` has not acknowledged; 0 where the journal cannot be read."""
    try:
        with journal.open("rb") as file:
            whole = whole_lines_bytes(file)
            return whole - held_bytes(journal, exporter, whole)
    except OSError:
        return 0


def whole_lines_bytes(file: BinaryIO) -> int:
    r"""Bytes of a file up to its last line end, however long it is; read from its end.

    >>> import io
    >>> whole_lines_bytes(io.BytesIO(b"one\ntwo\nthr")), whole_lines_bytes(io.BytesIO(b"one"))
    (8, 0)
    """
    end = file.seek(0, os.SEEK_END)
    while end:
        begin = max(end - TAIL_BYTES, 0)
        file.seek(begin)
        if length := file.read(end - begin).rfind(b"\n") + 1:
            return begin + length
        end = begin
    return 0
