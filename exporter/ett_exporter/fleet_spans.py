"""Where the time of many jobs went between moments that follow each other: each job is read once for all.

    edges      0           10            20
    job a          training 8  |  stalled 2        parts: training 8 in "0", stalled 2 in "1"

The whole of each job is the sum of its parts in whole nanoseconds, so parts add up to the whole. What
was read of jobs that are over is kept: time alone changes nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from ett_core.accounting import AttemptAccount
from ett_core.accounting.account import in_seconds, nanoseconds
from ett_exporter.breath import breathe
from ett_exporter.fleet_sums import Sums, part_of
from ett_exporter.live import JobView
from ett_exporter.recent import AtHand
from ett_exporter.service import Service

WHOLE = "whole"
"""The name of all parts together among the windows of the sums; that of a part is its number."""
MOST_KEPT = 10_000


class _Read(msgspec.Struct, frozen=True):
    """What was read of a job while these were its attempts."""

    attempts: Sequence[AttemptAccount]
    amounts: Sequence[Mapping[str, float]]


class FleetSpans:
    """Reads the jobs of one service; any thread may call."""

    def __init__(self, service: Service, most: int = MOST_KEPT) -> None:
        self._service = service
        self._kept: AtHand[tuple[str, tuple[float, ...]], _Read] = AtHand(most)

    def sums(self, views: Iterable[JobView], edges: Sequence[float], now: float) -> Sums:
        """The sums of some jobs in each part between `edges` (Unix seconds), and in all of them."""
        sums = Sums()
        for view in views:
            amounts = self._of_job(view, tuple(edges), now)
            windows = {str(place): part for place, part in enumerate(amounts) if part}
            sums.change(None, part_of(view, windows | {WHOLE: added_up(amounts)}))
            breathe()
        return sums

    def _of_job(self, view: JobView, edges: tuple[float, ...], now: float) -> Sequence[Mapping[str, float]]:
        """The seconds of a job in each part; it is read only where an edge cuts it."""
        account = view.account
        if account.end <= edges[0] or account.start >= edges[-1] or edges[0] >= edges[-1]:
            return ()
        parts = list(pairwise(edges))
        if any(begin <= account.start and account.end <= end for begin, end in parts):
            return [
                account.components if begin <= account.start and account.end <= end else {}
                for begin, end in parts
            ]
        key = (account.job_id, edges)
        kept = self._kept.get(key)
        if kept is not None and kept.attempts is account.attempts:
            return kept.amounts
        amounts = self._service.spans(account.job_id, now, edges)
        if account.finished:
            self._kept.put(key, _Read(account.attempts, amounts))
        return amounts


def added_up(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The seconds of some parts together.

    >>> added_up([{"training": 0.1}, {"training": 0.2, "stalled": 1.0}])
    {'training': 0.3, 'stalled': 1.0}
    """
    totals: dict[str, int] = {}
    for part in parts:
        for component, seconds in part.items():
            totals[component] = totals.get(component, 0) + nanoseconds(seconds)
    return in_seconds(totals)


def edges_of(begin: float, end: float, parts: int) -> list[float]:
    """The edges of so many equal parts between two moments.

    >>> edges_of(0.0, 30.0, 3)
    [0.0, 10.0, 20.0, 30.0]
    """
    return [begin + (end - begin) * place / parts for place in range(parts)] + [end]
