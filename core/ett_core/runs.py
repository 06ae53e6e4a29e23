"""Events that came in a row from one source, to be folded together: pure.

A writer sends what one rank told; what many of its events have in common is looked up once. Reports of
progress, by far the most of them, become rows of numbers within bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from ett_core.events import AnyEvent, Progress
from ett_core.named_sums import LARGEST_VALUE, bounded

LARGEST_AMOUNT_S = 1e9
"""No report counts more seconds than these."""
NO_BUCKETS: dict[int, int] = {}

Refuse: TypeAlias = Callable[[AnyEvent, BaseException], None]
"""Told of an event that cannot be taken in, and why."""
Row: TypeAlias = tuple[float, float, int, float, int, float, float, float, dict[int, int]]
"""One report: when it ended and when its first step began (Unix seconds), steps, samples; of these steps
how many were timed, their seconds, the longest, seconds waited for data, steps by bucket of duration."""


def runs_of(events: Sequence[AnyEvent]) -> Iterator[Sequence[AnyEvent]]:
    """Events that follow each other and are of one writer, attempt, rank and node.

    >>> from ett_core.events import Heartbeat
    >>> told = [Heartbeat(job_id="j", writer="w", seq=seq, attempt=0, rank=rank, time=1.0)
    ...         for seq, rank in enumerate((0, 0, 1))]
    >>> [len(run) for run in runs_of(told)]
    [2, 1]
    """
    begin, writer, attempt, rank, node = 0, "", 0, 0, ""
    for place, event in enumerate(events):
        if (
            event.rank != rank
            or event.attempt != attempt
            or event.writer != writer
            or event.node != node
            or not place
        ):
            if place:
                yield events[begin:place]
            begin, writer, attempt, rank, node = place, event.writer, event.attempt, event.rank, event.node
    if events:
        yield events[begin:]


def rows_of(reports: Sequence[Progress], refuse: Refuse) -> list[Row]:
    """The reports as rows, but for those that hold no numbers: these are refused.

    >>> from ett_core.events import StepSeconds
    >>> times = StepSeconds(count=5, sum=4.0, max=0.9)
    >>> report = Progress(job_id="j", writer="w", seq=0, attempt=0, rank=0, time=100.0, step=9, steps=5,
    ...                   samples=8.0, data_wait_s=1.0, step_seconds=times)
    >>> rows_of([report], refuse=print)
    [(100.0, 95.0, 5, 8.0, 5, 4.0, 0.9, 1.0, {})]
    """
    rows: list[Row] = []
    for report in reports:
        try:
            end, samples, times, wait_s = report.time, report.samples, report.step_seconds, report.data_wait_s
            if not 0.0 <= samples <= LARGEST_VALUE:
                samples = bounded(samples)
            if not 0.0 <= wait_s <= LARGEST_AMOUNT_S:
                wait_s = min(max(wait_s, 0.0), LARGEST_AMOUNT_S)
            if times is None:
                rows.append((end, end, report.steps, samples, 0, 0.0, 0.0, wait_s, NO_BUCKETS))
                continue
            step_s, max_s = times.sum, times.max
            if not (step_s <= LARGEST_AMOUNT_S and max_s <= LARGEST_AMOUNT_S):
                step_s, max_s = min(step_s, LARGEST_AMOUNT_S), min(max_s, LARGEST_AMOUNT_S)
            begin = end - step_s - wait_s
            rows.append(
                (end, begin, report.steps, samples, times.count, step_s, max_s, wait_s, times.buckets)
            )
        except Exception as error:  # noqa: BLE001 - one event must not take away all others
            refuse(report, error)
    return rows
