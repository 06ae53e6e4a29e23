"""The job that both sides fold: a million steps of half a second, each reported alone.

Standard library only, since the peer runs in an environment of its own. Times are Unix seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

START = 1_764_000_000.0
INIT_S = 30.0
STEP_S = 0.5
WAIT_S = 0.05


def step_end(step: int) -> float:
    """When step number `step` (from 1) was completed."""
    return START + INIT_S + step * STEP_S


def progress(step: int) -> dict[str, Any]:
    """The report of one step."""
    work_s = STEP_S - WAIT_S
    return said(step + 1, step_end(step)) | {
        "kind": "progress",
        "step": step,
        "steps": 1,
        "samples": 256,
        "data_wait_s": WAIT_S,
        "step_seconds": {"count": 1, "sum": work_s, "max": work_s},
    }


def said(seq: int, moment: float) -> dict[str, Any]:
    """The envelope of an event of this job."""
    return {
        "v": 1, "job_id": "bench/million", "writer": "4f1c2a9be07d3358", "seq": seq, "attempt": 0, "rank": 0,
        "node": "n0", "time": moment,
    }  # fmt: skip


def events(steps: int) -> Iterator[dict[str, Any]]:
    """Everything the job said up to that step."""
    yield said(0, START) | {"kind": "attempt_start", "world_size": 1, "accelerators": 8}
    yield said(1, START + INIT_S) | {"kind": "first_batch", "step": 0}
    yield from map(progress, range(1, steps + 1))


def write_journal(path: Path, steps: int) -> None:
    """The job as a journal: one event a line."""
    with path.open("w") as file:
        for event in events(steps):
            file.write(json.dumps(event, separators=(",", ":")) + "\n")
