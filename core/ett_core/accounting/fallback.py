"""What failures took away: the step a job fell back to, and the training lost by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ett_core.accounting.layout import Span

REPORTED, DURABLE, UNKNOWN = "reported", "durable", "unknown"


class Fallback(NamedTuple):
    """The step that a failed attempt fell back to (None: unknown) and how that is known."""

    step: int | None
    evidence: str


class Position(NamedTuple):
    """The step an attempt began at and the highest it had reached, None where unknown."""

    begin_step: int | None
    reached_step: int | None


def fallbacks(spans: Sequence[Span]) -> tuple[list[Fallback | None], list[Position]]:
    """For each attempt its fallback (None where it did not fail) and its position in steps."""
    declared = [span.attempt.begun().declared_step for span in spans]
    said_next = _said_by_next(spans, declared)
    spoken = min(
        (s.attempt.checkpoint_spoken_ns for s in spans if s.attempt.checkpoint_spoken_ns is not None),
        default=None,
    )
    found: list[Fallback | None] = []
    positions: list[Position] = []
    for index, span in enumerate(spans):
        begin = declared[index]
        if begin is None:
            begin = _carried_on(found[-1], positions[-1]) if found else 0
        reached = _highest(begin, span.attempt.reached_step)
        positions.append(Position(begin, reached))
        if not span.failed:
            found.append(None)
        elif (said := said_next[index]) is not None:
            found.append(Fallback(said, REPORTED))
        elif spoken is None or spoken > span.end_ns:
            found.append(Fallback(None, UNKNOWN))
        else:
            found.append(Fallback(highest_durable(spans[: index + 1], span.end_ns, reached or 0), DURABLE))
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


def highest_durable(spans: Sequence[Span], by_ns: int, reached_step: int) -> int:
    """The highest step durable by a moment that had been reached; 0 where there is none."""
    return max((span.attempt.highest_durable(by_ns, reached_step) for span in spans), default=0)


def thresholds(found: Sequence[Fallback | None]) -> list[int | None]:
    """The highest step of each attempt that survives it and everything later; None: all."""
    lowest: int | None = None
    result: list[int | None] = []
    for fallback in reversed(found):
        if fallback is not None and fallback.step is not None:
            lowest = fallback.step if lowest is None else min(lowest, fallback.step)
        result.append(lowest)
    return result[::-1]


def weakest(found: Sequence[Fallback | None]) -> str | None:
    """The weakest evidence among the fallbacks; None where nothing failed."""
    kinds = {fallback.evidence for fallback in found if fallback is not None}
    return next((kind for kind in (UNKNOWN, DURABLE, REPORTED) if kind in kinds), None)
