"""Failures by class from counters of the fleet. Pure.

Failures one by one, their jobs, nodes and evidence are in no metric. Numbers are what counters grew by,
as the server estimates it between scrapes, rounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ett_dashboard.failures.rows import FailureBucket, FailureGroup, Failures
from ett_dashboard.prometheus.answers import Line, Sample, by_label, lacks
from ett_dashboard.prometheus.promql import Series, among, equals

COUNTED, LOST = "ett_fleet_failures_total", "ett_fleet_lost_accelerator_seconds_total"
BY = "failure_class"
OF_JOBS = ("team", "model", "scheduler", "purpose", "text", "node")


def grown(series: Series, name: str, asked: Mapping[str, str], within_s: float) -> str:
    """By how much a counter grew in so many seconds, by class.

    Raises:
        LacksError: failures are chosen as no counter of the fleet does.
    """
    if chosen := [name for name in OF_JOBS if asked.get(name)]:
        raise lacks(f"choosing failures by {' and '.join(chosen)}")
    matchers = [equals(label, asked[label]) for label in (BY, "domain") if asked.get(label)]
    if clusters := asked.get("cluster"):
        matchers.append(among("cluster", clusters.split(",")))
    return f"sum by ({BY}) (increase({series.of(name, *matchers)}[{within_s:.0f}s])) > 0"


def failures(
    counted: Sequence[Sample],
    lost: Sequence[Sample],
    over_time: Sequence[FailureBucket],
    order: str,
    as_of: float,
) -> Failures:
    """Classes with their shares, largest first by `order` (`lost` or `count`)."""
    counts = {name: round(value) for name, value in by_label(counted, BY).items() if round(value)}
    costs = by_label(lost, BY)
    total, total_s = sum(counts.values()), sum(costs.get(name, 0.0) for name in counts)
    rank = counts if order == "count" else costs
    names = sorted(counts, key=lambda name: (-rank.get(name, 0.0), name))
    groups, before = [], 0.0
    for name in names:
        share = costs.get(name, 0.0) / total_s if total_s else None
        before += (counts[name] / total) if order == "count" else (share or 0.0)
        groups.append(
            FailureGroup(
                key=name,
                count=counts[name],
                lost_ratio=share,
                count_ratio=counts[name] / total,
                cumulative_ratio=before,
                lost_accelerator_s=costs.get(name, 0.0),
            )
        )
    return Failures(
        as_of=as_of,
        failures=(),
        total=total,
        lost_accelerator_s=total_s,
        groups=groups,
        over_time=over_time,
        is_listed=False,
    )


def buckets(
    counted: Sequence[Line], lost: Sequence[Line], parts: int, size_s: float, end: float
) -> list[FailureBucket]:
    """Equal parts up to `end`, from lines that have at the end of each what came within it."""
    counts, costs = _by_part(counted, parts, size_s, end), _by_part(lost, parts, size_s, end)
    return [
        FailureBucket(
            begin=end - (parts - place) * size_s,
            end=end - (parts - place - 1) * size_s,
            counts={name: round(value) for name, value in counts[place].items() if round(value)},
            lost_accelerator_s=costs[place],
        )
        for place in range(parts)
    ]


def _by_part(lines: Sequence[Line], parts: int, size_s: float, end: float) -> list[dict[str, float]]:
    found: list[dict[str, float]] = [{} for _ in range(parts)]
    for line in lines:
        for at, value in line.points:
            place = parts - 1 - round((end - at) / size_s)
            if 0 <= place < parts:
                found[place][line.labels.get(BY, "")] = value
    return found
