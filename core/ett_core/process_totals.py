"""Totals that processes report of themselves, as they stand by the latest report of each, and summed.

Part of the details fold (`ett_core.details`): held by one thread, in any order of arrival.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from ett_core.events import Cache, Counters
from ett_core.named_sums import NAMES_KEPT, add_named

REPORTS_KEPT = 65_536
"""Totals kept, one a process (and cache); those of further processes are left out."""
ATTEMPTS_KEPT = 64
"""Latest attempts whose totals are told apart."""


class CacheTotals(msgspec.Struct, frozen=True, gc=False):
    """Totals of one cache, summed over the processes of the job."""

    hits: int = 0
    misses: int = 0
    bypasses: int = 0
    saved_s: float = 0.0
    bytes: int = 0
    """Size of what was stored or loaded, where the cache says so."""


class ProcessTotalsState(NamedTuple):
    """A `ProcessTotals` as a value."""

    caches: list[Cache]
    counters: list[tuple[str, Counters]]


class ProcessTotals:
    """The fold: `add` events, then read."""

    __slots__ = ("_cache_names", "_caches", "_counters")

    def __init__(self) -> None:
        self._caches: dict[tuple[str, str], Cache] = {}
        self._cache_names: set[str] = set()
        self._counters: dict[tuple[str, str], Counters] = {}

    def add_cache(self, event: Cache) -> None:
        """Take in what a process has asked of a cache so far."""
        if event.cache not in self._cache_names:
            if len(self._cache_names) >= NAMES_KEPT:
                return
            self._cache_names.add(event.cache)
        total = event if event.tuned is None else replace(event, tuned=None)
        _keep_later(self._caches, (event.writer, event.cache), total)

    def add_counters(self, event: Counters) -> None:
        """Take in what a process has counted so far."""
        if len(event.values) > NAMES_KEPT:
            event = replace(event, values=dict(islice(event.values.items(), NAMES_KEPT)))
        for name in event.values:
            _keep_later(self._counters, (event.writer, name), event)

    @property
    def caches(self) -> dict[str, CacheTotals]:
        """Totals by cache, summed over processes: of each, its latest report."""
        totals: dict[str, CacheTotals] = {}
        for (_, name), report in self._caches.items():
            totals[name] = _plus(totals.get(name, CacheTotals()), report)
        return dict(sorted(totals.items()))

    @property
    def run_caches(self) -> dict[int, dict[str, CacheTotals]]:
        """The same by attempt: of each process, its latest report, which counts towards its attempt."""
        runs: dict[int, dict[str, CacheTotals]] = {}
        for (_, name), report in sorted(self._caches.items(), key=lambda each: each[0][1]):
            totals = runs.setdefault(report.attempt, {})
            totals[name] = _plus(totals.get(name, CacheTotals()), report)
        return {attempt: runs[attempt] for attempt in sorted(runs)[-ATTEMPTS_KEPT:]}

    @property
    def remote_requests(self) -> int:
        """Requests to remote caches, as caches tell."""
        return sum(report.remote_requests or 0 for report in self._caches.values())

    @property
    def counters(self) -> dict[str, float]:
        """Named totals, summed over processes: of each, its latest report of that name."""
        totals: dict[str, float] = {}
        for (_, name), report in self._counters.items():
            add_named(totals, name, report.values[name])
        return totals

    def state(self) -> ProcessTotalsState:
        """The totals as a value."""
        counters = [(name, report) for (_, name), report in self._counters.items()]
        return ProcessTotalsState(list(self._caches.values()), counters)

    @classmethod
    def of_state(cls, state: ProcessTotalsState) -> ProcessTotals:
        """The totals that gave `state`."""
        totals = cls()
        totals._caches = {(report.writer, report.cache): report for report in state.caches}
        totals._cache_names = {report.cache for report in state.caches}
        totals._counters = {(report.writer, name): report for name, report in state.counters}
        return totals


def _plus(total: CacheTotals, report: Cache) -> CacheTotals:
    return CacheTotals(
        hits=total.hits + report.hits,
        misses=total.misses + report.misses,
        bypasses=total.bypasses + report.bypasses,
        saved_s=total.saved_s + (report.saved_s or 0.0),
        bytes=total.bytes + (report.bytes or 0),
    )


_Report = TypeVar("_Report", Cache, Counters)


def _keep_later(kept: dict[tuple[str, str], _Report], key: tuple[str, str], report: _Report) -> None:
    """Keep the later report under `key`."""
    known = kept.get(key)
    if len(kept) < REPORTS_KEPT if known is None else known.seq < report.seq:
        kept[key] = report
