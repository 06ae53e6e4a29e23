"""How often a torchrun agent has started this local rank: the same count on all nodes.

`TORCHELASTIC_RESTART_COUNT` counts only the failures of an agent's own workers. When a worker of
another node fails, this agent starts its workers anew as well, and leaves its count as it was
("membership changes do not count"), so that the nodes of one job disagree. Each start is therefore
noted in the scratch directory that torchrun makes for each agent (the one of
`TORCHELASTIC_ERROR_FILE`), one small file a local rank, written by that rank alone. Agents that were
there from the beginning count alike; one that joins later begins at 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

DEPTH = 3
"""The error file is `<agent>/attempt_<n>/<local rank>/error.json`."""


def starts_before(environ: Mapping[str, str], pid: int) -> int:
    """Starts of this local rank by its agent before that of process `pid`, which is noted.

    0 outside of torchrun, and where nothing can be noted.
    """
    path = _note(environ)
    if path is None:
        return 0
    before, latest = _read(path)
    if latest == pid:
        return before
    mine = before + 1 if latest is not None else 0
    try:
        fresh = path.with_name(f"{path.name}.{pid}")
        fresh.write_text(f"{mine} {pid}\n")
        fresh.replace(path)
    except OSError:
        return 0
    return mine


def _note(environ: Mapping[str, str]) -> Path | None:
    """Where the starts of this local rank are noted."""
    error_file, local_rank = environ.get("TORCHELASTIC_ERROR_FILE"), environ.get("LOCAL_RANK", "")
    if not error_file or not local_rank.isdecimal() or "TORCHELASTIC_RESTART_COUNT" not in environ:
        return None
    parents = Path(error_file).parents
    if len(parents) <= DEPTH or not parents[1].name.startswith("attempt_"):
        return None
    return parents[DEPTH - 1] / f"ett-starts-{local_rank}"


def _read(path: Path) -> tuple[int, int | None]:
    """Earlier starts and the process of the latest; (0, None) where there was none."""
    try:
        before, latest = path.read_text().split()
        return int(before), int(latest)
    except (OSError, ValueError):
        return 0, None
