"""What the Fleet page asks of the query API. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ett_dashboard.client import Question
from ett_dashboard.fleet.rows import FleetWindow
from ett_dashboard.rows import FleetAnswer
from ett_dashboard.windows import WINDOWS_S
from ett_dashboard.words import HOUR_S

PARTS: Mapping[str, int] = {"1h": 12, "24h": 12, "7d": 14}
"""Windows, and in how many parts each is drawn over time; the edges of parts are whole hours and the like."""
WINDOW_KEPT_S, PARTS_KEPT_S = 5.0, 30.0
FILTERS = ("cluster", "team", "model", "scheduler", "purpose", "text")
SORTS: Mapping[str, str] = {
    "job": "job_name",
    "state": "state",
    "state_age_s": "-state_since",
    "ett_percent": "ett_percent",
    "tts_s": "tts_s",
    "failures": "failures",
    "unsaved_s": "unsaved_exposure_s",
    "progress_age_s": "-last_progress_at",
    "wall_s": "wall_s",
}
"""The columns of the table of jobs, and what the query API sorts by for each."""


class Weighing(msgspec.Struct, frozen=True):
    """What a second weighs: the `weight` that is asked for, and what its amounts are multiplied by."""

    name: str
    asked: str
    factor: float = 1.0


def weighing(name: str, price_per_hour: float | None) -> Weighing:
    """Cost by the exporter's prices, or from accelerator-seconds where one price is said here.

    >>> weighing("cost", 3.6)
    Weighing(name='cost', asked='accelerator', factor=0.001)
    """
    if name == "cost" and price_per_hour:
        return Weighing(name, "accelerator", price_per_hour / HOUR_S)
    return Weighing(name, name)


def jobs(chosen: Mapping[str, str], order: str = "", most: int | None = None) -> Question[FleetAnswer]:
    """The jobs chosen, at most so many, in the order of a column of the table ("-" turns it round).

    Without an order, or with one that no column has, those come first that somebody should look at first.

    >>> jobs({"team": "a"}, "-state_age_s", 15).parameters
    (('sort', 'state_since'), ('team', 'a'), ('limit', '15'))
    """
    sort = SORTS.get(order.removeprefix("-"), "urgency")
    if sort != "urgency" and order.startswith("-"):
        sort = sort.removeprefix("-") if sort.startswith("-") else f"-{sort}"
    limit = {} if most is None else {"limit": str(most)}
    return Question("/api/v1/jobs", FleetAnswer, tuple(({"sort": sort} | _labels(chosen) | limit).items()))


def window(name: str, weight: Weighing, chosen: Mapping[str, str]) -> Question[FleetWindow]:
    """Where the time of the jobs chosen went within 1h, 24h or 7d."""
    return _fleet(weight, chosen, WINDOW_KEPT_S, window=name)


def over_time(name: str, weight: Weighing, chosen: Mapping[str, str], now: float) -> Question[FleetWindow]:
    """The same in parts of the window; the last one goes on.

    The question stays the same until the next part begins.
    """
    parts = PARTS[name]
    size_s = WINDOWS_S[name] / parts
    end = (now // size_s + 1) * size_s
    when = {"begin": f"{end - parts * size_s:.0f}", "end": f"{end:.0f}", "buckets": str(parts)}
    return _fleet(weight, chosen, PARTS_KEPT_S, **when)


def by_group(name: str, label: str, now: float) -> Question[FleetWindow]:
    """Where the held time of all jobs went within a window, and that of each group by a label.

    The exporter has the sums of short windows; of longer ones it reads every job.
    """
    begin = now - WINDOWS_S[name]
    when = {"window": name} if name in PARTS else {"begin": f"{begin:.3f}", "end": f"{now:.3f}"}
    return Question(
        "/api/v1/fleet", FleetWindow, tuple((when | {"weight": "accelerator", "group_by": label}).items())
    )


def _fleet(weight: Weighing, chosen: Mapping[str, str], keep_s: float, **when: str) -> Question[FleetWindow]:
    parameters = {**when, "weight": weight.asked} | _labels(chosen)
    return Question("/api/v1/fleet", FleetWindow, tuple(parameters.items()), keep_s)


def _labels(chosen: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name in FILTERS if (value := chosen.get(name))}
