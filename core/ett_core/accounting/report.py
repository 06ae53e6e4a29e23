"""The account of a job: everything that is known of where its time went.

Pure functions of a chain.
"""

from __future__ import annotations

from ett_core.accounting.account import (
    FAILED,
    FailureAccount,
    JobAccount,
    in_seconds,
    seconds,
)
from ett_core.accounting.chain import Chain
from ett_core.accounting.failure_accounts import failure_account, newly_lost_ns
from ett_core.accounting.fallback import (
    UNKNOWN,
    fallbacks,
    highest_durable,
    steps_of,
    weakest,
)
from ett_core.accounting.kept import kept_of
from ett_core.accounting.layout import RUNNING, Span
from ett_core.accounting.partition import Totals, add_up
from ett_core.accounting.state import state_of
from ett_core.amounts import Amounts
from ett_core.components import TRAINING
from ett_core.packed_records import PackedRecords


def account_of(job_id: str, now: float, chain: Chain) -> JobAccount:
    """Everything that is known of a job at one moment."""
    layout, head = chain.layout, chain.head
    totals = chain.totals()
    state, since_ns = state_of(layout, head, chain.last)
    first_loop_ns = chain.last.span.loop_ns if head.first_loop_ns is None else head.first_loop_ns
    failures = PackedRecords(chain.earlier.failures, _last_failure(chain))
    exposure_ns = _exposure_ns(chain)
    return JobAccount(
        job_id=job_id,
        as_of=now,
        start=seconds(layout.start_ns),
        end=seconds(layout.end_ns),
        wall_s=seconds(layout.end_ns - layout.start_ns),
        finished=layout.finished,
        state=state,
        state_since=seconds(since_ns),
        components=Amounts(totals),
        tts_s=None if first_loop_ns is None else seconds(first_loop_ns - layout.start_ns),
        ttr_s=[failure.ttr_s for failure in failures],
        failures=failures,
        attempts=PackedRecords(
            chain.earlier.accounts,
            [kept_of(chain.last).account_with(in_seconds(add_up(chain.last_gap())))],
        ),
        resume_evidence=weakest([head.evidence, None if chain.found is None else chain.found.evidence]),
        not_saved=_not_saved(chain),
        unsaved_exposure_s=None if exposure_ns is None else seconds(exposure_ns),
        last_progress_at=_last_progress_at(chain),
        last_event_at=seconds(layout.last_event_ns),
        step=_step(chain),
        survived_failures=head.survived + chain.last.span.attempt.survived,
        final=Amounts(final_ns(chain, totals, exposure_ns)),
    )


def _step(chain: Chain) -> int | None:
    """The latest step known: reported, or declared; None where nobody spoke of steps."""
    last = chain.last.span.attempt.begun()
    return last.declared_step if last.last_step is None else last.last_step


def _last_progress_at(chain: Chain) -> float | None:
    told = (chain.head.last_progress_ns, chain.last.span.attempt.last_progress_ns)
    latest_ns = max((at_ns for at_ns in told if at_ns is not None), default=None)
    return None if latest_ns is None else seconds(latest_ns)


def _last_failure(chain: Chain) -> list[FailureAccount]:
    """The failure of the last attempt, where it has failed, with the training that it newly took away."""
    if chain.found is None:
        return []
    limits = [*chain.earlier.limits, None]
    unsaved_ns = newly_lost_ns(chain.lost_ns, limits, chain.found.step)
    return [failure_account(chain.last.span, None, chain.found, unsaved_ns)]


def _not_saved(chain: Chain) -> bool:
    """Whether the job ended by decision, keeping training that no checkpoint holds."""
    last = chain.last.span
    if last.outcome not in ("cancelled", "timed_out") or last.attempt.loop is None:
        return False
    durable = highest_durable([last], last.end_ns, last.attempt.loop.step, chain.head.steps)
    return durable < last.attempt.loop.step


def final_ns(chain: Chain, totals: Totals, exposure_ns: int | None) -> Totals:
    """Nanoseconds by component that no further event takes back, if it neither falls back nor comes late.

    Training counts once its steps are durable, or the job is over; everything else once a later event
    has closed it: up to the last report, before the first one up to the start of the attempt.
    """
    layout = chain.layout
    if layout.finished:
        return totals
    open_ns = chain.window(told_until_ns(chain.last.span), layout.end_ns)
    final = {component: amount - open_ns.get(component, 0) for component, amount in totals.items()}
    durable_ns = 0 if exposure_ns is None else totals.get(TRAINING, 0) - exposure_ns
    return final | {TRAINING: max(durable_ns, 0)}


def told_until_ns(last: Span) -> int:
    """Up to when events have closed everything, while the last attempt of a job runs or has failed."""
    if last.outcome != RUNNING:
        return last.end_ns
    if last.attempt.loop is None or last.loop_ns is None:
        return last.start_ns
    return max(last.start_ns, last.attempt.loop.prev_ns)


def _exposure_ns(chain: Chain) -> int | None:
    """Training that would be lost if the job died now; None where nobody can know."""
    last = chain.last.span
    if last.outcome != RUNNING:
        return 0
    as_if = last._replace(outcome=FAILED)
    found = fallbacks([as_if], chain.head.steps)[0][-1]
    if found is None or found.evidence == UNKNOWN:
        return None

    def lost_ns(place: int, step: int) -> int:
        if place < chain.head.attempts:
            return chain.lost_ns(place, step)
        return kept_of(chain.last).lost_ns(chain.last._replace(span=as_if, threshold=step))

    return newly_lost_ns(lost_ns, [*steps_of(chain.head.limits), chain.last.threshold], found.step)
