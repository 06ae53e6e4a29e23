"""What lies between two attempts, and before the first one: pure functions of spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ett_core.accounting.account import Stretch
from ett_core.accounting.layout import Span
from ett_core.components import OTHER, RECOVER_ALLOCATION, RECOVER_QUEUE, RECOVER_RESTART, RECOVER_TEARDOWN


class Following(NamedTuple):
    """What follows an attempt: the next one, or the end of the job."""

    start_ns: int
    allocated_ns: int | None

    @classmethod
    def of(cls, span: Span) -> Following:
        """An attempt that follows another one."""
        return cls(span.start_ns, span.attempt.allocated_ns)


def gap_after(span: Span, following: Following) -> Iterator[Stretch]:
    """From the end of an attempt to what follows it."""
    number, end = span.attempt.number, following.start_ns
    if not span.failed:
        yield from gap(span.end_ns, end, number, OTHER)
        return
    allocated = following.allocated_ns
    torn_down = min(max(span.attempt.teardown_ns or 0, span.end_ns), end)
    yield from gap(span.end_ns, torn_down, number, RECOVER_TEARDOWN)
    if allocated is not None and allocated > span.end_ns:
        granted = min(max(allocated, torn_down), end)
        yield from gap(torn_down, granted, number, RECOVER_QUEUE)
        yield from gap(granted, end, number, RECOVER_ALLOCATION)
    else:
        yield from gap(torn_down, end, number, RECOVER_RESTART)


def gap(begin_ns: int, end_ns: int, number: int, component: str) -> Iterator[Stretch]:
    """A stretch of one component that belongs to an attempt; none where it has no length."""
    if end_ns > begin_ns:
        yield Stretch(begin_ns, end_ns, number, ((component, end_ns - begin_ns),))


def cut(stretches: Iterable[Stretch], low: int, high: int) -> Iterator[Stretch]:
    """The parts of stretches between two moments."""
    for stretch in stretches:
        if stretch.end_ns > low and stretch.start_ns < high:
            yield stretch.cut(low, high)
