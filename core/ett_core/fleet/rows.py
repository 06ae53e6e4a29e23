"""The rows that questions about a fleet are asked of: runs (attempts) and failures. Pure.

A job gives one `Run` for each attempt and one `Failure` for each attempt that failed. Rows are
small and do not change; what they were read from need not be kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ett_core.accounting.account import FAILED, AttemptAccount, JobAccount
from ett_core.components import CHECKPOINT_BLOCKING, DATA_WAIT, RECOMPILE, START_ALLOCATION
from ett_core.failures import Diagnosis
from ett_core.fleet.attempts import attempt_ids, failed_places
from ett_core.fleet.endings import ending_of
from ett_core.fleet.losses import Losses, losses
from ett_core.fleet.recurrence import Recurrence, recurrences
from ett_core.starts import Start

FAMILY_LABEL = "config_family"
"""Label by which an owner tells families of one model apart."""
SHORTEST_LOOP_S = 600.0
"""Shares of a loop that was shorter than this say little."""
COMPILE_SECONDS = "compile_seconds"
TIME_TO_START = "time_to_start"
TIME_TO_RECOVER = "time_to_recover"
_LOOP = (DATA_WAIT, CHECKPOINT_BLOCKING, RECOMPILE)


class Run(msgspec.Struct, frozen=True):
    """One attempt: what it ran on, and its figures.

    `figures` are seconds, and for `data_wait`, `checkpoint_blocking` and `recompile` shares of the
    loop (0 to 1). Times are Unix seconds.
    """

    job_id: str
    attempt: int
    start: float
    end: float
    family: str
    """Runs are compared with earlier ones of their family: model and configuration family."""
    cluster: str
    owner: str
    accelerator_type: str
    world_size: int
    nodes: frozenset[str]
    versions: Mapping[str, str]
    config_hash: str
    figures: Mapping[str, float]


class Failure(msgspec.Struct, frozen=True):
    """One failed attempt, its cause and what it cost; without its evidence."""

    id: str
    job_id: str
    job_name: str
    attempt: int
    time: float
    ending: str
    failure_class: str
    domain: str
    role: str
    confidence: str
    retry: str
    """Whether to try again, with what repeats taken into account."""
    rank: int | None
    node: str
    message: str
    team: str
    model: str
    cluster: str
    accelerator_type: str
    losses: Losses
    ttr_s: float | None
    recurrence: Recurrence


class Rows(msgspec.Struct, frozen=True):
    """All rows of one job."""

    job_id: str
    end: float
    runs: Sequence[Run]
    failures: Sequence[Failure]


def rows_of(
    account: JobAccount,
    diagnoses: Sequence[Diagnosis],
    labels: Mapping[str, str],
    starts: Mapping[int, Start],
    accelerator_type: str,
) -> Rows:
    """The rows of a job, from what is known of it at one moment."""
    account = replace(account, attempts=list(account.attempts), failures=list(account.failures))
    family = _family(account.job_id, labels)
    runs = [
        _run(account, place, labels, starts.get(attempt.attempt, Start()), family)
        for place, attempt in enumerate(account.attempts)
    ]
    return Rows(account.job_id, account.end, runs, _failures(account, diagnoses, labels, accelerator_type))


def _failures(
    account: JobAccount, diagnoses: Sequence[Diagnosis], labels: Mapping[str, str], accelerator_type: str
) -> list[Failure]:
    ids = attempt_ids(account.job_id, account.attempts)
    return [
        Failure(
            id=name,
            job_id=account.job_id,
            job_name=labels.get("job_name", "") or account.job_id,
            attempt=failure.attempt,
            time=failure.time,
            ending=ending_of(diagnosis),
            failure_class=diagnosis.failure_class,
            domain=diagnosis.domain,
            role=diagnosis.role,
            confidence=diagnosis.confidence,
            retry=again.retry,
            rank=diagnosis.rank,
            node=diagnosis.node,
            message=diagnosis.message,
            team=labels.get("team", ""),
            model=labels.get("model", ""),
            cluster=labels.get("cluster", ""),
            accelerator_type=accelerator_type,
            losses=cost,
            ttr_s=failure.ttr_s,
            recurrence=again,
        )
        for name, failure, diagnosis, cost, again in zip(
            [ids[place] for place in failed_places(account.attempts)],
            account.failures,
            diagnoses,
            losses(account),
            recurrences(account, diagnoses),
            strict=True,
        )
    ]


def _family(job_id: str, labels: Mapping[str, str]) -> str:
    """The name of a family; of a job without labels its id, less its number.

    >>> _family("nightly-00017", {}), _family("a", {"model": "dlrm", "config_family": "wide"})
    ('nightly', 'dlrm / wide')
    """
    model = labels.get("model") or (labels.get("job_name") or job_id).rstrip("0123456789").rstrip("-_.:/")
    return " / ".join(part for part in (model, labels.get(FAMILY_LABEL, "")) if part)


def _run(account: JobAccount, place: int, labels: Mapping[str, str], start: Start, family: str) -> Run:
    attempt = account.attempts[place]
    return Run(
        job_id=account.job_id,
        attempt=attempt.attempt,
        start=attempt.start,
        end=attempt.end,
        family=family,
        cluster=labels.get("cluster", ""),
        owner=labels.get("team", ""),
        accelerator_type=attempt.accelerator_type,
        world_size=attempt.world_size,
        nodes=frozenset(start.nodes),
        versions=start.versions,
        config_hash=start.config_hash,
        figures=_figures(account, place),
    )


def _figures(account: JobAccount, place: int) -> dict[str, float]:
    """Figures of a run whose loop began; none of one that did not, or of which nobody knows."""
    attempt = account.attempts[place]
    if attempt.loop_start is None or not attempt.observed:
        return {}
    figures = _start_figures(account, attempt) if place == 0 else {}
    if place and account.attempts[place - 1].outcome == FAILED:
        figures = _recovery_figures(account.attempts[place - 1], attempt)
    loop_s = attempt.end - attempt.loop_start
    if loop_s >= SHORTEST_LOOP_S:
        figures |= {name: attempt.components.get(name, 0.0) / loop_s for name in _LOOP}
    return figures


def _start_figures(account: JobAccount, attempt: AttemptAccount) -> dict[str, float]:
    figures = _parts("start.", attempt.components)
    if attempt.start > account.start:
        figures[START_ALLOCATION] = attempt.start - account.start
    compiled_s = figures.get("start.compile", 0.0) + attempt.hidden.get("compile", 0.0)
    return {**figures, TIME_TO_START: account.tts_s or 0.0, f"start.{COMPILE_SECONDS}": compiled_s}


def _recovery_figures(failed: AttemptAccount, attempt: AttemptAccount) -> dict[str, float]:
    figures = _parts("recover.", failed.after) | _parts("recover.", attempt.components)
    compiled_s = figures.get("recover.compile", 0.0) + attempt.hidden.get("compile", 0.0)
    recovered_s = (attempt.loop_start or attempt.end) - failed.end
    return {**figures, TIME_TO_RECOVER: recovered_s, f"recover.{COMPILE_SECONDS}": compiled_s}


def _parts(prefix: str, components: Mapping[str, float]) -> dict[str, float]:
    return {name: seconds for name, seconds in components.items() if name.startswith(prefix)}
