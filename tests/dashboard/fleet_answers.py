"""Answers of the API about failures and regressions, made by hand: one failure, one outbreak, one node."""

from __future__ import annotations

from typing import Any

from ett_core.failures.judge import Diagnosis, Evidence
from ett_core.fleet.losses import Losses
from ett_core.fleet.nodes import Node
from ett_core.fleet.outbreaks import Outbreak
from ett_core.fleet.recurrence import Recurrence
from ett_core.fleet.regressions import Change, Regression
from ett_dashboard.failures.rows import FailureBucket, FailureDetail, FailureGroup
from ett_dashboard.regressions.rows import RunRow
from ett_dashboard.rows import EvidenceRow

AT = 1_764_000_000.0
ECC = "CUDA error: uncorrectable ECC error encountered"
ABORTED = "NCCL communicator was aborted on rank 0."


def diagnosis(**fields: Any) -> Diagnosis:
    said: dict[str, Any] = {
        "failure_class": "gpu_ecc",
        "domain": "infrastructure",
        "role": "root",
        "confidence": "certain",
        "retry": "after_remediation",
        "rank": 3,
        "node": "n7",
        "evidence": (
            Evidence("kernel", 1, AT - 2.0, "Xid 48", "root"),
            Evidence("failure", 1, AT, ECC, "root"),
            Evidence("failure", 1, AT + 1.0, ABORTED, "cascade"),
        ),
        "message": ECC,
    }
    return Diagnosis(**(said | fields))


def row(
    count: int, *, crash_loop: bool = False, same_node: bool = False, same_rank: bool = False
) -> Recurrence:
    return Recurrence(count, AT, crash_loop, same_node, same_rank, "after_remediation")


def failure(**fields: Any) -> FailureDetail:
    said: dict[str, Any] = {
        "attempt": 2,
        "time": AT,
        "rank": 3,
        "node": "n7",
        "exception": "RuntimeError",
        "message": ECC,
        "exit_code": 1,
        "signal": None,
        "status": None,
        "silent": False,
        "ttr_s": 90.0,
        "unsaved_s": 600.0,
        "fallback_step": 100,
        "resume_evidence": "reported",
        "id": "ads/a~2",
        "ending": "failed",
        "retry": "after_remediation",
        "recurrence": row(1),
        "losses": Losses(600.0, 0.0, 90.0, 30.0, 8),
        "lost_accelerator_s": 5280.0,
        "cost": None,
        "job_id": "ads/a",
        "job_name": "ads",
        "cause": f"RuntimeError: {ECC}",
        "diagnosis": diagnosis(),
        "as_of": AT + 600.0,
        "evidence": [
            EvidenceRow(time=AT + 1.0, rank=0, node="n8", source="failure", text=f"Traceback\n  {ABORTED}"),
            EvidenceRow(time=AT, rank=3, node="n7", source="failure", text=ECC),
            EvidenceRow(time=AT - 2.0, rank=-1, node="n7", source="kernel", text="Xid 48"),
            EvidenceRow(time=AT + 5.0, rank=9, node="n9", source="stderr", text="bye"),
        ],
    }
    return FailureDetail(**(said | fields))


def group(key: str, hours: float, count: int = 1, **fields: Any) -> FailureGroup:
    return FailureGroup(key=key, count=count, jobs=1, lost_accelerator_s=hours * 3600.0, **fields)


def bucket(begin: float, **counts: int) -> FailureBucket:
    lost = {name: 3600.0 * count for name, count in counts.items()}
    return FailureBucket(begin=begin, end=begin + 3600.0, counts=counts, lost_accelerator_s=lost)


def outbreak(**fields: Any) -> Outbreak:
    said: dict[str, Any] = {
        "failure_class": "object_store",
        "domain": "infrastructure",
        "since": AT,
        "until": AT + 7200.0,
        "jobs": 9,
        "owners": ["ads", "feed"],
        "clusters": ["c"],
        "rate": 0.2,
        "baseline": 0.01,
        "factor": 20.0,
        "probability": 1e-9,
        "log_likelihood_ratio": 20.0,
        "lost_accelerator_s": 36000.0,
    }
    return Outbreak(**(said | fields))


def node(**fields: Any) -> Node:
    said: dict[str, Any] = {
        "node": "n7",
        "cluster": "c",
        "failures": 4,
        "counted": 3,
        "jobs": 3,
        "node_hours": 38.0,
        "expected": 0.002,
        "probability": 1.8e-5,
        "suspect": True,
        "classes": {"gpu_ecc": 3, "object_store": 1},
        "last_failure": AT,
        "lost_accelerator_s": 7200.0,
    }
    return Node(**(said | fields))


def run(job_id: str, start: float, family: str = "m", **figures: float) -> RunRow:
    return RunRow(job_id=job_id, attempt=0, start=AT + start, family=family, figures=figures)


def regression(**fields: Any) -> Regression:
    said: dict[str, Any] = {
        "family": "m",
        "figure": "time_to_start",
        "unit": "s",
        "since": AT + 100.0,
        "before": 75.0,
        "after": 150.0,
        "factor": 2.0,
        "jobs_before": 9,
        "jobs_after": 5,
        "families": 1,
        "probability": 0.0005,
        "changed": [Change("torch", ["2.12.0"], ["2.13.0"])],
    }
    return Regression(**(said | fields))
