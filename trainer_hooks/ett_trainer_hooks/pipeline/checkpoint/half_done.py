"""Directories and files of a store that have no final name, and how they go: at once, then their bytes.

step_400.3-5f0c2a11.partial   being written by the holder of the third lease, 0 where there is none
latest.3-77aa0b1c.partial     the same
step_400.old, step_400.gone   replaced, and being removed
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

PARTIAL, OLD, GONE = ".partial", ".old", ".gone"
_WRITTEN = re.compile(r"(?:step_\d+|latest)\.(?:(\d+)-)?[0-9a-f]+\.partial")


def partial(root: Path, name: str, number: int) -> Path:
    """A new path for what the holder of a lease writes, and gets its name later."""
    return root / f"{name}.{number}-{token_hex(4)}{PARTIAL}"


def written(root: Path, through: int | None) -> list[Path]:
    """What is being written, or was: all of it, or that of the holders of leases `through` a number."""
    found = [(_WRITTEN.fullmatch(path.name), path) for path in root.glob(f"*{PARTIAL}")]
    return [path for match, path in found if match and (through is None or int(match[1] or 0) <= through)]


def take_away(path: Path) -> None:
    """At once, whatever still writes into it; its bytes as far as that is possible.

    Raises:
        OSError: it stays where it is.
    """
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    gone = beside(path, GONE)
    with suppress(FileNotFoundError):  # its writer was faster
        path.replace(gone)
    shutil.rmtree(gone, ignore_errors=True)


def clear(root: Path, through: int | None) -> None:
    """Take away what interrupted saves have left, of the holders of leases `through` a number, or of all.

    What a checkpoint was before it was written again gets its name back where the new one has it not.

    Raises:
        OSError: it stays.
    """
    for old in root.glob(f"step_*{OLD}"):
        final = old.with_name(old.name.removesuffix(OLD))
        if not final.exists():
            old.replace(final)
    for left_over in written(root, through):
        take_away(left_over)
    for kind in (OLD, GONE):
        for left_over in root.glob(f"step_*{kind}"):
            shutil.rmtree(left_over, ignore_errors=True)


def remove(directory: Path) -> None:
    """Take a directory away under another name, so that half of it is never taken for a checkpoint."""
    if not directory.exists():
        return
    gone = directory if directory.name.endswith(GONE) else beside(directory, GONE)
    shutil.rmtree(gone, ignore_errors=True)
    directory.replace(gone)
    shutil.rmtree(gone)


def beside(path: Path, kind: str) -> Path:
    """The path of a kind that belongs to a final one."""
    return path.with_name(path.name + kind)
