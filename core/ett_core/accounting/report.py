"""The account of a job: everything that is known of where its time went.

Pure functions of a chain.
"""

from __future__ import annotations

from ett_core.accounting.account import (
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
    weakest,
)
from ett_core.accounting.kept import kept_of
from ett_core.accounting.layout import FAILED, RUNNING, Layout, Span
from ett_core.accounting.packed_accounts import PackedAccounts
from ett_core.accounting.partition import Totals, add_up
from ett_core.accounting.state import state_of
from ett_core.components import (
    TRAINING,
)


def account_of(job_id: str, now: float, chain: Chain) -> JobAccount:
    """Everything that is known of a job at one moment."""
    layout = chain.layout
    totals = chain.totals()
    state, since_ns = state_of(layout, chain.last)
    loops = [span.loop_ns for span in layout.spans if span.loop_ns is not None]
    failures = [*chain.earlier.failures, *_last_failure(chain)]
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
        components=in_seconds(totals),
        tts_s=seconds(loops[0] - layout.start_ns) if loops else None,
        ttr_s=[failure.ttr_s for failure in failures],
        failures=failures,
        attempts=PackedAccounts(
            chain.earlier.accounts,
            len(layout.spans) - 1,
            kept_of(chain.last).account_with(in_seconds(add_up(chain.last_gap()))),
        ),
        resume_evidence=weakest(chain.found),
        not_saved=_not_saved(chain),
        unsaved_exposure_s=None if exposure_ns is None else seconds(exposure_ns),
        last_progress_at=_last_progress_at(layout),
        last_event_at=seconds(layout.last_event_ns),
        step=_step(chain),
        survived_failures=sum(span.attempt.survived for span in layout.spans),
        final=in_seconds(final_ns(chain, totals, exposure_ns)),
    )


def _step(chain: Chain) -> int | None:
    """The latest step known: reported, or declared; None where nobody spoke of steps."""
    last = chain.layout.spans[-1].attempt.begun()
    return last.declared_step if last.last_step is None else last.last_step


def _last_progress_at(layout: Layout) -> float | None:
    told = [s.attempt.last_progress_ns for s in layout.spans if s.attempt.last_progress_ns is not None]
    return seconds(max(told)) if told else None


def _last_failure(chain: Chain) -> list[FailureAccount]:
    """The failure of the last attempt, where it has failed, with the training that it newly took away."""
    fallback = chain.found[-1]
    if fallback is None:
        return []
    limits = [*chain.earlier.limits, None]
    unsaved_ns = newly_lost_ns(chain.lost_ns, limits, fallback.step)
    spans = chain.layout.spans
    return [failure_account(spans, len(spans) - 1, fallback, unsaved_ns)]


def _not_saved(chain: Chain) -> bool:
    """Whether the job ended by decision, keeping training that no checkpoint holds."""
    last = chain.layout.spans[-1]
    if last.outcome not in ("cancelled", "timed_out") or last.attempt.loop is None:
        return False
    durable = highest_durable(chain.layout.spans, last.end_ns, last.attempt.loop.step)
    return durable < last.attempt.loop.step


def final_ns(chain: Chain, totals: Totals, exposure_ns: int | None) -> Totals:
    """Nanoseconds by component that no further event takes back, if it neither falls back nor comes late.

    Training counts once its steps are durable, or the job is over; everything else once a later event
    has closed it: up to the last report, before the first one up to the start of the attempt.
    """
    layout = chain.layout
    if layout.finished:
        return totals
    open_ns = chain.window(_closed_until_ns(layout.spans[-1]), layout.end_ns)
    final = {component: amount - open_ns.get(component, 0) for component, amount in totals.items()}
    durable_ns = 0 if exposure_ns is None else totals.get(TRAINING, 0) - exposure_ns
    return final | {TRAINING: max(durable_ns, 0)}


def _closed_until_ns(last: Span) -> int:
    """Up to when events have closed everything, while the last attempt of a job runs or has failed."""
    if last.outcome != RUNNING:
        return last.end_ns
    if last.attempt.loop is None or last.loop_ns is None:
        return last.start_ns
    return max(last.start_ns, last.attempt.loop.prev_ns)


def _exposure_ns(chain: Chain) -> int | None:
    """Training that would be lost if the job died now; None where nobody can know."""
    last = chain.layout.spans[-1]
    if last.outcome != RUNNING:
        return 0
    as_if = last._replace(outcome=FAILED)
    spans = [*chain.layout.spans[:-1], as_if]
    found = fallbacks(spans)[0][-1]
    if found is None or found.evidence == UNKNOWN:
        return None
    limits = [partition.threshold for partition in chain.partitions]

    def lost_ns(place: int, step: int) -> int:
        if place < len(limits) - 1:
            return chain.lost_ns(place, step)
        return kept_of(chain.last).lost_ns(chain.last._replace(span=as_if, threshold=step))

    return newly_lost_ns(lost_ns, limits, found.step)
