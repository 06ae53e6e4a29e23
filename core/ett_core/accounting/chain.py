"""A job's wall time as attempts and the gaps between them, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ett_core.accounting.account import Stretch
from ett_core.accounting.earlier import Earlier, Facts, Seam
from ett_core.accounting.edge import Slot
from ett_core.accounting.fallback import Fallback, fallbacks, thresholds
from ett_core.accounting.gaps import Following, cut, gap, gap_after
from ett_core.accounting.head import Head
from ett_core.accounting.kept import kept_of
from ett_core.accounting.layout import JobEnded, Layout
from ett_core.accounting.partition import Partition, Totals, add_to, add_up, merge
from ett_core.archive import IN_MEMORY, Archive
from ett_core.components import START_ALLOCATION


class Chain(NamedTuple):
    """A job's wall time as attempts and the gaps between them."""

    layout: Layout
    earlier: Earlier
    last: Partition
    found: Fallback | None
    """How far the last attempt fell back, where it has failed."""

    @classmethod
    def of(cls, layout: Layout, known: Earlier | None = None, archive: Archive = IN_MEMORY) -> Chain:
        """Share out every span of a layout; `known` is of an earlier one of the same job.

        `archive` keeps what is rarely needed of the attempts before the last one.
        """
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
        earlier = known if known is not None and known.facts == facts else Earlier(facts, layout, archive)
        return cls(
            layout, earlier, Partition(last, thresholds(found)[-1], positions[-1].begin_step), found[-1]
        )

    @classmethod
    def after(cls, earlier: Earlier, layout: Layout, job_ends: Sequence[JobEnded]) -> Chain | None:
        """Share out the last span where all others are put away; None where they must be looked at again."""
        (last,) = layout.spans
        (found,), (position,) = fallbacks(layout.spans, earlier.head.steps)
        if earlier.seam != Seam.of(last, earlier.head.steps.spoken_ns, found, job_ends):
            return None
        return cls(layout, earlier, Partition(last, thresholds([found])[0], position.begin_step), found)

    def seam(self, job_ends: Sequence[JobEnded]) -> Seam:
        """What the earlier attempts depend on beside themselves."""
        return Seam.of(self.last.span, self.head.steps.spoken_ns, self.found, job_ends)

    @property
    def head(self) -> Head:
        """The earlier attempts in sum."""
        return self.earlier.head

    def _opening(self) -> Iterator[Stretch]:
        """From the beginning of the wall time to the first attempt."""
        first_ns, number = self.head.first_start_ns, self.head.first_number
        if not self.head.attempts:
            first_ns, number = self.last.span.start_ns, self.last.span.attempt.number
        return gap(self.layout.start_ns, first_ns, number, START_ALLOCATION)

    def last_gap(self) -> Iterator[Stretch]:
        """From the end of the last attempt to the end of the job."""
        return gap_after(self.last.span, Following(self.layout.end_ns, None))

    def lost_ns(self, place: int, step: int) -> int:
        """Training of an attempt that a fall back to a step takes away."""
        if place < self.head.attempts:
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
        yield from cut(self._opening(), low, high)
        for slot in self.earlier.slots():
            yield from _stretches(slot.partition, low, high)
            yield from cut(slot.gap, low, high)
        self.earlier.rest()
        yield from _stretches(self.last, low, high)
        yield from cut(self.last_gap(), low, high)

    def window(self, begin_ns: int, end_ns: int) -> Totals:
        """Nanoseconds by component between two moments."""
        span = self.last.span
        if end_ns < span.start_ns:
            return self.windows((begin_ns, end_ns))[0]
        totals = add_up(cut(self.last_gap(), begin_ns, end_ns))
        if begin_ns <= span.start_ns and span.end_ns <= end_ns:
            merge(totals, kept_of(self.last).totals)
        elif span.end_ns > begin_ns and span.start_ns < end_ns:
            merge(totals, self.last.window(begin_ns, end_ns))
        if begin_ns < span.start_ns:
            add_to(totals, cut(self._opening(), begin_ns, end_ns))
            merge(totals, self.earlier.window_from(begin_ns))
        return totals

    def windows(self, edges_ns: Sequence[int]) -> list[Totals]:
        """Nanoseconds by component in each part between moments that follow each other."""
        slots = list(self.earlier.slots()) if edges_ns[0] < self.last.span.start_ns else []
        slots.append(Slot(self.last, tuple(self.last_gap())))
        found = [self._within(slots, low, high) if low < high else {} for low, high in pairwise(edges_ns)]
        self.earlier.rest()
        return found

    def _within(self, slots: Sequence[Slot], low: int, high: int) -> Totals:
        """Nanoseconds by component between two moments, in some slots and before the first attempt."""
        totals = add_up(cut(self._opening(), low, high))
        for partition, after in slots:
            span = partition.span
            if partition is self.last and low <= span.start_ns and span.end_ns <= high:
                merge(totals, kept_of(partition).totals)
            elif span.end_ns > low and span.start_ns < high:
                merge(totals, partition.window(low, high))
            add_to(totals, cut(after, low, high))
        return totals


def _stretches(partition: Partition, low: int, high: int) -> Iterator[Stretch]:
    if partition.span.end_ns > low and partition.span.start_ns < high:
        yield from partition.stretches(low, high)
