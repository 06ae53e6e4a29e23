"""Where the time of a fleet went: series of trailing windows to the answers that the pages show. Pure.

`ett_fleet_component_seconds` is exact for the hour, the day and the week before each moment. What went on
in parts of a window is the trailing hour at the end of each of its hours, as it was known then: training
that was lost later stands there as training.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ett_core.accounting.account import ett_percent
from ett_dashboard.fleet.rows import FleetPart, FleetTime, FleetWindow
from ett_dashboard.prometheus.answers import Line, Sample, by_label, lacks
from ett_dashboard.prometheus.promql import Series, among, equals
from ett_dashboard.words import HOUR_S

MOST_HOURS = 168
SECONDS = "ett_fleet_component_seconds"
OF_JOBS = ("team", "model", "scheduler", "purpose", "text")


def within(series: Series, asked: Mapping[str, str]) -> str:
    """Held accelerator-seconds by component in a trailing window.

    Raises:
        LacksError: jobs are chosen, or seconds are weighed, as no series of a fleet does.
    """
    _refuse(asked)
    return f"sum by (component) ({series.of(SECONDS, equals('window', asked['window']), *_clusters(asked))})"


def hourly(series: Series, asked: Mapping[str, str]) -> str:
    """The same in a trailing hour.

    Raises:
        LacksError: as above, or the time that is asked for has no hours.
    """
    if float(asked["end"]) - float(asked["begin"]) < 2 * HOUR_S:
        raise lacks("time in parts of an hour")
    return within(series, {**asked, "window": "1h"})


def hours(asked: Mapping[str, str]) -> int:
    """In how many hours the time that is asked for can be shown."""
    return min(round((float(asked["end"]) - float(asked["begin"])) / HOUR_S), MOST_HOURS)


def window(samples: Sequence[Sample], length_s: float, as_of: float) -> FleetWindow:
    """The time of a window that ends now."""
    return FleetWindow(
        as_of=as_of, begin=as_of - length_s, end=as_of, all=_time(by_label(samples, "component"))
    )


def over_time(lines: Sequence[Line], parts: int, number: int, as_of: float) -> FleetWindow:
    """The latest `number` hours in so many equal parts that end now; each the sum of its hours.

    The first hours of a part go without a sample where none was taken then.
    """
    begin = as_of - number * HOUR_S
    size_s = number * HOUR_S / parts
    totals: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in lines:
        for at, value in line.points:
            place = min(int((at - begin - 1.0) // size_s), parts - 1)
            totals[place][line.labels.get("component", "")] += value
    over = [
        FleetPart(begin=begin + place * size_s, end=begin + (place + 1) * size_s, all=_time(totals[place]))
        for place in sorted(totals)
        if place >= 0
    ]
    together: dict[str, float] = defaultdict(float)
    for part in over:
        for name, seconds in part.all.components.items():
            together[name] += seconds
    return FleetWindow(as_of=as_of, begin=begin, end=as_of, all=_time(together), over_time=over)


def _time(components: Mapping[str, float]) -> FleetTime:
    known = {name: seconds for name, seconds in components.items() if seconds}
    percent = ett_percent(known)
    return FleetTime(
        key="",
        total=sum(known.values()),
        effective_ratio=None if percent is None else percent / 100,
        components=known,
    )


def _refuse(asked: Mapping[str, str]) -> None:
    if chosen := [name for name in OF_JOBS if asked.get(name)]:
        raise lacks(f"where the time went, for a choice by {' and '.join(chosen)},")
    weight = asked.get("weight", "accelerator")
    if weight == "job":
        raise lacks("weighing by jobs")
    if weight == "cost":
        raise lacks("a price that is not in the settings")


def _clusters(asked: Mapping[str, str]) -> tuple[str, ...]:
    clusters = asked.get("cluster")
    return (among("cluster", clusters.split(",")),) if clusters else ()
