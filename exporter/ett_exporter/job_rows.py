"""From views of jobs to a row of each, and to what they are together: pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

from ett_core.fleet.recurrence import infra_failures
from ett_core.urgency import in_trouble
from ett_exporter.answer_types import CacheCounts, JobRow, JobsTogether
from ett_exporter.views import JobView

Fields: TypeAlias = dict[str, Any]

LABELS = ("team", "model", "cluster", "scheduler")


def job_row(view: JobView) -> JobRow:
    """One job in one row."""
    return JobRow(**row_fields(view))


def jobs_together(views: Iterable[JobView]) -> JobsTogether:
    """What all of these jobs are together."""
    accounts = [view.account for view in views]
    live = [account for account in accounts if not account.finished]
    return JobsTogether(
        states=dict(sorted(Counter(account.state for account in accounts).items())),
        live=len(live),
        in_trouble=sum(in_trouble(account) for account in live),
        unsaved_exposure_s=math.fsum(account.unsaved_exposure_s or 0.0 for account in live),
    )


def row_fields(view: JobView) -> Fields:
    """The fields of that row, for answers that say more of a job."""
    return {**_identity(view), **_time(view), **_progress(view), **_checkpoint_totals(view)}


def _identity(view: JobView) -> Fields:
    account, details = view.account, view.details
    return {
        "job_id": account.job_id,
        "job_name": view.label("job_name") or account.job_id,
        **{name: view.label(name) for name in LABELS},
        "purpose": view.purpose,
        "accelerator_type": details.accelerator_type,
        "accelerators": details.accelerators,
        "world_size": details.world_size,
    }


def _time(view: JobView) -> Fields:
    account = view.account
    return {
        "state": account.state,
        "state_since": account.state_since,
        "finished": account.finished,
        "start": account.start,
        "end": account.end,
        "wall_s": account.wall_s,
        "components": dict(account.components),
        "groups": account.groups,
        "ett_percent": account.ett_percent,
        "tts_s": account.tts_s,
        "ttr_s": account.ttr_s,
        "failures": len(account.failures),
        "infra_failures": infra_failures(view.diagnoses),
        "attempts": len(account.attempts),
        "unsaved_exposure_s": account.unsaved_exposure_s,
    }


def _progress(view: JobView) -> Fields:
    account = view.account
    return {
        "attempt": account.attempts[-1].attempt if account.attempts else None,
        "step": account.step,
        "samples": view.details.samples,
        "last_progress_at": account.last_progress_at,
        "last_event_at": account.last_event_at,
        "caches": {
            name: CacheCounts(total.hits, total.misses, total.bypasses)
            for name, total in view.details.caches.items()
        },
    }


def _checkpoint_totals(view: JobView) -> Fields:
    details = view.details
    durable = details.last_durable
    return {
        "checkpoint_blocking_s": details.checkpoint_blocking_s,
        "checkpoint_count": details.checkpoint_count,
        "last_durable_at": durable.time if durable else None,
        "last_durable_step": durable.step if durable else None,
    }
