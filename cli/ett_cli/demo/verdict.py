"""Whether the demo showed what it promises: each check is one sentence and whether it holds.

Pure. Nothing is taken on trust: the answer of the exporter is compared with an account that is
computed anew from the journals on disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ett_core.accounting import JobAccount

Check: TypeAlias = tuple[bool, str]

WALL_TOLERANCE_S = 1e-6
AGREEMENT_S = 1e-3


def verdict(
    job: Mapping[str, Any], recomputed: JobAccount | None, series: Mapping[str, float]
) -> list[Check]:
    """All checks of a finished job.

    Args:
        job: what the query API says.
        recomputed: the account of the journals.
        series: seconds by component on /metrics.
    """
    return [
        *recovery_checks(job),
        *partition_checks(job),
        agreement(job, recomputed),
        metrics_check(job, series),
    ]


def recovery_checks(job: Mapping[str, Any]) -> list[Check]:
    """It succeeded after at least one failure, and continued from a durable checkpoint."""
    steps = [failure["fallback_step"] for failure in job["failure_list"]]
    recovered = bool(job["ttr_s"]) and None not in job["ttr_s"]
    times = ", ".join("never" if ttr_s is None else f"{ttr_s:.1f} s" for ttr_s in job["ttr_s"])
    return [
        (job["state"] == "succeeded", f"the job succeeded (it says: {job['state']})"),
        (recovered, f"every failure was recovered from (times to recover: {times or 'there was none'})"),
        (
            any(steps),
            f"it resumed from a durable checkpoint (to step {', '.join(map(str, steps)) or 'none'})",
        ),
    ]


def partition_checks(job: Mapping[str, Any]) -> list[Check]:
    """The components add up to the wall time, and training is among them."""
    total = sum(job["components"].values())
    off_s = abs(total - job["wall_s"])
    trained_s = job["components"].get("training", 0.0)
    return [
        (off_s <= WALL_TOLERANCE_S, f"the components add up to the wall time (off by {off_s:.1e} s)"),
        (trained_s > 0, f"training was observed ({trained_s:.1f} s)"),
    ]


def agreement(job: Mapping[str, Any], recomputed: JobAccount | None) -> Check:
    """The exporter's components equal those of the journals."""
    if recomputed is None:
        return False, "the journals hold no event of the job"
    off_s = largest_difference(job["components"], recomputed.components)
    return off_s <= AGREEMENT_S, f"the journals give the same account as the exporter (off by {off_s:.1e} s)"


def metrics_check(job: Mapping[str, Any], series: Mapping[str, float]) -> Check:
    """/metrics shows the same partition."""
    off_s = largest_difference(job["components"], series)
    return bool(series) and off_s <= AGREEMENT_S, f"/metrics shows the same partition (off by {off_s:.1e} s)"


def largest_difference(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """The largest difference between two sets of seconds by component.

    >>> largest_difference({"training": 3.0, "other": 1.0}, {"training": 3.5})
    1.0
    """
    return max((abs(one.get(name, 0.0) - other.get(name, 0.0)) for name in {*one, *other}), default=0.0)


def failed(checks: Sequence[Check]) -> list[str]:
    """The sentences that do not hold."""
    return [sentence for holds, sentence in checks if not holds]
