"""From the page of one job to the answers of the query API about it: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ett_core import compile_log
from ett_core.accounting import AttemptAccount, FailureAccount, Stretch
from ett_core.accounting.account import ett_percent, seconds
from ett_core.components import area_seconds
from ett_core.failures import Diagnosis
from ett_core.fleet.rows import Failure
from ett_core.save_costs import as_object
from ett_exporter.failure_answers import evidence_of
from ett_exporter.history import rows_of_view
from ett_exporter.job_rows import row_fields
from ett_exporter.job_types import (
    Attempts,
    Checkpoints,
    Compilations,
    Decisions,
    FailureRow,
    Job,
    JobFailures,
    RankRow,
    Ranks,
    StretchRow,
    Timeline,
)
from ett_exporter.outlines import coarsened
from ett_exporter.pages import page_of
from ett_exporter.queries import RowsQuery
from ett_exporter.views import JobPage


def page_answer(page: JobPage) -> Job:
    """One job in full; its timeline as the page has it."""
    account, details = page.view.account, page.view.details
    return Job(
        as_of=account.as_of,
        **row_fields(page.view),
        ett_percent_within={name: ett_percent(known) for name, known in page.view.windows.items()},
        attempt_list=list(map(_attempt, account.attempts)),
        failure_list=_failures(page),
        timeline=_stretches(page.timeline),
        checkpoints=page.checkpoints,
        compile=details.compile_s,
        hidden=_sum_of(attempt.hidden for attempt in account.attempts),
        counters=details.counters,
        step_times=details.step_times,
        throughput=page.throughput,
        stalls=page.stalls,
        stragglers=page.stragglers,
        step_spread=page.step_spread,
        async_saves=as_object(page.async_saves),
        versions=details.versions,
        labels=details.labels,
        config_hash=details.config_hash,
        nodes=page.nodes,
        areas={area: s for area, s in area_seconds(account.components).items() if s},
        resume_evidence=account.resume_evidence,
        not_saved=account.not_saved,
    )


def timeline_answer(page: JobPage, limit: int) -> Timeline:
    """Where the time of a job went."""
    account = page.view.account
    return Timeline(
        as_of=account.as_of,
        job_id=account.job_id,
        is_joined=len(page.timeline) > limit,
        stretches=_stretches(coarsened(page.timeline, limit)),
    )


def attempts_answer(page: JobPage) -> Attempts:
    """The attempts of a job."""
    account = page.view.account
    return Attempts(
        as_of=account.as_of, job_id=account.job_id, attempts=list(map(_attempt, account.attempts))
    )


def _attempt(attempt: AttemptAccount) -> AttemptAccount:
    """An attempt whose mappings any encoder knows."""
    return msgspec.structs.replace(
        attempt,
        first_batch_at=dict(attempt.first_batch_at),
        components=dict(attempt.components),
        after=dict(attempt.after),
    )


def job_failures_answer(page: JobPage) -> JobFailures:
    """The failures of a job."""
    account = page.view.account
    return JobFailures(as_of=account.as_of, job_id=account.job_id, failures=_failures(page))


def ranks_answer(page: JobPage) -> Ranks:
    """The ranks of the latest attempt of a job."""
    account = page.view.account
    latest = account.attempts[-1] if account.attempts else None
    return Ranks(
        as_of=account.as_of,
        job_id=account.job_id,
        attempt=latest.attempt if latest else None,
        critical_rank=latest.critical_rank if latest else None,
        step_spread=page.step_spread,
        ranks=_ranks(page, latest) if latest else [],
        stragglers=page.stragglers,
    )


def checkpoints_answer(page: JobPage) -> Checkpoints:
    """The checkpoints of a job."""
    details, durable = page.view.details, page.view.details.last_durable
    return Checkpoints(
        as_of=page.view.account.as_of,
        job_id=page.view.account.job_id,
        count=details.checkpoint_count,
        durable_count=details.checkpoint_durable_count,
        failed_count=details.checkpoint_failed_count,
        blocking_s=details.checkpoint_blocking_s,
        last_durable_at=durable.time if durable else None,
        last_durable_step=durable.step if durable else None,
        checkpoints=page.checkpoints,
        async_saves=as_object(page.async_saves),
    )


def compilations_answer(page: JobPage, query: RowsQuery) -> Compilations:
    """What a job compiled."""
    known = page.compilations or compile_log.Compilations(0, 0, [])
    shown, total, following = page_of(known.lines, query)
    return Compilations(
        as_of=page.view.account.as_of,
        job_id=page.view.account.job_id,
        torch=page.view.details.versions.get("torch", ""),
        count=known.count,
        again=known.again,
        compilations=shown,
        total=total,
        next_offset=following,
    )


def decisions_answer(page: JobPage, query: RowsQuery) -> Decisions:
    """What the pipeline of a job decided."""
    shown, total, following = page_of(page.decisions[::-1], query)
    return Decisions(
        as_of=page.view.account.as_of,
        job_id=page.view.account.job_id,
        decisions=shown,
        total=total,
        next_offset=following,
    )


def _failures(page: JobPage) -> list[FailureRow]:
    account = page.view.account
    rows = rows_of_view(page.view).failures
    return [
        _failure(page, place, failure, diagnosis, row)
        for place, (failure, diagnosis, row) in enumerate(
            zip(account.failures, page.view.diagnoses, rows, strict=True)
        )
    ]


def _failure(
    page: JobPage, place: int, failure: FailureAccount, diagnosis: Diagnosis, row: Failure
) -> FailureRow:
    return FailureRow(
        **msgspec.structs.asdict(failure),
        id=row.id,
        ending=row.ending,
        retry=row.retry,
        recurrence=row.recurrence,
        losses=row.losses,
        cause=page.view.cause(place, failure, diagnosis),
        diagnosis=diagnosis,
        evidence=evidence_of(page, place),
    )


def _ranks(page: JobPage, attempt: AttemptAccount) -> list[RankRow]:
    """Every rank that spoke in the latest attempt, in order."""
    slow = {each["rank"] for each in page.stragglers if each["ongoing"]}
    begun = dict(attempt.first_batch_at)
    known = {*begun, *page.heard_at, *page.paces}
    rows = []
    for rank in sorted(known):
        pace = page.paces.get(rank)
        rows.append(
            RankRow(
                rank=rank,
                node=page.nodes.get(rank, "") if rank in page.heard_at else "",
                first_batch_at=begun.get(rank),
                last_event_at=page.heard_at.get(rank),
                step_s=pace.step_s / pace.steps if pace else None,
                data_wait_s=pace.wait_s / pace.steps if pace else None,
                is_straggler=rank in slow,
            )
        )
    return rows


def _stretches(timeline: Iterable[Stretch]) -> list[StretchRow]:
    return [
        StretchRow(
            start=seconds(stretch.start_ns),
            end=seconds(stretch.end_ns),
            attempt=stretch.attempt,
            components={component: seconds(amount) for component, amount in stretch.shares},
        )
        for stretch in timeline
    ]


def _sum_of(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for part in parts:
        for name, amount in part.items():
            totals[name] = totals.get(name, 0.0) + amount
    return totals
