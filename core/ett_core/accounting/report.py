"""The spans of a job put together: gaps, losses, and the account of it all.

Pure functions of a layout; the only thing kept is the totals of attempts that did not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ett_core.accounting.account import (
    AttemptAccount,
    FailureAccount,
    JobAccount,
    Stretch,
    in_seconds,
    seconds,
)
from ett_core.accounting.attempt import Attempt
from ett_core.accounting.fallback import (
    UNKNOWN,
    Fallback,
    Position,
    fallbacks,
    highest_durable,
    thresholds,
    weakest,
)
from ett_core.accounting.layout import FAILED, RUNNING, Layout, Span
from ett_core.accounting.partition import Partition, Totals, add_to, add_up, merge
from ett_core.accounting.state import state_of
from ett_core.components import (
    OTHER,
    RECOVER_ALLOCATION,
    RECOVER_QUEUE,
    RECOVER_RESTART,
    RECOVER_TEARDOWN,
    START_ALLOCATION,
    TRAINING,
    UNSAVED_TRAINING,
)
from ett_core.events import AttemptEnd, Failure
from ett_core.plain_text import plain

CHARACTERS_KEPT = 8192
"""Characters of a message that an account holds."""


class Chain(NamedTuple):
    """A job's wall time as attempts and the gaps between them."""

    layout: Layout
    found: Sequence[Fallback | None]
    positions: Sequence[Position]
    partitions: Sequence[Partition]
    opening: Sequence[Stretch]
    """From the beginning of the wall time to the first attempt."""
    gaps: Sequence[Sequence[Stretch]]
    """After each attempt, up to the next one or the end of the job."""

    @classmethod
    def of(cls, layout: Layout) -> Chain:
        """Share out every span of a layout."""
        found, positions = fallbacks(layout.spans)
        limits = thresholds(found)
        partitions = [
            Partition(span, limit, position.begin_step)
            for span, limit, position in zip(layout.spans, limits, positions, strict=True)
        ]
        first = layout.spans[0]
        opening = tuple(_gap(layout.start_ns, first.start_ns, first, START_ALLOCATION))
        gaps = [tuple(gap_after(layout, index)) for index in range(len(layout.spans))]
        return cls(layout, found, positions, partitions, opening, gaps)

    def totals(self) -> Totals:
        """Nanoseconds by component; together they are the wall time."""
        totals = add_up(self.opening)
        for partition, gap in zip(self.partitions, self.gaps, strict=True):
            merge(totals, _kept(partition).totals)
            add_to(totals, gap)
        return totals

    def stretches(self, begin_ns: int | None = None, end_ns: int | None = None) -> Iterator[Stretch]:
        """The partition in time order, cut to the wall time and to [`begin_ns`, `end_ns`]."""
        low = self.layout.start_ns if begin_ns is None else begin_ns
        high = self.layout.end_ns if end_ns is None else end_ns
        yield from _cut(self.opening, low, high)
        for partition, gap in zip(self.partitions, self.gaps, strict=True):
            if partition.span.end_ns > low and partition.span.start_ns < high:
                yield from partition.stretches(low, high)
            yield from _cut(gap, low, high)

    def window(self, begin_ns: int, end_ns: int) -> Totals:
        """Nanoseconds by component between two moments."""
        totals = add_up(_cut(self.opening, begin_ns, end_ns))
        for partition, gap in zip(reversed(self.partitions), reversed(self.gaps), strict=True):
            span = partition.span
            add_to(totals, _cut(gap, begin_ns, end_ns))
            if span.end_ns <= begin_ns:
                break
            if begin_ns <= span.start_ns and span.end_ns <= end_ns:
                merge(totals, _kept(partition).totals)
            elif span.end_ns > begin_ns and span.start_ns < end_ns:
                merge(totals, partition.window(begin_ns, end_ns))
        return totals


def gap_after(layout: Layout, index: int) -> Iterator[Stretch]:
    """From the end of an attempt to the start of the next, or to the end of the job."""
    span = layout.spans[index]
    last = index + 1 == len(layout.spans)
    end = layout.end_ns if last else layout.spans[index + 1].start_ns
    if not span.failed:
        yield from _gap(span.end_ns, end, span, OTHER)
        return
    allocated = None if last else layout.spans[index + 1].attempt.allocated_ns
    torn_down = min(max(span.attempt.teardown_ns or 0, span.end_ns), end)
    yield from _gap(span.end_ns, torn_down, span, RECOVER_TEARDOWN)
    if allocated is not None and allocated > span.end_ns:
        granted = min(max(allocated, torn_down), end)
        yield from _gap(torn_down, granted, span, RECOVER_QUEUE)
        yield from _gap(granted, end, span, RECOVER_ALLOCATION)
    else:
        yield from _gap(torn_down, end, span, RECOVER_RESTART)


def _gap(begin_ns: int, end_ns: int, before: Span, component: str) -> Iterator[Stretch]:
    if end_ns > begin_ns:
        yield Stretch(begin_ns, end_ns, before.attempt.number, ((component, end_ns - begin_ns),))


def _cut(stretches: Iterable[Stretch], low: int, high: int) -> Iterator[Stretch]:
    for stretch in stretches:
        if stretch.end_ns > low and stretch.start_ns < high:
            yield stretch.cut(low, high)


class _Kept:
    """What was computed of one partition while its attempt and its frame stay as they are."""

    __slots__ = ("_lost", "account", "totals")

    LOST_KEPT = 8

    def __init__(self, partition: Partition) -> None:
        self.totals = partition.totals()
        self.account = _attempt_account(partition, self.totals)
        self._lost: dict[int | None, int] = {partition.threshold: self.totals.get(UNSAVED_TRAINING, 0)}

    def account_with(self, after: Mapping[str, float]) -> AttemptAccount:
        """The account of the attempt with what lies between it and the next one."""
        if self.account.after != after:
            self.account = msgspec.structs.replace(self.account, after=after)
        return self.account

    def lost_ns(self, partition: Partition) -> int:
        """Training that the threshold of the partition takes away, were it the one that counts."""
        lost = self._lost.get(partition.threshold)
        if lost is None:
            if len(self._lost) >= self.LOST_KEPT:
                self._lost.clear()
            lost = self._lost[partition.threshold] = partition.lost_ns()
        return lost


def _key(partition: Partition) -> tuple[int, Partition]:
    return partition.span.attempt.version, partition


def _kept(partition: Partition) -> _Kept:
    attempt, key = partition.span.attempt, _key(partition)
    if attempt.kept is None or attempt.kept[0] != key:
        attempt.kept = (key, _Kept(partition))
    kept: _Kept = attempt.kept[1]
    return kept


def account_of(job_id: str, now: float, chain: Chain) -> JobAccount:
    """Everything that is known of a job at one moment."""
    layout = chain.layout
    totals = chain.totals()
    state, since_ns = state_of(layout, chain.partitions[-1])
    loops = [span.loop_ns for span in layout.spans if span.loop_ns is not None]
    failures = _failures(chain)
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
        attempts=[
            _kept(p).account_with(in_seconds(add_up(chain.gaps[i]))) for i, p in enumerate(chain.partitions)
        ],
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


def _failures(chain: Chain) -> list[FailureAccount]:
    """One failure a failed attempt, with the training that it newly took away."""
    limits: list[int | None] = []
    failures: list[FailureAccount] = []
    for index, span in enumerate(chain.layout.spans):
        limits.append(None)
        fallback = chain.found[index]
        if fallback is None:
            continue
        unsaved_ns = newly_lost_ns(chain.partitions[: index + 1], limits, fallback.step)
        failures.append(_failure(span, fallback, unsaved_ns, _ttr_s(chain.layout.spans, index)))
    return failures


def newly_lost_ns(partitions: Sequence[Partition], limits: list[int | None], step: int | None) -> int:
    """Training taken away by a fall back to `step` beyond what `limits` took; lowers them."""
    if step is None:
        return 0
    lost = 0
    for index in range(len(partitions) - 1, -1, -1):
        limit = limits[index]
        if limit is not None and limit <= step:
            break
        before = 0 if limit is None else _lost_ns(partitions[index], limit)
        lost += _lost_ns(partitions[index], step) - before
        limits[index] = step
    return lost


def _lost_ns(partition: Partition, step: int) -> int:
    """Training of an attempt that a fall back to a step takes away."""
    kept, frame = partition.span.attempt.kept, partition._replace(threshold=step)
    if kept is None or kept[0] != _key(partition):
        return frame.lost_ns()
    lost_ns: int = kept[1].lost_ns(frame)
    return lost_ns


def _ttr_s(spans: Sequence[Span], index: int) -> float | None:
    for span in spans[index + 1 :]:
        if span.loop_ns is not None:
            return seconds(span.loop_ns - spans[index].end_ns)
    return None


def _failure(span: Span, fallback: Fallback, unsaved_ns: int, ttr_s: float | None) -> FailureAccount:
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
        ttr_s=ttr_s,
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


def _attempt_account(partition: Partition, totals: Totals) -> AttemptAccount:
    span = partition.span
    attempt = span.attempt
    info = attempt.info
    return AttemptAccount(
        attempt=attempt.number,
        start=seconds(span.start_ns),
        end=seconds(span.end_ns),
        loop_start=None if span.loop_ns is None else seconds(span.loop_ns),
        outcome=span.outcome,
        observed=span.observed,
        critical_rank=span.critical,
        leader=attempt.leader,
        world_size=info.world_size if info else 0,
        accelerators=info.accelerators if info else 0,
        accelerator_type=info.accelerator_type if info else "",
        resumed_step=attempt.begun().declared_step,
        last_step=attempt.begun().last_step,
        first_batch_at=_first_batches(attempt),
        hidden={phase: seconds(amount) for phase, amount in partition.hidden_ns().items()},
        components=in_seconds(totals),
        after={},
    )


def _first_batches(attempt: Attempt) -> dict[int, float]:
    return {
        number: seconds(rank.first_batch_ns)
        for number, rank in sorted(attempt.ranks.items())
        if rank.first_batch_ns is not None
    }


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
    partitions = [*chain.partitions[:-1], chain.partitions[-1]._replace(span=as_if)]
    limits = [p.threshold for p in chain.partitions]
    return newly_lost_ns(partitions, limits, found.step)
