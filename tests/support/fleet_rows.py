"""Rows made by hand, for what holds of few of them."""

from __future__ import annotations

from typing import Any

from ett_core.fleet.losses import Losses
from ett_core.fleet.recurrence import Recurrence
from ett_core.fleet.rows import TIME_TO_START, Failure, Run

HOUR = 3600.0


def run(job_id: str, start: float, *, hours: float = 10.0, **fields: Any) -> Run:
    said: dict[str, Any] = {
        "attempt": 0,
        "end": start + hours * HOUR,
        "family": "m",
        "cluster": "c",
        "owner": "t",
        "accelerator_type": "H200",
        "world_size": 8,
        "nodes": frozenset(),
        "versions": {},
        "config_hash": "",
        "figures": {TIME_TO_START: 100.0},
    }
    return Run(job_id=job_id, start=start, **(said | fields))


def failure(job_id: str, time: float, **fields: Any) -> Failure:
    row = fields.pop("count", 1)
    said: dict[str, Any] = {
        "id": f"{job_id}~{time}",
        "job_name": job_id,
        "attempt": 0,
        "ending": "failed",
        "failure_class": "gpu_ecc",
        "domain": "infrastructure",
        "role": "root",
        "confidence": "certain",
        "retry": "after_remediation",
        "rank": 0,
        "node": "",
        "message": "",
        "team": job_id,
        "model": "m",
        "cluster": "c",
        "accelerator_type": "H200",
        "losses": Losses(10.0, 0.0, 90.0, 0.0, 8),
        "ttr_s": 90.0,
        "recurrence": Recurrence(
            row, time, crash_loop=row > 1, same_node=False, same_rank=False, retry="after_remediation"
        ),
    }
    return Failure(job_id=job_id, time=time, **(said | fields))
