"""A job's wall time as attempts and the gaps between them, and what is asked of it.

Attempts before the last one stay as they are for hours: what is computed of them is kept, in small, until
anything changes that it was computed of.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ett_core.accounting.account import FailureAccount, Stretch, in_seconds
from ett_core.accounting.edge import Edge
from ett_core.accounting.failure_accounts import failure_account, newly_lost_ns
from ett_core.accounting.fallback import Fallback, Position, fallbacks, thresholds
from ett_core.accounting.kept import Kept, kept_of
from ett_core.accounting.layout import Layout, Span
from ett_core.accounting.packed_accounts import pack
from ett_core.accounting.partition import Partition, Totals, add_to, add_up, merge
from ett_core.components import (
    COMPONENTS,
    OTHER,
    RECOVER_ALLOCATION,
    RECOVER_QUEUE,
    RECOVER_RESTART,
    RECOVER_TEARDOWN,
    START_ALLOCATION,
)

EDGES_KEPT = 3


class Facts(NamedTuple):
    """Everything that the answers about all attempts but the last depend on."""

    spans: Sequence[Span]
    versions: Sequence[int]
    found: Sequence[Fallback | None]
    """Of all attempts, the last one included: how far it falls back, it takes from those before it."""
    positions: Sequence[Position]
    next_start_ns: int
    next_allocated_ns: int | None
    next_loop_ns: int | None


class Earlier:
    """The attempts before the last one, each with the gap after it."""

    __slots__ = ("_after", "_edges", "_names", "accounts", "facts", "failures", "limits", "partitions")

    def __init__(self, facts: Facts, layout: Layout) -> None:
        self.facts = facts
        self._edges: list[Edge] = []
        limits = thresholds(facts.found)
        self.partitions = [
            Partition(span, limit, position.begin_step)
            for span, limit, position in zip(facts.spans, limits, facts.positions, strict=False)
        ]
        kept = [Kept(partition) for partition in self.partitions]
        gaps = [tuple(gap_after(layout, place)) for place in range(len(kept))]
        self.accounts = pack(
            [each.account_with(in_seconds(add_up(gap))) for each, gap in zip(kept, gaps, strict=True)]
        )
        self.limits: list[int | None] = []
        """The highest step of each attempt that survives what failed before the last one."""
        self.failures = self._failures(layout, kept)
        self._names, self._after = _sums_from_each([each.totals for each in kept], gaps)
        self.rest()

    def _failures(self, layout: Layout, kept: Sequence[Kept]) -> list[FailureAccount]:
        def lost_ns(place: int, step: int) -> int:
            return kept[place].lost_ns(self.partitions[place]._replace(threshold=step))

        failures = []
        for place in range(len(kept)):
            self.limits.append(None)
            fallback = self.facts.found[place]
            if fallback is not None:
                unsaved_ns = newly_lost_ns(lost_ns, self.limits, fallback.step)
                failures.append(failure_account(layout.spans, place, fallback, unsaved_ns))
        return failures

    def rest(self) -> None:
        """Let go of what was brought back of attempts that are at rest."""
        for partition in self.partitions:
            partition.span.attempt.rest_again()

    def totals(self, first: int = 0) -> Totals:
        """Nanoseconds by component of the attempts from one on, with the gaps after them."""
        begin = first * len(self._names)
        amounts = zip(self._names, self._after[begin : begin + len(self._names)], strict=True)
        return {name: amount for name, amount in amounts if amount}

    def lost_ns(self, place: int, step: int) -> int:
        """Training of an attempt that a fall back to a step takes away."""
        partition = self.partitions[place]
        lost = partition._replace(threshold=step).lost_ns()
        partition.span.attempt.rest_again()
        return lost

    def window_from(self, place: int, begin_ns: int) -> Totals:
        """Nanoseconds by component of an attempt from a moment in it to its end."""
        partition = self.partitions[place]
        for edge in self._edges:
            if edge.holds(partition, begin_ns):
                return edge.window(begin_ns)
        edge = Edge(partition, begin_ns)
        self._edges = [*self._edges, edge][-EDGES_KEPT:]
        partition.span.attempt.rest_again()
        return edge.window(begin_ns)


def _sums_from_each(
    totals: Sequence[Totals], gaps: Sequence[Sequence[Stretch]]
) -> tuple[Sequence[str], array[int]]:
    """Names of components, and their sums over the attempts and gaps from each one on, in one column."""
    sums: Totals = {}
    rows: list[Totals] = [{}]
    for each, gap in zip(reversed(totals), reversed(gaps), strict=True):
        merge(sums, each)
        add_to(sums, gap)
        rows.append(dict(sums))
    names = tuple(component for component in COMPONENTS if component in sums)
    return names, array("q", [row.get(name, 0) for row in reversed(rows) for name in names])


class Chain(NamedTuple):
    """A job's wall time as attempts and the gaps between them."""

    layout: Layout
    found: Sequence[Fallback | None]
    earlier: Earlier
    last: Partition

    @classmethod
    def of(cls, layout: Layout, known: Earlier | None = None) -> Chain:
        """Share out every span of a layout; `known` is of an earlier one of the same job."""
        found, positions = fallbacks(layout.spans)
        before, last = layout.spans[:-1], layout.spans[-1]
        facts = Facts(
            before,
            [span.attempt.version for span in before],
            found,
            positions[:-1],
            last.start_ns,
            last.attempt.allocated_ns,
            last.loop_ns,
        )
        earlier = known if known is not None and known.facts == facts else Earlier(facts, layout)
        layout = layout._replace(spans=[*earlier.facts.spans, last])
        return cls(layout, found, earlier, Partition(last, thresholds(found)[-1], positions[-1].begin_step))

    @property
    def partitions(self) -> Sequence[Partition]:
        """The attempts in order."""
        return [*self.earlier.partitions, self.last]

    def _opening(self) -> Iterator[Stretch]:
        """From the beginning of the wall time to the first attempt."""
        first = self.layout.spans[0]
        return _gap(self.layout.start_ns, first.start_ns, first, START_ALLOCATION)

    def last_gap(self) -> Iterator[Stretch]:
        """From the end of the last attempt to the end of the job."""
        return gap_after(self.layout, len(self.layout.spans) - 1)

    def lost_ns(self, place: int, step: int) -> int:
        """Training of an attempt that a fall back to a step takes away."""
        if place < len(self.earlier.partitions):
            return self.earlier.lost_ns(place, step)
        return kept_of(self.last).lost_ns(self.last._replace(threshold=step))

    def totals(self) -> Totals:
        """Nanoseconds by component; together they are the wall time."""
        totals = self.earlier.totals()
        add_to(totals, self._opening())
        merge(totals, kept_of(self.last).totals)
        add_to(totals, self.last_gap())
        return totals

    def stretches(self, begin_ns: int | None = None, end_ns: int | None = None) -> Iterator[Stretch]:
        """The partition in time order, cut to the wall time and to [`begin_ns`, `end_ns`]."""
        low = self.layout.start_ns if begin_ns is None else begin_ns
        high = self.layout.end_ns if end_ns is None else end_ns
        yield from _cut(self._opening(), low, high)
        for place, partition in enumerate(self.partitions):
            if partition.span.end_ns > low and partition.span.start_ns < high:
                yield from partition.stretches(low, high)
            yield from _cut(gap_after(self.layout, place), low, high)
        self.earlier.rest()

    def window(self, begin_ns: int, end_ns: int) -> Totals:
        """Nanoseconds by component between two moments."""
        span = self.last.span
        if end_ns < span.start_ns:
            return self._within_earlier(begin_ns, end_ns)
        totals = add_up(_cut(self.last_gap(), begin_ns, end_ns))
        if begin_ns <= span.start_ns and span.end_ns <= end_ns:
            merge(totals, kept_of(self.last).totals)
        elif span.end_ns > begin_ns and span.start_ns < end_ns:
            merge(totals, self.last.window(begin_ns, end_ns))
        if begin_ns < span.start_ns:
            merge(totals, self._before_last(begin_ns))
        return totals

    def _within_earlier(self, begin_ns: int, end_ns: int) -> Totals:
        """Nanoseconds by component between two moments before the last attempt."""
        totals = add_up(_cut(self._opening(), begin_ns, end_ns))
        for place, partition in enumerate(self.earlier.partitions):
            add_to(totals, _cut(gap_after(self.layout, place), begin_ns, end_ns))
            if partition.span.end_ns > begin_ns and partition.span.start_ns < end_ns:
                merge(totals, partition.window(begin_ns, end_ns))
        self.earlier.rest()
        return totals

    def _before_last(self, begin_ns: int) -> Totals:
        """Nanoseconds by component from a moment to the start of the last attempt."""
        earlier, spans = self.earlier, self.layout.spans
        first = bisect_left(spans, begin_ns, 0, len(spans) - 1, key=_start_ns)
        totals = earlier.totals(first)
        if not first:
            add_to(totals, _cut(self._opening(), begin_ns, spans[0].start_ns))
            return totals
        span = spans[first - 1]
        add_to(totals, _cut(gap_after(self.layout, first - 1), begin_ns, spans[first].start_ns))
        if span.end_ns > begin_ns:
            merge(totals, earlier.window_from(first - 1, begin_ns))
        return totals


def _start_ns(span: Span) -> int:
    return span.start_ns


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
