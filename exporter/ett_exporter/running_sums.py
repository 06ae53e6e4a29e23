"""Sums of jobs between moments that go on from question to question: only a job that changed is put in anew.

Of a job that trains, what stands (`Kept`) is neither unpacked nor added up again; only the part that goes on
is exchanged. Views are referred to weakly: sums that nobody asks for any more keep none of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from weakref import ref

import msgspec
from msgspec.structs import replace

from ett_core.accounting import JobAccount
from ett_core.accounting.account import in_seconds, nanoseconds, seconds
from ett_exporter.cuts import Table
from ett_exporter.fleet_sums import Part, Sums, part_of
from ett_exporter.views import JobView

WHOLE = "whole"
"""The name of all parts together among the windows of the sums; that of a part is its number."""


class Kept(msgspec.Struct, frozen=True):
    """What stands of a live job."""

    edges: Sequence[float]
    told: int
    signs: int
    serial: int
    as_of: float
    parts: Table
    """Up to the edge before which all was told, and behind them all that the job had before that edge."""

    def parts_from(self, edge: float) -> list[Mapping[str, float]]:
        """The parts that stand from an edge on."""
        return self.parts.in_seconds(self.edges.index(edge))[:-1]

    def parts_after(self, edge: float) -> int:
        """How many parts stand from an edge on."""
        return self.told - self.edges.index(edge)

    def begins_like(self, edges: tuple[float, ...]) -> bool:
        """Whether the parts that stand are those between such edges, as far as they had begun."""
        if edges[0] not in self.edges[: self.told + 1]:
            return False
        same = self.edges[self.edges.index(edges[0]) : self.told + 1]
        return tuple(same) == edges[: len(same)]

    def goes_on(self, account: JobAccount) -> Mapping[str, float] | None:
        """What the job has after those parts, as of a later account; None where that cannot be."""
        (before,) = self.parts.in_seconds(self.told)
        if before.keys() - account.components.keys():
            return None
        left = {
            name: nanoseconds(amount) - nanoseconds(before.get(name, 0.0))
            for name, amount in account.components.items()
        }
        if min(left.values(), default=0) < 0:
            return None
        return {name: seconds(amount) for name, amount in left.items() if amount}


class Spread(NamedTuple):
    """The seconds of a job in each part: `first` of them stand, the `later` ones may change."""

    kept: Kept | None
    first: int
    later: Sequence[Mapping[str, float]]

    def parts(self, begin: float) -> list[Mapping[str, float]]:
        """All of them, from the first edge, `begin`, on."""
        return [*(() if self.kept is None else self.kept.parts_from(begin)), *self.later]


NOTHING = Spread(None, 0, ())


class _Entry(NamedTuple):
    """What a job has put in; `about` is all but its seconds."""

    view: ref[JobView]
    about: Part
    spread: Spread
    whole: Mapping[str, float]


class RunningSums:
    """The sums of jobs between `edges`; `lock` is held by whoever changes or reads them."""

    def __init__(self, edges: tuple[float, ...]) -> None:
        self.edges = edges
        self.lock = threading.Lock()
        self.sums = Sums()
        self._entries: dict[str, _Entry] = {}

    def has(self, view: JobView) -> bool:
        """Whether this very view was put in last of its job."""
        known = self._entries.get(view.account.job_id)
        return known is not None and known.view() is view

    def put(self, view: JobView, spread: Spread) -> None:
        """Let a job have these seconds in the place of what it had."""
        job_id, about = view.account.job_id, part_of(view, {})
        old = self._entries.get(job_id)
        if old is not None and old.spread.kept is spread.kept and old.about == about:
            begin, whole = spread.first, _exchanged(old.whole, old.spread.later, spread.later)
        else:
            begin, whole = 0, added_up(spread.parts(self.edges[0]))
        new = _Entry(ref(view), about, spread, whole)
        self.sums.change(None if old is None else self._part(old, begin), self._part(new, begin))
        self._entries[job_id] = new

    def keep_only(self, views: Sequence[JobView]) -> None:
        """Take out the jobs that are not among these."""
        if len(self._entries) > len(views):
            for job_id in self._entries.keys() - {view.account.job_id for view in views}:
                self.sums.change(self._part(self._entries.pop(job_id), 0), None)

    def _part(self, entry: _Entry, begin: int) -> Part:
        """What a job contributes from a part on; the first parts, if left out, are as they were."""
        parts = entry.spread.later if begin else entry.spread.parts(self.edges[0])
        windows = {str(place): part for place, part in enumerate(parts, begin) if part}
        return replace(entry.about, windows={**windows, WHOLE: entry.whole})


def _exchanged(
    whole: Mapping[str, float], old: Iterable[Mapping[str, float]], new: Iterable[Mapping[str, float]]
) -> Mapping[str, float]:
    """The seconds of all parts, some of which are others now.

    >>> _exchanged({"training": 3.0, "stalled": 1.0}, [{"stalled": 1.0}], [{"training": 0.5}])
    {'training': 3.5}
    """
    totals = {name: nanoseconds(amount) for name, amount in whole.items()}
    for parts, sign in ((old, -1), (new, 1)):
        for part in parts:
            for name, amount in part.items():
                totals[name] = totals.get(name, 0) + sign * nanoseconds(amount)
    return {name: seconds(amount) for name, amount in totals.items() if amount}


def added_up(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The seconds of some parts together.

    >>> added_up([{"training": 0.1}, {"training": 0.2, "stalled": 1.0}])
    {'training': 0.3, 'stalled': 1.0}
    """
    totals: dict[str, int] = {}
    for part in parts:
        for component, amount in part.items():
            totals[component] = totals.get(component, 0) + nanoseconds(amount)
    return in_seconds(totals)
