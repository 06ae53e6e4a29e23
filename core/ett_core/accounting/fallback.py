"""What failures took away: the step a job fell back to, and the training lost by it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ett_core.accounting.layout import Span

if TYPE_CHECKING:
    from ett_core.accounting.partition import Partition

REPORTED, DURABLE, UNKNOWN = "reported", "durable", "unknown"


NO_STEP = -1
"""In columns of steps, for none."""


def column_of(steps: Iterable[int | None]) -> array[int]:
    """Steps in a column.

    >>> steps_of(column_of([7, None]))
    [7, None]
    """
    return array("q", [NO_STEP if step is None else step for step in steps])


def steps_of(column: array[int]) -> list[int | None]:
    """The steps of a column."""
    return [None if step == NO_STEP else step for step in column]


class Fallback(NamedTuple):
    """The step that a failed attempt fell back to (None: unknown) and how that is known."""

    step: int | None
    evidence: str


class Position(NamedTuple):
    """The step an attempt began at and the highest it had reached, None where unknown."""

    begin_step: int | None
    reached_step: int | None


class Steps(NamedTuple):
    """What attempts that are put away say of steps; times are nanoseconds."""

    found: Fallback | None
    """The fallback and the position of the last of them."""
    position: Position | None
    spoken_ns: int | None
    """When checkpoints were first spoken of."""
    durable_step: int
    """The highest durable step, -1 without one."""
    durable_ns: int
    """When the last step became durable."""
    partitions: Sequence[Partition]
    """Where the rest can be asked."""

    def highest_durable(self, by_ns: int, reached_step: int) -> int:
        """The highest step durable by a moment that is not above another; 0 without one."""
        if by_ns >= self.durable_ns and reached_step >= self.durable_step:
            return max(self.durable_step, 0)
        told = (each.span.attempt.highest_durable(by_ns, reached_step) for each in self.partitions)
        return max(told, default=0)


NO_STEPS = Steps(None, None, None, -1, 0, ())


def fallbacks(
    spans: Sequence[Span], before: Steps = NO_STEPS
) -> tuple[list[Fallback | None], list[Position]]:
    """For each attempt its fallback (None where it did not fail) and its position in steps."""
    declared = [span.attempt.begun().declared_step for span in spans]
    said_next = _said_by_next(spans, declared)
    told = (before.spoken_ns, *(span.attempt.checkpoint_spoken_ns for span in spans))
    spoken = min((at_ns for at_ns in told if at_ns is not None), default=None)
    last_found, last_position = before.found, before.position
    found: list[Fallback | None] = []
    positions: list[Position] = []
    for index, span in enumerate(spans):
        begin = declared[index]
        if begin is None:
            begin = 0 if last_position is None else _carried_on(last_found, last_position)
        reached = _highest(begin, span.attempt.reached_step)
        positions.append(Position(begin, reached))
        if not span.failed:
            found.append(None)
        elif (said := said_next[index]) is not None:
            found.append(Fallback(said, REPORTED))
        elif spoken is None or spoken > span.end_ns:
            found.append(Fallback(None, UNKNOWN))
        else:
            step = highest_durable(spans[: index + 1], span.end_ns, reached or 0, before)
            found.append(Fallback(step, DURABLE))
        last_found, last_position = found[-1], positions[-1]
    return found, positions


def _said_by_next(spans: Sequence[Span], declared: Sequence[int | None]) -> list[int | None]:
    """The step that the next attempt says it continues from, up to the first that trained."""
    said: list[int | None] = [None] * len(spans)
    for index in range(len(spans) - 2, -1, -1):
        trained = spans[index + 1].attempt.begun().last_step is not None
        own = declared[index + 1]
        said[index] = own if own is not None or trained else said[index + 1]
    return said


def _carried_on(before: Fallback | None, position: Position) -> int | None:
    return position.reached_step if before is None else before.step


def _highest(*steps: int | None) -> int | None:
    return max((step for step in steps if step is not None), default=None)


def highest_durable(spans: Sequence[Span], by_ns: int, reached_step: int, before: Steps = NO_STEPS) -> int:
    """The highest step durable by a moment that had been reached; 0 where there is none."""
    told = (span.attempt.highest_durable(by_ns, reached_step) for span in spans)
    return max(before.highest_durable(by_ns, reached_step), *told)


def thresholds(found: Sequence[Fallback | None]) -> list[int | None]:
    """The highest step of each attempt that survives it and everything later; None: all."""
    lowest: int | None = None
    result: list[int | None] = []
    for fallback in reversed(found):
        if fallback is not None and fallback.step is not None:
            lowest = fallback.step if lowest is None else min(lowest, fallback.step)
        result.append(lowest)
    return result[::-1]


def weakest(evidence: Iterable[str | None]) -> str | None:
    """The weakest evidence of fallbacks; None where there is none."""
    kinds = set(evidence)
    return next((kind for kind in (UNKNOWN, DURABLE, REPORTED) if kind in kinds), None)
