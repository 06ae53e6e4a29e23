"""What happened one after another in a start or a recovery, from the timeline of a job. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile

import msgspec

from ett_core.accounting.account import AttemptAccount, FailureAccount
from ett_core.components import COMPONENTS, INIT_PHASES
from ett_dashboard.rows import JobDetail, StretchRow

SAME_MOMENT_S = 1e-3
_PREFIXES = ("start", "recover")
_INITIALISATION = frozenset(
    f"{prefix}.{part}" for prefix in _PREFIXES for part in ("process_start", *INIT_PHASES, "other")
)
_FIRST = _INITIALISATION | {"start.allocation"}


class Step(msgspec.Struct, frozen=True):
    """One component of a stretch of time.

    `spans`: seconds from the beginning of that time to where it owns time, and for how long, in order.
    """

    component: str
    spans: tuple[tuple[float, float], ...]

    @property
    def seconds(self) -> float:
        """How long it took in all."""
        return sum(length for _, length in self.spans)


class Span(msgspec.Struct, frozen=True):
    """A stretch that a component owned: since when (Unix seconds), how long after the beginning."""

    attempt: int
    component: str
    begin: float
    after_s: float
    seconds: float


class Start(msgspec.Struct, frozen=True):
    """An attempt and when its start began and ended (Unix seconds); the first one's holds the allocation.

    Without a loop so far its start lasts until the attempt ended, or until now.
    """

    attempt: AttemptAccount
    begin: float
    end: float

    @property
    def took_s(self) -> float | None:
        """Seconds to its loop; None without one."""
        return None if self.attempt.loop_start is None else self.end - self.begin

    @property
    def behind_s(self) -> float | None:
        """How long after the first rank the last one had its first batch; None where ranks are unknown."""
        moments = self.attempt.first_batch_at.values()
        return max(moments) - min(moments) if len(moments) > 1 else None


def starts(job: JobDetail) -> list[Start]:
    """The starts of all attempts, in order."""
    return [
        Start(
            attempt,
            job.start if number == 0 else attempt.start,
            attempt.end if attempt.loop_start is None else attempt.loop_start,
        )
        for number, attempt in enumerate(job.attempt_list)
    ]


def steps_of_start(job: JobDetail, start: Start) -> list[Step]:
    """What a start was made of."""
    return steps(job.timeline, start.begin, start.end)


def steps_of_recovery(job: JobDetail, failure: FailureAccount) -> list[Step]:
    """What a recovery was made of so far: from the failure to the next loop, over attempts in between."""
    return steps(job.timeline, *time_of_recovery(job, failure))


def time_of_recovery(job: JobDetail, failure: FailureAccount) -> tuple[float, float]:
    """From a failure to the next loop, or to what is known of a job without one since (Unix seconds)."""
    return failure.time, job.end if failure.ttr_s is None else failure.time + failure.ttr_s


def steps(timeline: Sequence[StretchRow], begin: float, end: float) -> list[Step]:
    """The components between two moments, in the order in which they first owned time.

    >>> line = [StretchRow(start=0, end=3, attempt=0, components={"start.model_init": 3.0})]
    >>> steps(line, 1.0, 9.0)
    [Step(component='start.model_init', spans=((0.0, 2.0),))]
    """
    found: dict[str, list[tuple[float, float]]] = {}
    first = bisect_right(timeline, begin, key=lambda stretch: stretch.end)
    for stretch in takewhile(lambda stretch: stretch.start < end, islice(timeline, first, None)):
        for component, low, high in _laid(stretch):
            since, until = max(low, begin) - begin, min(high, end) - begin
            if until > since:
                _add(found.setdefault(component, []), since, until)
    return [
        Step(component, tuple((since, until - since) for since, until in spans))
        for component, spans in found.items()
    ]


def spans(attempt: int, begin: float, known: Sequence[Step]) -> list[Span]:
    """The bars of a waterfall one by one, in order of time.

    >>> spans(0, 100.0, [Step("compile", ((0.0, 2.0), (5.0, 1.0))), Step("model", ((2.0, 3.0),))])[1]
    Span(attempt=0, component='model', begin=102.0, after_s=2.0, seconds=3.0)
    """
    found = [
        Span(attempt, step.component, begin + after_s, after_s, seconds)
        for step in known
        for after_s, seconds in step.spans
    ]
    return sorted(found, key=lambda span: span.after_s)


def _add(spans: list[tuple[float, float]], since: float, until: float) -> None:
    if spans and since - spans[-1][1] < SAME_MOMENT_S:
        spans[-1] = (spans[-1][0], until)
    else:
        spans.append((since, until))


def _laid(stretch: StretchRow) -> Iterable[tuple[str, float, float]]:
    """The shares of a stretch one after another: a start comes before its loop, a gap after it."""
    at = stretch.start
    for component in sorted(stretch.components, key=_place):
        until = at + stretch.components[component]
        yield component, at, until
        at = until


def _place(component: str) -> tuple[int, int]:
    part = 0 if component in _FIRST else 2 if component.startswith("recover.") else 1
    return part, COMPONENTS.index(component) if component in COMPONENTS else len(COMPONENTS)
