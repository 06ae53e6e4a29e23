"""The flight recorder of torch (its record of collective operations), asked for from outside.

A rank of a job that sets `TORCH_NCCL_DEBUG_INFO_PIPE_FILE` waits at a named pipe of its own and,
when something is written there, puts what it has recorded into a file. The file is a pickle of
whoever wrote it: it is named here and never loaded.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ett_trainer_hooks.procfs import PROC, environment

PIPE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
DUMPS = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""Where dumps go, the first that is set; the rank is put behind it."""
READER = "python -m torch.distributed.flight_recorder.fr_trace"
POLL_S = 0.1


def dump_of(
    pid: int,
    rank: int,
    *,
    patience_s: float = 5.0,
    proc: Path = PROC,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """A sentence on the dump of a rank, asked for where it can be; empty where there is none.

    Args:
        pid: the process of the rank.
        rank: its global rank.
        patience_s: seconds to wait for a dump that was asked for.
        proc: the root of `/proc`.
        sleep: waits so many seconds.
    """
    environ = environment(pid, proc)
    dump, pipe = dump_path(environ, rank), pipe_path(environ, rank)
    known = before = _written(_inside(pid, dump, proc))
    asked = pipe is not None and _poke(_inside(pid, pipe, proc))
    if asked:
        for _ in range(round(patience_s / POLL_S)):
            sleep(POLL_S)
            now = _written(_inside(pid, dump, proc))
            if now not in (None, known) and now == before:  # nothing more of it comes
                return f"flight recorder: dumped to {dump} ({READER} reads it)"
            before = now
    if known is not None:
        return f"flight recorder: an earlier dump is in {dump} ({READER} reads it)"
    return f"flight recorder: asked by {pipe}, no dump came within {patience_s:g} s" if asked else ""


def pipe_path(environ: Mapping[str, str], rank: int) -> Path | None:
    """The pipe at which a rank waits to be asked for a dump; None where it was not told to.

    >>> pipe_path({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "/tmp/ask_"}, 3)
    PosixPath('/tmp/ask_3.pipe')
    """
    stem = environ.get(PIPE)
    return Path(f"{stem}{rank}.pipe") if stem else None


def dump_path(environ: Mapping[str, str], rank: int) -> Path:
    """The file into which a rank dumps.

    >>> dump_path({"TORCH_FR_DUMP_TEMP_FILE": "/tmp/trace_"}, 3)
    PosixPath('/tmp/trace_3')
    >>> dump_path({"HOME": "/home/me"}, 3)
    PosixPath('/home/me/.cache/torch/comm_lib_trace_rank_3')
    """
    for name in DUMPS:
        if stem := environ.get(name):
            return Path(f"{stem}{rank}")
    cache = environ.get("XDG_CACHE_HOME") or f"{environ.get('HOME', '')}/.cache"
    return Path(cache, f"torch/comm_lib_trace_rank_{rank}")


def _inside(pid: int, path: Path, proc: Path) -> Path:
    """A path as the process sees it: its own root, and its own directory for one that is relative."""
    home = proc / str(pid)
    return home / "root" / path.relative_to("/") if path.is_absolute() else home / "cwd" / path


def _written(path: Path) -> tuple[int, int] | None:
    """When a file was last written and its bytes; None of one that is not there or still empty."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size) if found.st_size else None


def _poke(pipe: Path) -> bool:
    """Write to a named pipe at which somebody waits; False for anything else, at once."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode) and os.write(descriptor, b"dump\n") > 0
    except OSError:
        return False
    finally:
        os.close(descriptor)
