"""How often a torchrun agent has started this local rank: the same count on all nodes.

`TORCHELASTIC_RESTART_COUNT` counts only the failures of an agent's own workers. When a worker of
another node fails, this agent starts its workers anew as well, and leaves its count as it was
("membership changes do not count"), so that the nodes of one job disagree. Each start is therefore
noted in the scratch directory that torchrun makes for each agent (the one of
`TORCHELASTIC_ERROR_FILE`), one small file a local rank. Agents that were there from the beginning
count alike; one that joins later begins at 0.

A start is noted by the first process that asks: at the start of the interpreter where the automatic
part is on the path (this file is then loaded by itself: the standard library only), else by the
recorder. While that process lives, whoever else asks (it again, its children) belongs to its start.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # the module of that name takes time to import
if TYPE_CHECKING:
    from collections.abc import Mapping

START_TICKS, STATE = 19, 0
"""Places in `/proc/<pid>/stat` behind the name."""


def starts_before(environ: Mapping[str, str], pid: int, proc: str = "/proc") -> int:
    """Starts of this local rank by its agent before the one that process `pid` belongs to, which is noted.

    0 outside of torchrun, and where nothing can be noted.
    """
    path = _note(environ)
    if not path:
        return 0
    before, latest, ticks = _read(path)
    if latest is not None and (latest == pid or (ticks and ticks == _start_ticks(latest, proc))):
        return before
    mine = before + 1 if latest is not None else 0
    fresh = f"{path}.{pid}"
    try:
        with open(fresh, "w") as file:  # noqa: PTH123 - pathlib takes time to import
            file.write(f"{mine} {pid} {_start_ticks(pid, proc)}\n")
        os.replace(fresh, path)  # noqa: PTH105
    except OSError:
        return 0
    return mine


def _note(environ: Mapping[str, str]) -> str:
    """Where the starts of this local rank are noted; nothing where torchrun did not start it.

    >>> _note({"TORCHELASTIC_ERROR_FILE": "/tmp/run/attempt_0/1/error.json", "LOCAL_RANK": "1",
    ...        "TORCHELASTIC_RESTART_COUNT": "0"})
    '/tmp/run/ett-starts-1'
    """
    error_file, local_rank = environ.get("TORCHELASTIC_ERROR_FILE", ""), environ.get("LOCAL_RANK", "")
    parts = error_file.split("/")
    if "TORCHELASTIC_RESTART_COUNT" not in environ or not local_rank.isdecimal():
        return ""
    agent, of_attempt = parts[:-3], parts[-3:-2]
    if len(agent) <= 1 or not of_attempt[0].startswith("attempt_"):
        return ""
    return "/".join([*agent, f"ett-starts-{local_rank}"])


def _read(path: str) -> tuple[int, int | None, int]:
    """Earlier starts, the process of the latest (None before the first) and when that started."""
    try:
        with open(path) as file:  # noqa: PTH123
            before, latest, ticks = file.read().split()
        return int(before), int(latest), int(ticks)
    except (OSError, ValueError):
        return 0, None, 0


def _start_ticks(pid: int, proc: str) -> int:
    """Start of a live process in clock ticks since boot; 0 where it is gone or a zombie."""
    try:
        with open(f"{proc}/{pid}/stat") as file:  # noqa: PTH123
            fields = file.read().rpartition(")")[2].split()
        return 0 if fields[STATE] in "ZX" else int(fields[START_TICKS])
    except (OSError, ValueError, IndexError):
        return 0
