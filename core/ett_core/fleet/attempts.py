"""Attempts of which several say one number, where a restart forgot to count: which one is meant. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ett_core.accounting.account import FAILED, AttemptAccount, JobAccount
from ett_core.evidence_log import EvidenceLine, EvidenceLog


class Span(NamedTuple):
    """From when to when what is told under the number of an attempt is told of it: Unix seconds."""

    begin: float
    end: float


def attempt_ids(job_id: str, attempts: Sequence[AttemptAccount]) -> list[str]:
    """The identity of each attempt of a job, fit for an address: `JOB~ATTEMPT`.

    Where several say one number, the second is `JOB~ATTEMPT.2`.
    """
    seen: Counter[int] = Counter()
    ids = []
    for attempt in attempts:
        seen[attempt.attempt] += 1
        again = f".{seen[attempt.attempt]}" if seen[attempt.attempt] > 1 else ""
        ids.append(f"{job_id}~{attempt.attempt}{again}")
    return ids


def failed_places(attempts: Sequence[AttemptAccount]) -> list[int]:
    """The places of the attempts that failed: one for each failure of the job, in its order."""
    return [place for place, attempt in enumerate(attempts) if attempt.outcome == FAILED]


def spans_of_failures(attempts: Sequence[AttemptAccount]) -> list[Span]:
    """For each failure of a job the time of what is told of its attempt.

    All time, but where several attempts say its number: these part where the next one starts.
    """
    all_attempts = list(attempts)
    starts: dict[int, list[float]] = {}
    nth = []
    for attempt in all_attempts:
        own = starts.setdefault(attempt.attempt, [])
        nth.append(len(own))
        own.append(attempt.start)
    return [_span(starts[all_attempts[place].attempt], nth[place]) for place in failed_places(all_attempts)]


def _span(starts: Sequence[float], place: int) -> Span:
    """Of the attempt at a place among those that say its number, which start at these moments."""
    begin = starts[place] if place else -math.inf
    return Span(begin, starts[place + 1] if place + 1 < len(starts) else math.inf)


def evidence_of_failures(account: JobAccount, evidence: EvidenceLog) -> list[list[EvidenceLine]]:
    """What was told of the attempt of each failure of a job, in its order."""
    spans = spans_of_failures(account.attempts)
    return [
        evidence.lines(failure.attempt, *span) for failure, span in zip(account.failures, spans, strict=True)
    ]
