"""How attempts ended, told apart: failed, preempted, cancelled, timed out. Pure.

What a rank says of its end is little: a scheduler that takes the hardware away sends a signal. Where
the diagnosis is certain that it was the scheduler, states and causes say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ett_core.accounting.account import FailureAccount, JobAccount
from ett_core.causes import cause_of, with_sender
from ett_core.evidence_log import EvidenceLine, senders_in
from ett_core.failures import Diagnosis
from ett_core.failures.judge import CERTAIN

FAILED, PREEMPTED, CANCELLED, TIMED_OUT = "failed", "preempted", "cancelled", "timed_out"
_ENDING_OF_CLASS = {
    "preempted": PREEMPTED,
    "evicted": PREEMPTED,
    "maintenance": PREEMPTED,
    "user_cancelled": CANCELLED,
    "time_limit": TIMED_OUT,
}
ENDED_BY_OTHERS = frozenset(_ENDING_OF_CLASS)
"""Classes of attempts that somebody ended, or whose hardware was taken away."""
_WORDS_OF_CLASS = {
    "preempted": "preempted",
    "evicted": "evicted by the platform",
    "maintenance": "stopped for maintenance",
    "user_cancelled": "cancelled",
    "time_limit": "reached its time limit",
}


def ending_of(diagnosis: Diagnosis) -> str:
    """How the attempt ended, in one of the words that tell apart."""
    return _ENDING_OF_CLASS.get(diagnosis.failure_class, FAILED)


def state_of(account: JobAccount, diagnoses: Sequence[Diagnosis]) -> str:
    """The state of a job; of one that ended in failure, how its last attempt is known to have ended."""
    last = diagnoses[-1] if diagnoses else None
    if account.state != FAILED or last is None or last.confidence != CERTAIN:
        return account.state
    return ending_of(last)


def cause_words(failure: FailureAccount, diagnosis: Diagnosis, evidence: Iterable[EvidenceLine] = ()) -> str:
    """What ended an attempt, in short words: what was reported, unless more is certain.

    `evidence` are the lines of the attempt: a launcher may know who sent the signal that a rank tells of.
    """
    known = _WORDS_OF_CLASS.get(diagnosis.failure_class) if diagnosis.confidence == CERTAIN else None
    return known or with_sender(cause_of(failure), senders_in(evidence))
