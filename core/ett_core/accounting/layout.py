"""Attempts laid end to end into the wall time: where each starts, how and when it ended.

Pure functions of the folded attempts of a job; nothing here is kept between two questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ett_core.accounting.account import FAILED, NS
from ett_core.accounting.attempt import Attempt
from ett_core.accounting.attempt_state import BY_DECISION, SUCCEEDED
from ett_core.accounting.settings import Settings

RUNNING = "running"


class JobEnded(NamedTuple):
    """The launcher's word that nothing will follow; the latest one counts."""

    at_ns: int
    attempt: int
    rank: int
    writer: str
    seq: int
    status: str


class Span(NamedTuple):
    """One attempt in the wall time."""

    attempt: Attempt
    start_ns: int
    end_ns: int
    outcome: str
    silent: bool
    """Nobody told of its failure: it fell silent, or the next attempt proves it."""
    loop_ns: int | None
    critical: int | None
    after_failure: bool
    """Whether an earlier attempt of the job failed."""

    @property
    def failed(self) -> bool:
        """Whether this attempt counts as a failure."""
        return self.outcome == FAILED

    @property
    def observed(self) -> bool:
        """Whether a rank told enough of this attempt to know where its time went."""
        if self.attempt.observed:
            return True
        return self.attempt.rank_started and self.outcome in (FAILED, RUNNING)


class Before(NamedTuple):
    """What attempts that are put away leave to those after them."""

    start_ns: int
    """Of the wall time."""
    last_start_ns: int
    last_event_ns: int
    failed: bool
    """Whether any of them did."""


class Layout(NamedTuple):
    """The spans of a job, but for those that are put away, and the wall time that holds them."""

    start_ns: int
    end_ns: int
    finished: bool
    job_end: JobEnded | None
    spans: Sequence[Span]
    last_event_ns: int


class _End(NamedTuple):
    at_ns: int
    outcome: str
    silent: bool = False


def lay_out(
    attempts: Sequence[Attempt],
    job_ends: Sequence[JobEnded],
    now_ns: int,
    settings: Settings,
    before: Before | None = None,
) -> Layout:
    """Lay the attempts of a job, in the order of their numbers, into its wall time."""
    starts = starts_of(attempts, before)
    last_event_ns = max([a.last_ns for a in attempts] + [j.at_ns for j in job_ends])
    if before is not None:
        last_event_ns = max(last_event_ns, before.last_event_ns)
    job_end = final_word(starts, job_ends)
    ends = [
        _between(attempt, start, following, job_ends)
        for attempt, start, following in zip(attempts, starts, starts[1:], strict=False)
    ]
    last = _last_end(attempts[-1], job_end, now_ns, settings)
    last = last._replace(at_ns=max(last.at_ns, starts[-1]))
    start_ns = starts[0] if before is None else before.start_ns
    if before is None and attempts[0].allocated_ns is not None:
        start_ns = min(start_ns, attempts[0].allocated_ns)
    end_ns, finished = _wall_end(attempts[-1], last, job_end, last_event_ns, now_ns, settings)
    end_ns = max(end_ns, start_ns)
    if last.outcome == RUNNING:
        last = last._replace(at_ns=end_ns)
    ends.append(last._replace(at_ns=min(last.at_ns, end_ns)))
    after_failure = before is not None and before.failed
    spans = _spans(attempts, starts, ends, after_failure=after_failure)
    return Layout(start_ns, end_ns, finished, job_end, spans, last_event_ns)


def starts_of(attempts: Sequence[Attempt], before: Before | None = None) -> list[int]:
    """Where attempts start: none before the one before it."""
    starts = [] if before is None else [before.last_start_ns]
    for attempt in attempts:
        own = attempt.start_ns if attempt.start_ns is not None else attempt.first_ns
        assert own is not None  # noqa: S101 - an attempt exists by its first event
        starts.append(max(own, starts[-1]) if starts else own)
    return starts[-len(attempts) :]


def final_word(starts: Sequence[int], job_ends: Sequence[JobEnded]) -> JobEnded | None:
    """The latest `job_end`; None where there is none or an attempt started after it."""
    last = max(job_ends, default=None)
    return None if last is None or last.at_ns < starts[-1] else last


def cuts_of(attempts: Sequence[Attempt], job_ends: Sequence[JobEnded]) -> list[int | None]:
    """From when on what an attempt's processes say counts for nothing: the next start, the end."""
    starts = starts_of(attempts)
    last = final_word(starts, job_ends)
    return [*starts[1:], None if last is None else last.at_ns]


def _between(attempt: Attempt, start: int, following: int, job_ends: Sequence[JobEnded]) -> _End:
    """How an attempt ended that another one follows."""
    if attempt.ender is not None:
        end = _End(attempt.ender.at_ns, FAILED)
    elif attempt.succeeded_ns is not None:
        end = _End(attempt.succeeded_ns, SUCCEEDED)
    else:
        since = max(start, attempt.last_progress_ns or 0)
        told = [j.at_ns for j in job_ends if since <= j.at_ns < following and j.status == SUCCEEDED]
        end = _End(max(told), SUCCEEDED) if told else _End(attempt.last_ns, FAILED, silent=True)
    return end._replace(at_ns=min(end.at_ns, following))


def _last_end(attempt: Attempt, job_end: JobEnded | None, now_ns: int, settings: Settings) -> _End:
    """How the last attempt ended, or that it runs."""
    if attempt.ender is not None:
        status = getattr(attempt.ender.event, "status", FAILED)
        return _End(attempt.ender.at_ns, status if status in BY_DECISION else FAILED)
    if attempt.succeeded_ns is not None:
        return _End(attempt.succeeded_ns, SUCCEEDED)
    if job_end is not None:
        if job_end.status == SUCCEEDED:
            return _End(job_end.at_ns, SUCCEEDED)
        return _End(attempt.last_ns, FAILED, silent=True)
    if now_ns - attempt.last_ns > settings.lost_after_s * NS:
        return _End(attempt.last_ns, FAILED, silent=True)
    return _End(now_ns, RUNNING)


def _wall_end(  # noqa: PLR0913, PLR0917 - the six things that the rule speaks of
    attempt: Attempt,
    last: _End,
    job_end: JobEnded | None,
    last_event_ns: int,
    now_ns: int,
    settings: Settings,
) -> tuple[int, bool]:
    if job_end is not None:
        return job_end.at_ns, True
    if last.outcome not in (RUNNING, FAILED):
        return last.at_ns, True
    if last.outcome == FAILED and now_ns - last_event_ns > settings.abandon_after_s * NS:
        return max(last.at_ns, attempt.teardown_ns or 0), True
    return max(now_ns, last_event_ns), False


def _spans(
    attempts: Sequence[Attempt], starts: Sequence[int], ends: Sequence[_End], *, after_failure: bool
) -> list[Span]:
    spans: list[Span] = []
    for attempt, start_ns, end in zip(attempts, starts, ends, strict=True):
        end_ns = max(end.at_ns, start_ns)
        begun = attempt.begun()
        loop_ns, critical = begun.loop_ns, begun.critical
        if loop_ns is not None:
            loop_ns = max(loop_ns, start_ns) if loop_ns <= end_ns else None
        spans.append(
            Span(attempt, start_ns, end_ns, end.outcome, end.silent, loop_ns, critical, after_failure)
        )
        after_failure = after_failure or end.outcome == FAILED
    return spans
