"""What stays of journals that were removed: the latest attempt of each job, so that no number comes twice.

    pruned.attempts, beside the journals    {"team/run": 2000, "nightly": 0}

One process removes journals at a time; any may read.
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import msgspec

from ett_core.events import AnyEvent, decode

NAME = "pruned.attempts"


def first_event(journal: Path) -> AnyEvent | None:
    """The first event of a journal, packed or not; None where it cannot be read."""
    opened = gzip.open if journal.suffix == ".gz" else open
    try:
        with opened(journal, "rb") as lines:
            return decode(lines.readline())
    except (OSError, EOFError, zlib.error, ValueError):  # not to be read, torn, or of another version
        return None


def note_attempt(directory: Path, event: AnyEvent) -> None:
    """Keep the attempt of an event of a journal in `directory` that is about to be removed.

    Raises:
        OSError: it cannot be written.
    """
    known = _read(directory / NAME)
    if known.get(event.job_id, -1) >= event.attempt:
        return
    known[event.job_id] = event.attempt
    beside = directory / f"{NAME}.new"
    with beside.open("wb") as file:
        file.write(msgspec.json.encode(known))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(directory / NAME)


def pruned_attempts(directory: Path, job_id: str) -> list[int]:
    """The latest attempts of a job in the journals that were removed from a directory and those below it."""
    found = (_read(path).get(job_id) for path in directory.rglob(NAME))
    return [attempt for attempt in found if attempt is not None]


def _read(path: Path) -> dict[str, int]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, int])
    except (OSError, msgspec.DecodeError):  # there is none, or it is of somebody else
        return {}
