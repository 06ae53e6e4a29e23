"""Removing journals that an exporter holds and that nobody writes any more.

Called by `ett ship --once --prune-hours`, by one process at a time and never by a trainer. A journal is
removed as a whole, with all its parts and offsets; the number of its attempt stays, so that none comes twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from ett_trainer_hooks.journal.parts import first_part, is_acknowledged, pid_of
from ett_trainer_hooks.journal.pruned import first_event, note_attempt
from ett_trainer_hooks.journal.segments import acked_offset, acked_path, whole_lines_bytes
from ett_trainer_hooks.procfs import process_of

HOUR_S = 3600.0


def prune(journals: Iterable[Path], exporter: str, before: float, proc: Path = Path("/proc")) -> list[Path]:
    """Remove the journals that are over; where they began.

    A journal is over where `exporter`, and every other one that it was sent to, holds all its whole
    lines, no part was written after Unix seconds `before`, and no process here has its pid.

    Raises:
        OSError: a file cannot be read, written or removed.
    """
    removed = []
    for first, parts in groupby(sorted(journals, key=lambda path: (first_part(path), path)), key=first_part):
        members = list(parts)
        pid = pid_of(first)
        is_alive = pid is not None and process_of(pid, proc) is not None
        if not is_alive and all(_is_over(part, exporter, before) for part in members):
            begun = first_event(first)
            if begun is not None:
                note_attempt(first.parent, begun)
            for part in members:
                part.unlink()
                acked_path(part).unlink(missing_ok=True)
            removed.append(first)
    return removed


def _is_over(part: Path, exporter: str, before: float) -> bool:
    with part.open("rb") as file:
        size = whole_lines_bytes(file)
    is_held = acked_offset(part, exporter) == size and is_acknowledged(part, size)
    return is_held and part.stat().st_mtime < before
