"""Which step a file holds that this job has saved: known by the file itself, not by its name.

One line a save, in a file beside the journals: device, inode, size and time of the last change, and
the step. A rename keeps them, a copy or a later change does not. Every rank appends (one short
write each, which the operating system does not mix up) and reads when it loads.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

NAME = "steps-of-saves"
METADATA = ".metadata"
"""The file that makes a directory a distributed checkpoint."""
READ_BYTES = 1 << 20


def note(directory: Path, target: Any, step: int) -> None:  # noqa: ANN401 - a path or an open file
    """Remember that `target` holds `step`; not where either place is out of reach."""
    if (mark := mark_of(target)) is not None:
        with suppress(OSError), (directory / NAME).open("ab") as ledger:
            ledger.write(f"{mark} {step}\n".encode())


def step_of(directory: Path, target: Any) -> int | None:  # noqa: ANN401 - a path or an open file
    """The step that `target` was saved at, None where this job did not save it as it is."""
    mark = mark_of(target)
    try:
        with (directory / NAME).open("rb") as ledger:
            ledger.seek(-min(READ_BYTES, ledger.seek(0, os.SEEK_END)), os.SEEK_END)
            lines = ledger.read().decode(errors="replace").splitlines()
    except OSError:
        return None
    steps = [line.rpartition(" ")[2] for line in lines if mark is not None and line.startswith(f"{mark} ")]
    return int(steps[-1]) if steps and steps[-1].isdecimal() else None


def mark_of(target: Any) -> str | None:  # noqa: ANN401 - a path or an open file
    """What tells a file from all others, and from itself after a change; None where there is none.

    That of a directory is that of the file which makes it a distributed checkpoint.
    """
    try:
        found = os.stat(target if isinstance(target, str | os.PathLike) else target.fileno())  # noqa: PTH116
        if stat.S_ISDIR(found.st_mode):
            found = (Path(target) / METADATA).stat()
    except (AttributeError, OSError, ValueError):
        return None
    return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns}"
