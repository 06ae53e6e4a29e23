"""Where the time of many jobs went, weighted and grouped: pure, for the query API.

Seconds of a job are those of its exact window. Weighted by accelerators they are held time:
queueing after a failure holds none. Cost is held time times the price of an accelerator hour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ett_core.accounting import FailureAccount
from ett_core.accounting.account import NS, ett_percent
from ett_core.components import COMPONENTS, RECOVER_QUEUE, area_seconds, group_seconds
from ett_exporter.answer_types import FleetGroup, Quantiles
from ett_exporter.fleet_totals import FleetTotals, Kind, Part, Total
from ett_exporter.live import JobView
from ett_exporter.queries import FleetQuery

HOUR_S = 3600.0


class Share(msgspec.Struct, frozen=True, gc=False):
    """One job and its seconds by component in the window."""

    view: JobView
    components: Mapping[str, float]


class Window(msgspec.Struct, frozen=True):
    """The time that is looked at, in Unix seconds."""

    begin: float
    end: float


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
    accounts = [share.view.account for share in shares]
    starts = [(a.start + a.tts_s, a.tts_s) for a in accounts if a.tts_s is not None]
    failures = [failure for account in accounts for failure in account.failures]
    return group_of(key, len(shares), weighted_sum(shares, weight), Moments(window, starts, failures))


class Moments(msgspec.Struct, frozen=True):
    """What began and failed, of which that in the window counts."""

    window: Window
    starts: Sequence[tuple[float, float]]
    failures: Sequence[FailureAccount]


def group_of(key: str, jobs: int, totals: Mapping[str, float], moments: Moments) -> FleetGroup:
    """A group from its amounts by component."""
    percent = ett_percent(totals)
    begin, end = moments.window.begin, moments.window.end
    failures = moments.failures
    ttr_s = [(f.time + f.ttr_s, f.ttr_s) for f in failures if f.ttr_s is not None]
    return FleetGroup(
        key=key,
        jobs=jobs,
        total=math.fsum(totals.values()),
        effective_ratio=None if percent is None else percent / 100,
        components=totals,
        groups=group_seconds(totals),
        areas={area: s for area, s in area_seconds(totals).items() if s},
        failures=sum(begin <= failure.time < end for failure in failures),
        tts=quantiles(took_s for at, took_s in moments.starts if begin <= at < end),
        ttr=quantiles(took_s for at, took_s in ttr_s if begin <= at < end),
    )


def weighted_sum(shares: Iterable[Share], weight: Weight) -> dict[str, float]:
    """Amounts by component in display order, without those that are zero."""
    totals = dict.fromkeys(COMPONENTS, 0.0)
    of = weight.of
    for share in shares:
        factor = of(share.view)
        for name, seconds in share.components.items():
            totals[name] += factor * seconds
    return _shown(totals, weight)


def groups_of_totals(
    totals: FleetTotals, query: FleetQuery, window: Window, prices: Mapping[str, float]
) -> tuple[FleetGroup, list[FleetGroup]]:
    """All jobs that a query means, and its groups, from running totals."""
    weight = weight_of(query.weight, prices)
    is_meant = query.kinds()
    everything = _Sum()
    groups: dict[str, _Sum] = {}
    for kind, total in totals.by_kind():
        if is_meant(kind):
            amounts = _amounts(kind, total, query.weight, prices)
            everything.add(total.jobs, amounts)
            if query.group_by:
                groups.setdefault(getattr(kind, query.group_by), _Sum()).add(total.jobs, amounts)
    for part in totals.parts():
        if (part.start or part.failures) and is_meant(part.kind):
            everything.note(part)
            if query.group_by and (group := groups.get(getattr(part.kind, query.group_by))):
                group.note(part)
    return (
        everything.group("", window, weight),
        [total.group(key, window, weight) for key, total in sorted(groups.items())],
    )


class _Sum:
    """The jobs of a group, being added up."""

    def __init__(self) -> None:
        self.jobs = 0
        self.amounts = dict.fromkeys(COMPONENTS, 0.0)
        self.starts: list[tuple[float, float]] = []
        self.failures: list[FailureAccount] = []

    def add(self, jobs: int, amounts: Mapping[str, float]) -> None:
        self.jobs += jobs
        for name, amount in amounts.items():
            self.amounts[name] += amount

    def note(self, part: Part) -> None:
        if part.start is not None:
            self.starts.append(part.start)
        self.failures += part.failures

    def group(self, key: str, window: Window, weight: Weight) -> FleetGroup:
        shown = _shown(self.amounts, weight)
        return group_of(key, self.jobs, shown, Moments(window, self.starts, self.failures))


def _amounts(kind: Kind, total: Total, weight: str, prices: Mapping[str, float]) -> dict[str, float]:
    """What the jobs of a kind weigh, by component."""
    if weight == "job":
        return {name: amount / NS for name, amount in total.wall_ns.items()}
    factor = 1.0 if weight == "accelerator" else prices.get(kind.accelerator_type, 0.0) / HOUR_S
    return {name: factor * amount / NS for name, amount in total.held_ns.items()}


def _shown(amounts: Mapping[str, float], weight: Weight) -> dict[str, float]:
    left_out = RECOVER_QUEUE if weight.is_held else None
    return {name: amount for name, amount in amounts.items() if amount and name != left_out}


def quantiles(durations: Iterable[float]) -> Quantiles:
    """Quantiles: the smallest of the durations that so many of them do not exceed.

    >>> quantiles([3.0, 1.0, 2.0, 4.0])
    Quantiles(count=4, p50_s=2.0, p90_s=4.0, p99_s=4.0, max_s=4.0)
    """
    ordered = sorted(durations)

    def at(share: float) -> float | None:
        return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else None

    return Quantiles(count=len(ordered), p50_s=at(0.5), p90_s=at(0.9), p99_s=at(0.99), max_s=at(1.0))
