"""From views of jobs to the JSON objects of the query API: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import msgspec

from ett_core.accounting import AttemptAccount, FailureAccount, Stretch
from ett_core.accounting.account import seconds
from ett_core.causes import cause_of
from ett_core.components import area_seconds
from ett_core.details import EvidenceLine
from ett_core.failures import Diagnosis
from ett_core.interference import as_object
from ett_exporter.live import JobPage, JobView

Json: TypeAlias = dict[str, Any]

STRETCHES_SHOWN = 2000
LABELS = ("team", "model", "cluster", "scheduler")


def jobs_answer(views: Sequence[JobView], now: float) -> Json:
    """All jobs as of `now`."""
    return {"as_of": now, "jobs": [job_answer(view) for view in views]}


def job_answer(view: JobView) -> Json:
    """One job in one row."""
    return {**_identity(view), **_time(view), **_progress(view), **_checkpoint_totals(view)}


def page_answer(page: JobPage) -> Json:
    """One job in full."""
    account, details = page.view.account, page.view.details
    return {
        "as_of": account.as_of,
        **job_answer(page.view),
        "attempt_list": [_attempt(attempt) for attempt in account.attempts],
        "failure_list": [
            _failure(failure, page.evidence.get(failure.attempt, ()), diagnosis)
            for failure, diagnosis in zip(account.failures, page.view.diagnoses, strict=True)
        ],
        "timeline": [_stretch(stretch) for stretch in coarsened(page.timeline)],
        "checkpoints": [msgspec.structs.asdict(checkpoint) for checkpoint in page.checkpoints],
        "compile": details.compile_s,
        "hidden": _sum_of(attempt.hidden for attempt in account.attempts),
        "counters": details.counters,
        "step_times": None if details.step_times is None else msgspec.structs.asdict(details.step_times),
        "stalls": page.stalls,
        "stragglers": page.stragglers,
        "step_spread": page.step_spread,
        "async_saves": as_object(page.async_saves),
        "versions": details.versions,
        "labels": details.labels,
        "config_hash": details.config_hash,
        "nodes": page.nodes,
        "areas": {area: s for area, s in area_seconds(account.components).items() if s},
        "resume_evidence": account.resume_evidence,
        "not_saved": account.not_saved,
    }


def coarsened(timeline: Sequence[Stretch], limit: int = STRETCHES_SHOWN) -> list[Stretch]:
    """A timeline of about `limit` stretches at most: neighbours of one attempt are joined.

    Amounts stay exact. A long timeline is cut into `limit` equal spans, and stretches that begin
    in the same span are joined; a shorter part of it, asked for alone, comes in full.
    """
    if len(timeline) <= limit:
        return list(timeline)
    begin_ns = timeline[0].start_ns
    span_ns = (timeline[-1].end_ns - begin_ns) // limit + 1
    groups = groupby(timeline, key=lambda s: (s.attempt, (s.start_ns - begin_ns) // span_ns))
    return [_joined(list(members)) for _, members in groups]


def _joined(stretches: Sequence[Stretch]) -> Stretch:
    amounts: Counter[str] = Counter()
    for stretch in stretches:
        amounts.update(dict(stretch.shares))
    first, last = stretches[0], stretches[-1]
    return Stretch(first.start_ns, last.end_ns, first.attempt, tuple(amounts.items()))


def _identity(view: JobView) -> Json:
    account, details = view.account, view.details
    return {
        "job_id": account.job_id,
        "job_name": view.label("job_name") or account.job_id,
        **{name: view.label(name) for name in LABELS},
        "accelerator_type": details.accelerator_type,
        "accelerators": details.accelerators,
        "world_size": details.world_size,
    }


def _time(view: JobView) -> Json:
    account = view.account
    return {
        "state": account.state,
        "state_since": account.state_since,
        "finished": account.finished,
        "start": account.start,
        "end": account.end,
        "wall_s": account.wall_s,
        "components": account.components,
        "groups": account.groups,
        "ett_percent": account.ett_percent,
        "tts_s": account.tts_s,
        "ttr_s": account.ttr_s,
        "failures": len(account.failures),
        "attempts": len(account.attempts),
        "unsaved_exposure_s": account.unsaved_exposure_s,
    }


def _progress(view: JobView) -> Json:
    account = view.account
    return {
        "attempt": account.attempts[-1].attempt if account.attempts else None,
        "step": account.step,
        "samples": view.details.samples,
        "last_progress_at": account.last_progress_at,
        "last_event_at": account.last_event_at,
        "caches": {
            name: {"hits": total.hits, "misses": total.misses, "bypasses": total.bypasses}
            for name, total in view.details.caches.items()
        },
    }


def _checkpoint_totals(view: JobView) -> Json:
    details = view.details
    durable = details.last_durable
    return {
        "checkpoint_blocking_s": details.checkpoint_blocking_s,
        "checkpoint_count": details.checkpoint_count,
        "last_durable_at": durable.time if durable else None,
        "last_durable_step": durable.step if durable else None,
    }


def _attempt(attempt: AttemptAccount) -> Json:
    return msgspec.structs.asdict(attempt)


def _failure(failure: FailureAccount, evidence: Sequence[EvidenceLine], diagnosis: Diagnosis) -> Json:
    fields = ("time", "rank", "node", "source", "text")
    lines = [{field: getattr(line, field) for field in fields} for line in evidence]
    why = msgspec.to_builtins(diagnosis)
    return {
        **msgspec.structs.asdict(failure),
        "cause": cause_of(failure),
        "diagnosis": why,
        "evidence": lines,
    }


def _stretch(stretch: Stretch) -> Json:
    return {
        "start": seconds(stretch.start_ns),
        "end": seconds(stretch.end_ns),
        "attempt": stretch.attempt,
        "components": {component: seconds(amount) for component, amount in stretch.shares},
    }


def _sum_of(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for part in parts:
        for name, amount in part.items():
            totals[name] = totals.get(name, 0.0) + amount
    return totals
