"""The attempts of a job before the last one, and what was computed of them.

They stay as they are for hours. What is asked of them at every view is kept here, in small; the attempts
themselves are put away (`ett_core.accounting.sealed`), and brought back for what is rarely asked.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ett_core.accounting.account import AttemptAccount, FailureAccount, Stretch, in_seconds
from ett_core.accounting.edge import Edge, Slot
from ett_core.accounting.failure_accounts import failure_account, newly_lost_ns
from ett_core.accounting.fallback import NO_STEP, Fallback, Position, column_of, steps_of, thresholds
from ett_core.accounting.gaps import Following, gap_after
from ett_core.accounting.head import head_of
from ett_core.accounting.kept import Kept
from ett_core.accounting.layout import JobEnded, Layout, Span
from ett_core.accounting.partition import Partition, Totals, add_to, add_up, merge
from ett_core.amounts import mask_of, names_of
from ett_core.archive import IN_MEMORY, Archive, Parcel
from ett_core.packed_records import Packed

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


class Seam(NamedTuple):
    """The same while all of them but the last are put away: what they see of the last one and of the job."""

    next_start_ns: int
    next_allocated_ns: int | None
    next_loop_ns: int | None
    declared_step: int | None
    trained: bool
    spoken_ns: int | None
    found: Fallback | None
    job_ends: Sequence[JobEnded]

    @classmethod
    def of(
        cls, last: Span, spoken_ns: int | None, found: Fallback | None, job_ends: Sequence[JobEnded]
    ) -> Seam:
        """The seam before the last attempt; checkpoints were first spoken of before it at `spoken_ns`."""
        begun, spoken = last.attempt.begun(), last.attempt.checkpoint_spoken_ns
        return cls(
            last.start_ns,
            last.attempt.allocated_ns,
            last.loop_ns,
            begun.declared_step,
            begun.last_step is not None,
            min((at for at in (spoken_ns, spoken) if at is not None), default=None),
            found,
            tuple(job_ends),
        )


class Earlier:
    """The attempts before the last one, each with the gap after it."""

    __slots__ = (
        "_after",
        "_edges",
        "_limits",
        "_mask",
        "_reached",
        "_starts",
        "accounts",
        "facts",
        "failures",
        "following",
        "head",
        "partitions",
        "seam",
    )

    def __init__(self, facts: Facts, layout: Layout, archive: Archive = IN_MEMORY) -> None:
        self.facts: Facts | None = facts
        """None while the attempts are put away."""
        self.seam: Seam | None = None
        """What it all depends on while the attempts are put away."""
        self.following = Following(facts.next_start_ns, facts.next_allocated_ns)
        """What follows the last of them."""
        self._edges: list[tuple[int, Edge]] = []
        self.partitions: Sequence[Partition] = [
            Partition(span, limit, position.begin_step)
            for span, limit, position in zip(
                facts.spans, thresholds(facts.found), facts.positions, strict=False
            )
        ]
        self._starts = array("q", (span.start_ns for span in facts.spans))
        self._reached = column_of(position.reached_step for position in facts.positions)
        self.head = head_of(layout, facts.found, facts.positions, self.partitions)
        kept = [Kept(partition) for partition in self.partitions]
        gaps = [slot.gap for slot in self.slots()]
        self.accounts = Packed(
            AttemptAccount,
            [each.account_with(in_seconds(add_up(gap))) for each, gap in zip(kept, gaps, strict=True)],
            archive,
        )
        limits: list[int | None] = []
        self.failures = Packed(FailureAccount, self._failures(layout, facts.found, kept, limits), archive)
        self._limits = column_of(limits)
        self._mask, after = _sums_from_each([each.totals for each in kept], gaps)
        """Which components they have."""
        self._after = Parcel(archive, after.tobytes())
        """How much of each from each of them on."""
        self.rest()

    @property
    def limits(self) -> list[int | None]:
        """The highest step of each attempt that survives what failed before the last one."""
        return steps_of(self._limits)

    def _failures(
        self,
        layout: Layout,
        found: Sequence[Fallback | None],
        kept: Sequence[Kept],
        limits: list[int | None],
    ) -> list[FailureAccount]:
        def lost_ns(place: int, step: int) -> int:
            return kept[place].lost_ns(self.partitions[place]._replace(threshold=step))

        failures = []
        loops = [span.loop_ns for span in layout.spans]
        for place, fallback in enumerate(found[:-1]):
            limits.append(None)
            if fallback is not None:
                unsaved_ns = newly_lost_ns(lost_ns, limits, fallback.step)
                next_loop_ns = next((at for at in loops[place + 1 :] if at is not None), None)
                failures.append(failure_account(layout.spans[place], next_loop_ns, fallback, unsaved_ns))
        return failures

    def slots(self) -> Iterator[Slot]:
        """The attempts in order, each with the gap after it."""
        before = None
        for partition in self.partitions:
            if before is not None:
                yield Slot(before, tuple(gap_after(before.span, Following.of(partition.span))))
            before = partition
        if before is not None:
            yield Slot(before, tuple(gap_after(before.span, self.following)))

    def _slot(self, place: int) -> Slot:
        partition, following = self.partitions[place], self.following
        if place + 1 < len(self._starts):
            following = Following.of(self.partitions[place + 1].span)
        return Slot(partition, tuple(gap_after(partition.span, following)))

    def put_away(self, partitions: Sequence[Partition], seam: Seam) -> None:
        """From now on the attempts are brought back by `partitions`, whenever one is asked for."""
        self.facts, self.seam, self.partitions = None, seam, partitions
        self.head = self.head._replace(steps=self.head.steps._replace(partitions=partitions))

    def rest(self) -> None:
        """Let go of what was brought back of attempts that are at rest."""
        if self.seam is None:
            for partition in self.partitions:
                partition.span.attempt.rest_again()

    def totals(self, first: int = 0) -> Totals:
        """Nanoseconds by component of the attempts from one on, with the gaps after them."""
        names = names_of(self._mask)
        amounts = array("q")
        width = amounts.itemsize * len(names)
        amounts.frombytes(self._after.read(first * width, (first + 1) * width))
        return {name: amount for name, amount in zip(names, amounts, strict=True) if amount}

    def lost_ns(self, place: int, step: int) -> int:
        """Training of an attempt that a fall back to a step takes away."""
        reached = self._reached[place]
        if reached != NO_STEP and step > reached:
            return 0
        partition = self.partitions[place]
        lost = partition._replace(threshold=step).lost_ns()
        partition.span.attempt.rest_again()
        return lost

    def window_from(self, begin_ns: int) -> Totals:
        """Nanoseconds by component from a moment to the start of the last attempt."""
        first = bisect_left(self._starts, begin_ns)
        totals = self.totals(first)
        next_ns = self._starts[first] if first < len(self._starts) else self.following.start_ns
        if first and begin_ns < next_ns:
            merge(totals, self._slot_from(first - 1, begin_ns))
        return totals

    def _slot_from(self, place: int, begin_ns: int) -> Totals:
        for known, edge in self._edges:
            if known == place and edge.holds(begin_ns):
                return edge.window(begin_ns)
        slot = self._slot(place)
        edge = Edge(slot, begin_ns)
        others = [(known, each) for known, each in self._edges if not each.lies_before(begin_ns)]
        self._edges = [*others, (place, edge)][-EDGES_KEPT:]
        slot.partition.span.attempt.rest_again()
        return edge.window(begin_ns)


def _sums_from_each(totals: Sequence[Totals], gaps: Sequence[Sequence[Stretch]]) -> tuple[int, array[int]]:
    """The mask of components, and their sums over the attempts and gaps from each one on, in one column."""
    sums: Totals = {}
    rows: list[Totals] = [{}]
    for each, gap in zip(reversed(totals), reversed(gaps), strict=True):
        merge(sums, each)
        add_to(sums, gap)
        rows.append(dict(sums))
    mask = mask_of(sums)
    return mask, array("q", [row.get(name, 0) for row in reversed(rows) for name in names_of(mask)])
