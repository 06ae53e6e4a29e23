"""Rows of the query API to the tables and bars that the pages show. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import pandas as pd

from ett_core.accounting.account import AttemptAccount
from ett_core.components import COMPONENTS, TRAINING, area_of, group_of, meaning_of
from ett_core.urgency import severity
from ett_dashboard.rows import CheckpointRow, StretchRow
from ett_dashboard.words import tenths

COLUMNS = 600
"""As many parts of the time as the eye can tell apart in a chart."""
COARSEST = 6
"""Stretches of one mixture are joined up to this many times the least length."""


class Share(msgspec.Struct, frozen=True):
    """One component's part of a job's wall time; `percent` adds up to 100.0 over a partition."""

    component: str
    group: str
    seconds: float
    percent: float
    meaning: str


class Bar(msgspec.Struct, frozen=True):
    """A rectangle of the timeline: a component's share of one stretch of an attempt.

    `start` and `end` are Unix seconds; `low` and `high` its place in the lane, 0 to 1. `within`: seconds
    of all components of the stretch.
    """

    attempt: int
    component: str
    start: float
    end: float
    low: float
    high: float
    seconds: float
    within: Mapping[str, float] = {}


def partition(components: Mapping[str, float]) -> list[Share]:
    """Seconds and percent by component, in display order; percentages add up to 100.0."""
    known = {name: components[name] for name in COMPONENTS if components.get(name)}
    percents = tenths(known, keep=TRAINING)
    return [
        Share(name, group_of(name), amount, percents[name], meaning_of(name))
        for name, amount in known.items()
    ]


def whole_of(shares: Sequence[Share]) -> Share:
    """All of a partition in one row."""
    seconds, points = sum(share.seconds for share in shares), sum(share.percent for share in shares)
    return Share("all", "", seconds, points, "all of this time")


def partition_frame(components: Mapping[str, float]) -> pd.DataFrame:
    """The partition as a table to take away, with exact seconds."""
    rows = [
        {
            "component": share.component,
            "group": share.group,
            "area": area_of(share.component),
            "seconds": share.seconds,
            "percent": share.percent,
            "meaning": share.meaning,
        }
        for share in partition(components)
    ]
    return pd.DataFrame(rows, columns=["component", "group", "area", "seconds", "percent", "meaning"])


def losses(components: Mapping[str, float], most: int = 8) -> list[Share]:
    """The largest components that are no training, largest first."""
    lost = [share for share in partition(components) if share.component != TRAINING]
    return sorted(lost, key=lambda share: -share.seconds)[:most]


def states(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """State and number of jobs, those that hurt most first."""
    return sorted(counts.items(), key=lambda item: (-severity(item[0]), -item[1], item[0]))


def merged(timeline: Sequence[StretchRow], least_s: float) -> list[StretchRow]:
    """The timeline with neighbours joined that show the same or are together no longer than `least_s`."""
    result: list[StretchRow] = []
    for stretch in timeline:
        before = result[-1] if result else None
        if before is not None and _joins(before, stretch, least_s):
            result[-1] = _joined(before, stretch)
        elif stretch.end > stretch.start:
            result.append(stretch)
    return result


def bars(
    timeline: Sequence[StretchRow], columns: int = COLUMNS, finest: float = 0.0, span_s: float | None = None
) -> list[Bar]:
    """The rectangles of the timeline; a stretch is cut across its lane by its shares.

    Neighbours are joined that together take less than one of `columns` parts of `span_s` (None: of all).
    Shares of a stretch below `finest` are drawn as what it mostly is.
    """
    if not timeline:
        return []
    span_s = timeline[-1].end - timeline[0].start if span_s is None else span_s
    return [bar for stretch in merged(timeline, span_s / columns) for bar in _cut(stretch, finest)]


def stages(compile_s: Mapping[str, float]) -> list[tuple[str, float]]:
    """Stages of compilation with their seconds, longest first."""
    return sorted(compile_s.items(), key=lambda stage: (-stage[1], stage[0]))


class FirstBatch(msgspec.Struct, frozen=True):
    """When a rank had its first batch, in seconds from the start; `role`: what it is known for."""

    rank: int
    after_s: float
    role: str


def first_batches(attempt: AttemptAccount) -> list[FirstBatch]:
    """The first batches of an attempt, last to start first."""
    return [
        FirstBatch(rank, at - attempt.start, _role(rank, attempt))
        for rank, at in sorted(attempt.first_batch_at.items(), key=lambda item: (-item[1], item[0]))
    ]


def fate(save: CheckpointRow) -> str:
    """What became of a save."""
    return "failed" if save.failed else "durable" if save.durable_at is not None else "on its way"


def latest_saves(saves: Sequence[CheckpointRow]) -> list[CheckpointRow]:
    """Saves, the latest first."""
    return sorted(saves, key=lambda save: -save.time)


def _joins(before: StretchRow, stretch: StretchRow, least_s: float) -> bool:
    if before.attempt != stretch.attempt or stretch.start > before.end + least_s:
        return False
    length = stretch.end - before.start
    alike = before.components.keys() == stretch.components.keys()
    return length <= least_s or (alike and (len(stretch.components) == 1 or length < COARSEST * least_s))


def _joined(one: StretchRow, two: StretchRow) -> StretchRow:
    names = [*one.components, *(name for name in two.components if name not in one.components)]
    amounts = {name: one.components.get(name, 0.0) + two.components.get(name, 0.0) for name in names}
    return StretchRow(start=one.start, end=two.end, attempt=one.attempt, components=amounts)


def _cut(stretch: StretchRow, finest: float) -> Iterable[Bar]:
    amounts = stretch.components
    least = min(finest * sum(amounts.values()), max(amounts.values(), default=0.0))
    kept = {name: amounts[name] for name in sorted(amounts, key=_place) if amounts[name] >= least}
    total = sum(kept.values()) or 1.0
    low = 0.0
    for name, amount in kept.items():
        high = low + amount / total
        yield Bar(stretch.attempt, name, stretch.start, stretch.end, low, high, amount, amounts)
        low = high


def _place(component: str) -> int:
    return COMPONENTS.index(component) if component in COMPONENTS else len(COMPONENTS)


def _role(rank: int, attempt: AttemptAccount) -> str:
    roles = (("held up the start", attempt.critical_rank), ("leads the loop", attempt.leader))
    return ", ".join(words for words, holder in roles if holder == rank)
