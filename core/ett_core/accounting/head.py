"""What the attempts before the last one say, in sum, to whoever asks about the whole job."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from ett_core.accounting.fallback import NO_STEPS, Fallback, Position, Steps, column_of, thresholds, weakest
from ett_core.accounting.layout import Before, Layout, Span
from ett_core.accounting.partition import Partition


class Head(NamedTuple):
    """The attempts before the last one, in sum; times are nanoseconds."""

    attempts: int
    """How many they are."""
    first_start_ns: int
    first_number: int
    before: Before | None
    """What they leave to be laid out; None where there are none."""
    steps: Steps
    first_loop_ns: int | None
    recovering_since_ns: int | None
    """Since when the job has not trained, where one failed after the last one that did."""
    survived: int
    last_progress_ns: int | None
    evidence: str | None
    """The weakest of their fallbacks."""
    limits: array[int]
    """The highest step of each that survives all failures of the job, in a column."""


NO_HEAD = Head(0, 0, 0, None, NO_STEPS, None, None, 0, None, None, column_of(()))


def head_of(
    layout: Layout,
    found: Sequence[Fallback | None],
    positions: Sequence[Position],
    partitions: Sequence[Partition],
) -> Head:
    """The sum of all spans of a layout but the last, which is among those of `found`."""
    spans = layout.spans[:-1]
    if not spans:
        return NO_HEAD
    attempts = [span.attempt for span in spans]
    spoken = [a.checkpoint_spoken_ns for a in attempts if a.checkpoint_spoken_ns is not None]
    progress = [a.last_progress_ns for a in attempts if a.last_progress_ns is not None]
    begun = [a.begun() for a in attempts]
    return Head(
        len(spans),
        spans[0].start_ns,
        attempts[0].number,
        Before(
            layout.start_ns,
            spans[-1].start_ns,
            max(a.last_ns for a in attempts),
            any(span.failed for span in spans),
        ),
        Steps(
            found[-2],
            positions[-1],
            min(spoken, default=None),
            max(each.durable_step for each in begun),
            max(each.durable_ns for each in begun),
            partitions,
        ),
        next((span.loop_ns for span in spans if span.loop_ns is not None), None),
        _recovering_since_ns(spans),
        sum(a.survived for a in attempts),
        max(progress, default=None),
        weakest(each.evidence for each in found[:-1] if each is not None),
        column_of(thresholds(found)[:-1]),
    )


def _recovering_since_ns(spans: Sequence[Span]) -> int | None:
    failed = [span.end_ns for span in spans if span.failed]
    if not failed:
        return None
    trained_until = max((span.end_ns for span in spans if span.loop_ns is not None), default=0)
    return min((at for at in failed if at >= trained_until), default=failed[-1])
