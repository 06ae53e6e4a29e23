"""Long timelines in few stretches, for pages that are asked for again and again.

A timeline of very many stretches is joined once; for some seconds after that only what came since is
read and joined. Any thread may call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from ett_core.accounting import JobAccount, Stretch
from ett_exporter.closed import between
from ett_exporter.recent import AtHand
from ett_exporter.views import JobPage

STRETCHES_SHOWN = 2000
KEPT_S = 30.0
"""For so long an event that comes late may not show in the outline of a long timeline."""
JOBS_KEPT = 64
NS = 1e9
ReadPage = Callable[[str, float | None], JobPage]


class Grid(NamedTuple):
    """Equal spans of time."""

    begin_ns: int
    span_ns: int

    def place(self, moment_ns: int) -> int:
        """In which span a moment lies."""
        return (moment_ns - self.begin_ns) // self.span_ns


class _Outline(NamedTuple):
    """What was joined of a timeline up to a moment (Unix seconds)."""

    made_at: float
    until: float
    signs: tuple[float, int, int]
    grid: Grid
    stretches: Sequence[Stretch]


class Outlines:
    """Pages of jobs whose timelines have about `limit` stretches at most."""

    def __init__(self, read: ReadPage, limit: int = STRETCHES_SHOWN) -> None:
        """`read` gives the page of a job with its timeline from a moment on (None: all)."""
        self._read, self._limit = read, limit
        self._known: AtHand[str, _Outline] = AtHand(JOBS_KEPT)

    def page(self, job_id: str) -> JobPage:
        """The page of a job; whatever `read` raises."""
        known = self._known.get(job_id)
        if known is not None:
            page = self._read(job_id, known.until)
            if _stands(known, page, self._limit):
                latest = joined(page.timeline, known.grid)
                return msgspec.structs.replace(page, timeline=[*known.stretches, *latest])
        page = self._read(job_id, None)
        if len(page.timeline) <= self._limit:
            return page
        outline = _outline_of(page, self._limit)
        self._known.put(job_id, outline)
        latest = joined(between(page.timeline, outline.until, None), outline.grid)
        return msgspec.structs.replace(page, timeline=[*outline.stretches, *latest])


def coarsened(timeline: Sequence[Stretch], limit: int) -> list[Stretch]:
    """A timeline of about `limit` stretches at most: neighbours of one attempt are joined.

    Amounts stay exact. A long timeline is cut into up to `limit` equal spans, and stretches that begin
    in the same span are joined; a shorter part of it, asked for alone, comes in full.
    """
    if len(timeline) <= limit:
        return list(timeline)
    return joined(timeline, grid_of(timeline[0].start_ns, timeline[-1].end_ns, limit))


def grid_of(begin_ns: int, end_ns: int, limit: int) -> Grid:
    """At most `limit` spans over some time; it stays the same while that time grows by a few percent.

    >>> grid_of(0, 9_900, 100), grid_of(0, 10_300, 100)
    (Grid(begin_ns=0, span_ns=104), Grid(begin_ns=0, span_ns=104))
    """
    least = (end_ns - begin_ns) // limit + 1
    step = 1 << max(least.bit_length() - 4, 0)
    return Grid(begin_ns, -(-least // step) * step)


def joined(timeline: Sequence[Stretch], grid: Grid) -> list[Stretch]:
    """Stretches of one attempt that begin in the same span of the grid, as one."""
    groups = groupby(timeline, key=lambda stretch: (stretch.attempt, grid.place(stretch.start_ns)))
    return [_as_one(list(members)) for _, members in groups]


def _as_one(stretches: Sequence[Stretch]) -> Stretch:
    amounts: Counter[str] = Counter()
    for stretch in stretches:
        for component, amount in stretch.shares:
            amounts[component] += amount
    first, last = stretches[0], stretches[-1]
    return Stretch(first.start_ns, last.end_ns, first.attempt, tuple(amounts.items()))


def _outline_of(page: JobPage, limit: int) -> _Outline:
    """The outline up to the span of the grid in which the timeline is still uncertain."""
    timeline, account = page.timeline, page.view.account
    grid = grid_of(timeline[0].start_ns, timeline[-1].end_ns, limit)
    until = (grid.begin_ns + grid.place(round(_told_until(account) * NS)) * grid.span_ns) / NS
    past = joined(between(timeline, None, until), grid)
    return _Outline(account.as_of, until, _signs(page), grid, past)


def _told_until(account: JobAccount) -> float:
    """Up to when reports tell what a job did (Unix seconds); what follows may turn out to be a stall."""
    begin = account.attempts[-1].start if account.attempts else account.start
    return min(max(begin, account.last_progress_at or begin), account.end)


def _stands(known: _Outline, page: JobPage, limit: int) -> bool:
    account = page.view.account
    grown = grid_of(known.grid.begin_ns, round(account.end * NS), limit)
    is_young = 0 <= account.as_of - known.made_at < KEPT_S
    return is_young and known.signs == _signs(page) and grown.span_ns <= known.grid.span_ns


def _signs(page: JobPage) -> tuple[float, int, int]:
    """What changes when the past of a job is seen differently, as it is with each failure."""
    account = page.view.account
    return account.start, len(account.attempts), len(account.failures)
