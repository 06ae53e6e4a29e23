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


class Share(msgspec.Struct, frozen=True, gc=False):
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


class Weight(msgspec.Struct, frozen=True):
    """What a second of a job weighs; `is_held` where only time that holds hardware weighs anything."""

    of: Callable[[JobView], float]
    is_held: bool


def weight_of(name: str, prices: Mapping[str, float]) -> Weight:
    """The weight of a name; `prices` are of an hour of one accelerator, by its type."""
    if name == "job":
        return Weight(lambda _view: 1.0, is_held=False)
    if name == "accelerator":
        return Weight(lambda view: float(view.accelerator_weight), is_held=True)
    hourly = {kind: price / HOUR_S for kind, price in prices.items()}
    return Weight(
        lambda view: view.accelerator_weight * hourly.get(view.details.accelerator_type, 0.0), is_held=True
    )


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


def fleet_group(key: str, shares: Sequence[Share], window: Window, weight: Weight) -> FleetGroup:
    """The time of some jobs together."""
    totals = weighted_sum(shares, weight)
    percent = ett_percent(totals)
    failures = [failure for share in shares for failure in share.view.account.failures]
    accounts = [share.view.account for share in shares]
    starts = [a.tts_s for a in accounts if a.tts_s is not None and window.holds(a.start + a.tts_s)]
    recoveries = [f.ttr_s for f in failures if f.ttr_s is not None and window.holds(f.time + f.ttr_s)]
    return FleetGroup(
        key=key,
        jobs=len(shares),
        total=math.fsum(totals.values()),
        effective_ratio=None if percent is None else percent / 100,
        components=totals,
        groups=group_seconds(totals),
        areas={area: s for area, s in area_seconds(totals).items() if s},
        failures=sum(window.holds(failure.time) for failure in failures),
        tts=quantiles(starts),
        ttr=quantiles(recoveries),
    )


def weighted_sum(shares: Iterable[Share], weight: Weight) -> dict[str, float]:
    """Amounts by component in display order, without those that are zero."""
    totals = dict.fromkeys(COMPONENTS, 0.0)
    of = weight.of
    for share in shares:
        factor = of(share.view)
        for name, seconds in share.components.items():
            totals[name] += factor * seconds
    if weight.is_held:
        del totals[RECOVER_QUEUE]
    return {name: amount for name, amount in totals.items() if amount}


def quantiles(durations: Iterable[float]) -> Quantiles:
    """Quantiles: the smallest of the durations that so many of them do not exceed.

    >>> quantiles([3.0, 1.0, 2.0, 4.0])
    Quantiles(count=4, p50_s=2.0, p90_s=4.0, p99_s=4.0, max_s=4.0)
    """
    ordered = sorted(durations)

    def at(share: float) -> float | None:
        return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else None

    return Quantiles(count=len(ordered), p50_s=at(0.5), p90_s=at(0.9), p99_s=at(0.99), max_s=at(1.0))
