"""Failures of a job that come again: how often, since when, and what that says about trying again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

import msgspec

from ett_core.accounting.account import AttemptAccount, FailureAccount, JobAccount
from ett_core.failures import Diagnosis
from ett_core.failures.classes import AFTER_REMEDIATION, INFRASTRUCTURE, PLATFORM, UNKNOWN, WITH_CHANGE
from ett_core.fleet.endings import FAILED, ending_of

_TOLD_BY_EXCEPTION = ("user_code", UNKNOWN)
"""Classes so wide that the exception has to be the same, too."""

STOP = "stop"
"""Advice: it would only fail again; stop trying until something is changed."""
EXCLUDE_NODE = "exclude_node"
"""Advice: try again without the node."""
REPEATS_OF_A_LOOP = 2
REPEATS_OF_THE_UNKNOWN = 3


class Recurrence(msgspec.Struct, frozen=True, gc=False):
    """How often a failure had come in a row by then, itself included.

    `count` is 1 for a failure that is new; `since` the moment of the first of the row (Unix
    seconds). `crash_loop`: nothing of the training in between was kept, and nobody had decided to
    end the attempts. `same_node`, `same_rank`: it was the same throughout.
    """

    count: int
    since: float
    crash_loop: bool
    same_node: bool
    same_rank: bool
    retry: str


def infra_failures(diagnoses: Iterable[Diagnosis]) -> int:
    """How many failures are of the infrastructure or the platform, by their diagnosed cause."""
    return sum(diagnosis.domain in (INFRASTRUCTURE, PLATFORM) for diagnosis in diagnoses)


def recurrences(account: JobAccount, diagnoses: Sequence[Diagnosis]) -> list[Recurrence]:
    """Of each failure of a job, in order, the row of equal ones that it ends."""
    attempts = [attempt for attempt in account.attempts if attempt.outcome == FAILED]
    seen = [_Seen(*each) for each in zip(account.failures, diagnoses, attempts, strict=True)]
    found = []
    first = 0
    for place, each in enumerate(seen):
        if place and each.kind != seen[place - 1].kind:
            first = place
        found.append(_recurrence(seen[first : place + 1]))
    return found


class LatestRow(NamedTuple):
    """Failures in a row of one class, up to the latest, that left the job where it was."""

    failure_class: str
    length: int


def latest_row(account: JobAccount, diagnoses: Sequence[Diagnosis], settled: int) -> LatestRow | None:
    """The row that the last of the first `settled` failures ends; None without any.

    `length` is 1 for a failure that is new or came after training that was kept.
    """
    if not settled:
        return None
    attempts = [attempt for attempt in account.attempts if attempt.outcome == FAILED]
    seen = list(map(_Seen, account.failures[:settled], diagnoses[:settled], attempts[:settled]))
    row = list(takewhile(lambda each: each.kind == seen[-1].kind, reversed(seen)))
    return LatestRow(seen[-1].diagnosis.failure_class, _stuck(row[::-1]))


class _Seen(NamedTuple):
    failure: FailureAccount
    diagnosis: Diagnosis
    attempt: AttemptAccount

    @property
    def kind(self) -> tuple[str, str, int | None]:
        """What has to be the same for it to be the same failure again."""
        name = self.diagnosis.failure_class
        if name not in _TOLD_BY_EXCEPTION:
            return (name, "", None)
        return (name, self.failure.exception or "", self.failure.signal or self.failure.exit_code)


def _recurrence(row: Sequence[_Seen]) -> Recurrence:
    last = row[-1].diagnosis
    again = len(row) > 1
    same_node = again and last.node != "" and len({each.diagnosis.node for each in row}) == 1
    same_rank = again and last.rank is not None and len({each.diagnosis.rank for each in row}) == 1
    stuck = _stuck(row)
    crash_loop = stuck >= REPEATS_OF_A_LOOP and ending_of(last) == FAILED
    return Recurrence(
        count=len(row),
        since=row[0].failure.time,
        crash_loop=crash_loop,
        same_node=same_node,
        same_rank=same_rank,
        retry=_advice(last.retry, stuck, crash_loop=crash_loop, same_node=same_node),
    )


def _stuck(row: Sequence[_Seen]) -> int:
    """How many of the latest ones left the job where it was: nothing trained in between was kept."""
    count = 1
    for before, each in pairwise(row):
        kept = _kept(before, each)
        stays = not kept if kept is not None else count >= REPEATS_OF_A_LOOP
        count = count + 1 if stays else 1
    return count


def _kept(before: _Seen, each: _Seen) -> bool | None:
    """Whether an attempt brought the job further than the one before; None where nobody knows (yet)."""
    if each.attempt.loop_start is None:
        return False
    step, earlier = each.failure.fallback_step, before.failure.fallback_step
    return None if step is None or earlier is None else step > earlier


def _advice(retry: str, stuck: int, *, crash_loop: bool, same_node: bool) -> str:
    if retry == AFTER_REMEDIATION:
        return EXCLUDE_NODE if same_node else retry
    if crash_loop and (retry == WITH_CHANGE or (retry == UNKNOWN and stuck >= REPEATS_OF_THE_UNKNOWN)):
        return STOP
    return retry
