"""What the Fleet page asks of the query API. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ett_dashboard.client import Question
from ett_dashboard.report.rows import FleetWindow

HOUR_S = 3600.0
WINDOWS_S: Mapping[str, float] = {"1h": HOUR_S, "24h": 24 * HOUR_S, "7d": 168 * HOUR_S}
PARTS: Mapping[str, int] = {"1h": 12, "24h": 12, "7d": 14}
"""In how many parts each window is drawn over time; the edges of parts are whole hours and the like."""
WINDOW_KEPT_S, PAST_KEPT_S = 5.0, 600.0
FILTERS = ("cluster", "team", "model", "scheduler", "text")


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


def window(name: str, weight: Weighing, chosen: Mapping[str, str]) -> Question[FleetWindow]:
    """Where the time of the jobs chosen went within 1h, 24h or 7d."""
    return _fleet(weight, chosen, WINDOW_KEPT_S, window=name)


def over_time(
    name: str, weight: Weighing, chosen: Mapping[str, str], now: float
) -> list[Question[FleetWindow]]:
    """The same in parts of the window, the earliest first; the last one goes on until now.

    Parts that are over have the same edges, and so the same question, until the next one begins.
    """
    size_s = WINDOWS_S[name] / PARTS[name]
    last = now // size_s * size_s
    begins = [last - size_s * place for place in range(PARTS[name] - 1, 0, -1)]
    past = [
        _fleet(weight, chosen, PAST_KEPT_S, begin=f"{begin:.0f}", end=f"{begin + size_s:.0f}")
        for begin in begins
    ]
    return [*past, _fleet(weight, chosen, WINDOW_KEPT_S, begin=f"{last:.0f}")]


def _fleet(weight: Weighing, chosen: Mapping[str, str], keep_s: float, **when: str) -> Question[FleetWindow]:
    jobs = {name: value for name in FILTERS if (value := chosen.get(name))}
    return Question(
        "/api/v1/fleet", FleetWindow, tuple({**when, "weight": weight.asked, **jobs}.items()), keep_s
    )
