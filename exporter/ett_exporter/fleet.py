"""Where the time of many jobs went, weighted and grouped: pure, for the query API.

Seconds of a job are those of its exact window. Weighted by accelerators they are held time:
queueing after a failure holds none. Cost is held time times the price of an accelerator hour.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from ett_core.accounting.account import NS, ett_percent
from ett_core.components import COMPONENTS, area_seconds, group_seconds
from ett_exporter.answer_types import FleetGroup, Quantiles
from ett_exporter.fleet_sums import Kind, Sums, Total, held_ns
from ett_exporter.queries import HOUR_S, FleetQuery


class Window(msgspec.Struct, frozen=True):
    """The time that is looked at, in Unix seconds, and its name among the windows of the sums."""

    begin: float
    end: float
    name: str = ""


def weight_of(weight: str, kind: Kind, prices: Mapping[str, float]) -> float:
    """What a second of a job of a kind weighs; `prices` are of an hour of one accelerator, by its type."""
    if weight == "job":
        return 1.0
    price = prices.get(kind.accelerator_type, 0.0) / HOUR_S if weight == "cost" else 1.0
    return kind.accelerators * price


Groups: TypeAlias = tuple[FleetGroup, list[FleetGroup]]
"""All jobs that a query means, and its groups in order of their names."""
MadeOf: TypeAlias = Callable[[str, Callable[[], Groups]], Groups]


def anew(_window: str, make: Callable[[], Groups]) -> Groups:
    """Make the groups of a window, whatever is known of it."""
    return make()


def groups_of(
    sums: Sums,
    query: FleetQuery,
    windows: Sequence[Window],
    prices: Mapping[str, float],
    made_of: MadeOf = anew,
) -> list[Groups]:
    """What a query means in each of some windows; `prices` are of an hour of one accelerator, by its type.

    `made_of` is given the name of each window and how its groups are made.
    """
    is_meant = query.kinds()
    meant = [(kind, total) for kind, total in sums.totals() if is_meant(kind)]
    factors = defaultdict(float, prices) if query.weight == "cost" else None
    return [made_of(window.name, partial(_groups_in, meant, query, window, factors)) for window in windows]


def _groups_in(
    totals: Sequence[tuple[Kind, Total]],
    query: FleetQuery,
    window: Window,
    factors: Mapping[str, float] | None,
) -> Groups:
    everything = _Group(window, factors)
    groups: dict[str, _Group] = {}
    for kind, total in totals:
        if total.jobs(window.name):
            amounts = total.amounts_ns(window.name)
            weighted = amounts if query.weight == "job" else held_ns(kind, amounts)
            everything.add(kind, total, weighted)
            if query.group_by:
                key = getattr(kind, query.group_by)
                if key not in groups:
                    groups[key] = _Group(window, factors)
                groups[key].add(kind, total, weighted)
    return everything.answer(""), [group.answer(key) for key, group in sorted(groups.items())]


def left_out(sums: Sums, query: FleetQuery, window: Window) -> int:
    """Jobs with time in a window that a query would mean, had they the purpose that it asks for."""
    is_meant = query.kinds()
    would_be = msgspec.structs.replace(query, purpose="").kinds()
    return sum(
        total.jobs(window.name)
        for kind, total in sums.of_window(window.name)
        if would_be(kind) and not is_meant(kind)
    )


class _Group:
    """The jobs of a group, being added up; `prices` weigh what is held, None: nothing does."""

    def __init__(self, window: Window, prices: Mapping[str, float] | None) -> None:
        self._window = window
        self._prices = prices
        self._jobs = 0
        self._amounts: dict[tuple[str, str], int] = {}
        """Nanoseconds by accelerator type (empty where it does not matter) and component."""
        self._failures = 0
        self._tts_s: list[float] = []
        self._ttr_s: list[float] = []

    def add(self, kind: Kind, total: Total, weighted: Mapping[str, int]) -> None:
        amounts = self._amounts
        type_ = "" if self._prices is None else kind.accelerator_type
        self._jobs += total.jobs(self._window.name)
        for component, amount in weighted.items():
            amounts[type_, component] = amounts.get((type_, component), 0) + amount
        begin, end = self._window.begin, self._window.end
        self._failures += bisect_left(total.failed_at, end) - bisect_left(total.failed_at, begin)
        self._tts_s += _durations(total.starts, begin, end)
        self._ttr_s += _durations(total.recoveries, begin, end)

    def answer(self, key: str) -> FleetGroup:
        totals = self._totals()
        percent = ett_percent(totals)
        return FleetGroup(
            key=key,
            jobs=self._jobs,
            total=math.fsum(totals.values()),
            effective_ratio=None if percent is None else percent / 100,
            components=totals,
            groups=group_seconds(totals),
            areas={area: s for area, s in area_seconds(totals).items() if s},
            failures=self._failures,
            tts=quantiles(self._tts_s),
            ttr=quantiles(self._ttr_s),
        )

    def _totals(self) -> dict[str, float]:
        """Amounts by component in display order, without those that are zero."""
        parts: dict[str, list[float]] = {component: [] for component in COMPONENTS}
        for (type_, component), amount in self._amounts.items():
            parts[component].append(
                amount / NS if self._prices is None else amount * self._prices[type_] / HOUR_S / NS
            )
        return {component: total for component, of in parts.items() if (total := math.fsum(of))}


def _durations(moments: Sequence[tuple[float, float]], begin: float, end: float) -> list[float]:
    """How long took what came about from `begin` on and before `end`."""
    first, last = bisect_left(moments, (begin,)), bisect_left(moments, (end,))
    return [took_s for _, took_s in moments[first:last]]


def quantiles(durations: Iterable[float]) -> Quantiles:
    """Quantiles: the smallest of the durations that so many of them do not exceed.

    >>> quantiles([3.0, 1.0, 2.0, 4.0])
    Quantiles(count=4, p50_s=2.0, p90_s=4.0, p99_s=4.0, max_s=4.0)
    """
    ordered = sorted(durations)

    def at(share: float) -> float | None:
        return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else None

    return Quantiles(count=len(ordered), p50_s=at(0.5), p90_s=at(0.9), p99_s=at(0.99), max_s=at(1.0))
