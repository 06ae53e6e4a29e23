"""What one failure was and what it cost: pure functions of the spans of a job."""

from __future__ import annotations

from collections.abc import Callable

from ett_core.accounting.account import FailureAccount, seconds
from ett_core.accounting.fallback import Fallback
from ett_core.accounting.layout import Span
from ett_core.events import AttemptEnd, Failure
from ett_core.plain_text import plain

CHARACTERS_KEPT = 8192
"""Characters of a message that an account holds."""
Lost = Callable[[int, int], int]
"""Nanoseconds of training that a fall back of an attempt (by its place) to a step takes away."""


def newly_lost_ns(lost_ns: Lost, limits: list[int | None], step: int | None) -> int:
    """Training taken away by a fall back to `step` beyond what `limits` took; lowers them."""
    if step is None:
        return 0
    lost = 0
    for place in range(len(limits) - 1, -1, -1):
        limit = limits[place]
        if limit is not None and limit <= step:
            break
        before = 0 if limit is None else lost_ns(place, limit)
        lost += lost_ns(place, step) - before
        limits[place] = step
    return lost


def failure_account(
    span: Span, next_loop_ns: int | None, fallback: Fallback, unsaved_ns: int
) -> FailureAccount:
    """The account of the failure of an attempt, after which a loop began at `next_loop_ns`."""
    event = None if span.attempt.ender is None else span.attempt.ender.event
    failure = event if isinstance(event, Failure) else None
    return FailureAccount(
        attempt=span.attempt.number,
        time=seconds(span.end_ns),
        rank=_failed_rank(event),
        node="" if event is None else event.node,
        exception=_plain(failure.exception if failure else None),
        message=_plain(failure.message if failure else None),
        exit_code=event.exit_code if event else None,
        signal=failure.signal if failure else None,
        status=event.status if isinstance(event, AttemptEnd) else None,
        silent=span.silent,
        ttr_s=None if next_loop_ns is None else seconds(next_loop_ns - span.end_ns),
        unsaved_s=seconds(unsaved_ns),
        fallback_step=fallback.step,
        resume_evidence=fallback.evidence,
    )


def _plain(text: str | None) -> str | None:
    return None if text is None else plain(text[:CHARACTERS_KEPT])


def _failed_rank(event: Failure | AttemptEnd | None) -> int | None:
    if event is None:
        return None
    if isinstance(event, Failure) and event.of_rank is not None:
        return event.of_rank
    return event.rank if event.rank >= 0 else None
