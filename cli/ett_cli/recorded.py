"""One job as its journals tell of it: its account, and the details that its report speaks of.

Held by one thread. Only kinds of events that the report needs reach the details, each event
once, however often the journals repeat it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins
from msgspec.structs import asdict

from ett_core.accounting import FailureAccount, JobAccount, JobFold
from ett_core.components import area_seconds
from ett_core.details import JobDetails
from ett_core.events import (
    AnyEvent,
    AttemptStart,
    Cache,
    Checkpoint,
    CheckpointDurable,
    CheckpointFailed,
    Compile,
    Evidence,
    Failure,
    Progress,
)
from ett_core.evidence_log import EvidenceLine
from ett_core.failures import Diagnosis, diagnose
from ett_core.fleet.attempts import evidence_of_failures
from ett_core.fleet.endings import cause_words, state_of
from ett_core.fleet.recurrence import infra_failures
from ett_core.fleet.rows import Failure as Failed
from ett_core.fleet.rows import rows_of
from ett_core.in_order import Collected
from ett_core.save_costs import as_object
from ett_core.sequences import Sequences

_DETAILED = frozenset(
    {AttemptStart, Cache, Checkpoint, CheckpointDurable, CheckpointFailed, Compile, Evidence, Failure}
)


class Recorded:
    """The two folds of one job: `add` its events, then ask."""

    def __init__(self, job_id: str) -> None:
        self._fold = JobFold(job_id)
        self._details = JobDetails()
        self._collected = Collected()
        self._detailed: defaultdict[str, Sequences] = defaultdict(Sequences)
        self._failed_save: CheckpointFailed | None = None

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Take in events of the job, in any order; repeats change nothing."""
        self._fold.add(events)
        detailed = [event for event in events if _is_detailed(event) and self._is_new(event)]
        self._details.add(detailed)
        self._collected.add(detailed)
        failed = [each for each in (self._failed_save, *events) if isinstance(each, CheckpointFailed)]
        self._failed_save = max(failed, key=lambda each: (each.time, each.message), default=None)

    def as_json(self, now: float) -> dict[str, Any] | None:
        """What `ett account --json` prints of the job as of `now`; None before any event.

        Times are Unix seconds, `_s` are seconds.
        """
        account = self._fold.account(now)
        if account is None:
            return None
        if self._details.late:
            self._details.put_in_order(self._collected)
        evidence = evidence_of_failures(account, self._details.evidence)
        diagnoses = list(map(diagnose, account.failures, evidence))
        return {
            **_account(account),
            "state": state_of(account, diagnoses),
            "infra_failures": infra_failures(diagnoses),
            "failure_list": _failures(account, diagnoses, evidence),
            **self._extras(),
        }

    def _is_new(self, event: AnyEvent) -> bool:
        return self._detailed[event.writer].add(event.seq)

    def _extras(self) -> dict[str, Any]:
        checkpoints, caches = self._details.checkpoints, self._details.processes.caches
        durable, steps = checkpoints.last_durable, self._details.steps.read()
        return {
            "labels": self._details.starts.labels,
            "checkpoint_count": checkpoints.count,
            "checkpoint_blocking_s": checkpoints.blocking_s,
            "checkpoint_failed_count": checkpoints.failed_count,
            "checkpoint_failed_why": self._failed_save.message if self._failed_save else None,
            "last_durable_at": durable.time if durable else None,
            "last_durable_step": durable.step if durable else None,
            "caches": {
                name: {"hits": total.hits, "misses": total.misses, "bypasses": total.bypasses}
                for name, total in caches.items()
            },
            "compile": self._details.compile_s,
            "step_times": None if steps is None else asdict(steps),
            "step_spread": self._details.rank_paces.step_spread,
            "stalls": self._details.evidence.stalls(),
            "stragglers": self._details.stragglers(),
            "async_saves": as_object(self._details.async_saves.saves),
        }


def _is_detailed(event: AnyEvent) -> bool:
    if isinstance(event, Progress):
        return event.step_seconds is not None
    return type(event) in _DETAILED


def _account(account: JobAccount) -> dict[str, Any]:
    return {
        "job_id": account.job_id,
        "state": account.state,
        "state_since": account.state_since,
        "finished": account.finished,
        "start": account.start,
        "end": account.end,
        "wall_s": account.wall_s,
        "components": dict(account.components),
        "groups": account.groups,
        "areas": area_seconds(account.components),
        "ett_percent": account.ett_percent,
        "resume_evidence": account.resume_evidence,
        "failures": len(account.failures),
        "survived_failures": account.survived_failures,
        "attempts": len(account.attempts),
        "tts_s": account.tts_s,
        "ttr_s": list(account.ttr_s),
        "unsaved_exposure_s": account.unsaved_exposure_s,
        "not_saved": account.not_saved,
        "step": account.step,
        "last_progress_at": account.last_progress_at,
        "last_event_at": account.last_event_at,
    }


def _failures(
    account: JobAccount, diagnoses: Sequence[Diagnosis], evidence: Sequence[Sequence[EvidenceLine]]
) -> list[dict[str, Any]]:
    rows = rows_of(account, diagnoses, {}, {}, "").failures
    return [
        _failure(failure, lines, diagnosis, row)
        for failure, lines, diagnosis, row in zip(account.failures, evidence, diagnoses, rows, strict=True)
    ]


def _failure(
    failure: FailureAccount, evidence: Sequence[EvidenceLine], diagnosis: Diagnosis, row: Failed
) -> dict[str, Any]:
    fields = ("time", "rank", "node", "source", "text")
    lines = [{field: getattr(line, field) for field in fields} for line in evidence]
    return {
        **asdict(failure),
        "id": row.id,
        "ending": row.ending,
        "retry": row.retry,
        "recurrence": asdict(row.recurrence),
        "losses": asdict(row.losses),
        "cause": cause_words(failure, diagnosis, evidence),
        "diagnosis": to_builtins(diagnosis),
        "evidence": lines,
    }
