"""Where the time of many jobs went, weighted and grouped: pure, for the query API.

Seconds of a job are those of its exact window. Weighted by accelerators they are held time:
queueing after a failure holds none. Cost is held time times the price of an accelerator hour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ett_core.accounting.account import ett_percent
from ett_core.components import COMPONENTS, RECOVER_QUEUE, area_seconds, group_seconds
from ett_exporter.answer_types import FleetGroup, Quantiles
from ett_exporter.live import JobView

HOUR_S = 3600.0


class Share(msgspec.Struct, frozen=True):
    """One job and its seconds by component in the window."""

    view: JobView
    components: Mapping[str, float]


class Window(msgspec.Struct, frozen=True):
    """The time that is looked at, in Unix seconds."""

    begin: float
    end: float

    def holds(self, moment: float) -> bool:
        """Whether a moment lies in it."""
        return self.begin <= moment < self.end


Weight = Callable[[JobView], float]


def weight_of(name: str, prices: Mapping[str, float]) -> Weight:
    """What a second of a job weighs; `prices` are of an hour of one accelerator, by its type."""
    if name == "job":
        return lambda _view: 1.0
    if name == "accelerator":
        return lambda view: float(view.accelerator_weight)
    return lambda view: view.accelerator_weight * prices.get(view.details.accelerator_type, 0.0) / HOUR_S


def group_key(name: str, view: JobView) -> str:
    """The group that a job belongs to."""
    if name == "state":
        return view.account.state
    if name == "accelerator_type":
        return view.details.accelerator_type
    return view.label(name)


def by_group(shares: Sequence[Share], name: str) -> dict[str, list[Share]]:
    """Jobs by their group, in order of its name."""
    groups: dict[str, list[Share]] = {}
    for share in shares:
        groups.setdefault(group_key(name, share.view), []).append(share)
    return dict(sorted(groups.items()))


def fleet_group(
    key: str, shares: Sequence[Share], window: Window, weight: Weight, *, held: bool
) -> FleetGroup:
    """The time of some jobs together; `held` leaves out what holds no hardware."""
    totals = weighted_sum(((share.components, weight(share.view)) for share in shares), held=held)
    percent = ett_percent(totals)
    views = [share.view for share in shares]
    return FleetGroup(
        key=key,
        jobs=len(shares),
        total=math.fsum(totals.values()),
        effective_ratio=None if percent is None else percent / 100,
        components=totals,
        groups=group_seconds(totals),
        areas={area: s for area, s in area_seconds(totals).items() if s},
        failures=sum(window.holds(f.time) for view in views for f in view.account.failures),
        tts=quantiles(starts_of(views, window)),
        ttr=quantiles(recoveries_of(views, window)),
    )


def weighted_sum(parts: Iterable[tuple[Mapping[str, float], float]], *, held: bool) -> dict[str, float]:
    """Amounts by component in display order, without those that are zero."""
    totals: dict[str, float] = {}
    for components, weight in parts:
        for name, seconds in components.items():
            totals[name] = totals.get(name, 0.0) + weight * seconds
    if held:
        totals.pop(RECOVER_QUEUE, None)
    return {name: totals[name] for name in COMPONENTS if totals.get(name)}


def starts_of(views: Iterable[JobView], window: Window) -> list[float]:
    """Times to start of the jobs that started to train in the window."""
    accounts = (view.account for view in views)
    return [a.tts_s for a in accounts if a.tts_s is not None and window.holds(a.start + a.tts_s)]


def recoveries_of(views: Iterable[JobView], window: Window) -> list[float]:
    """Times to recover that ended in the window."""
    failures = (failure for view in views for failure in view.account.failures)
    return [f.ttr_s for f in failures if f.ttr_s is not None and window.holds(f.time + f.ttr_s)]


def quantiles(durations: Iterable[float]) -> Quantiles:
    """Quantiles: the smallest of the durations that so many of them do not exceed.

    >>> quantiles([3.0, 1.0, 2.0, 4.0])
    Quantiles(count=4, p50_s=2.0, p90_s=4.0, p99_s=4.0, max_s=4.0)
    """
    ordered = sorted(durations)

    def at(share: float) -> float | None:
        return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else None

    return Quantiles(count=len(ordered), p50_s=at(0.5), p90_s=at(0.9), p99_s=at(0.99), max_s=at(1.0))
