"""Where the time of all jobs went: from parameters to the answer, read from a service in worker threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from ett_exporter.answer_types import Fleet, FleetPart
from ett_exporter.fleet import MadeOf, Window, anew, groups_of, left_out
from ett_exporter.fleet_spans import FleetSpans
from ett_exporter.fleet_sums import Sums, part_of
from ett_exporter.followed import LONGEST_S, SHORTEST_PART_S, Shape, SumsOfAll, edges_of, moving
from ett_exporter.queries import HOUR_S, FleetQuery, QueryError
from ett_exporter.reads import meant
from ett_exporter.running_sums import WHOLE, RunningSums
from ett_exporter.service import QUICKLY_S, WAIT_S, Service
from ett_exporter.views import WINDOWS_S

EVERY_JOB = FleetQuery(purpose="")


class _Found(NamedTuple):
    """The whole of the time that a query asks for, then each of its parts, if any."""

    parts: Sequence[FleetPart]
    left_out: int
    """Jobs of other purposes."""
    missing: int = 0
    """Jobs that are in no figure, as nobody has read them yet."""


class FleetReads:
    """Answers from one service; any thread may call."""

    def __init__(
        self,
        service: Service,
        spans: FleetSpans | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`spans` are those that somebody keeps up, if anybody does."""
        self._service = service
        self._monotonic = monotonic
        self._spans = FleetSpans(service) if spans is None else spans

    def fleet(self, query: FleetQuery) -> Fleet:
        """Where the time of all jobs went."""
        prices = self._service.settings.prices
        if query.weight == "cost" and not prices:
            raise QueryError("weight: no prices of accelerators are set here (--price)")
        now = self._service.clock()
        found = self._found(query, now)
        whole, *parts = found.parts
        return Fleet(
            as_of=now,
            begin=whole.begin,
            end=whole.end,
            weight=query.weight,
            group_by=query.group_by,
            all=whole.all,
            fleet=whole.fleet,
            over_time=parts,
            left_out=found.left_out,
            missing=found.missing,
        )

    def _found(self, query: FleetQuery, now: float) -> _Found:
        if query.begin is None and query.end is None and query.buckets in (None, 1):
            return self._of_window(query, now)
        edges = edges_asked(query, now)
        sums = None if query.text else self._sums_of_all(query, edges, now)
        found = self._of_chosen(query, edges, now) if sums is None else self._of_all(query, sums, now)
        whole, *parts = found.parts
        if query.end is None and query.buckets is None:
            whole = replace(whole, end=now)
        return found._replace(parts=[whole, *parts])

    def _of_window(self, query: FleetQuery, now: float) -> _Found:
        """The latest window, which every view has."""
        window = Window(now - WINDOWS_S[query.window], now, query.window)
        if query.text:
            sums_of_chosen = Sums()
            views, missing = meant(self._service, replace(query, purpose=""), now - LONGEST_S)
            for view in views:
                sums_of_chosen.change(None, part_of(view))
            found = self._answer(sums_of_chosen, query, [window])
        else:
            self._service.renew(now, WAIT_S)
            with self._service.roster.sums() as ledger:
                found = self._answer(ledger.windows, query, [window])
            missing = self._service.roster.unmet
        parts = [*found.parts, *(found.parts if query.buckets else ())]
        return found._replace(parts=parts, missing=missing)

    def _sums_of_all(self, query: FleetQuery, edges: tuple[float, ...], now: float) -> SumsOfAll | None:
        """The sums of all jobs, which are kept up from now on; None where only those chosen are to be read.

        Where they have only begun to go on, who asks for some jobs does not wait for all the others.
        """
        by_state = bool(query.state) or query.group_by == "state"
        sums = (
            self._spans.moving(shape_asked(query, by_state=by_state), now)
            if query.begin is None and query.end is None
            else self._spans.going_on(edges, now, by_state=by_state)
        )
        is_about_some = query.cluster or query.team or query.model or query.scheduler or query.state
        return None if sums is not None and is_about_some and not sums.is_ready else sums

    def _of_all(self, query: FleetQuery, sums: SumsOfAll, now: float) -> _Found:
        self._service.renew(now, WAIT_S)
        for_s = WAIT_S if self._service.is_small else QUICKLY_S
        with self._spans.of_all(sums, now, for_s, WAIT_S) as (running, missing):
            found = self._answer_of_parts(running, query)
        return found._replace(missing=missing + self._service.roster.unmet)

    def _of_chosen(self, query: FleetQuery, edges: tuple[float, ...], now: float) -> _Found:
        """As `_of_all`, whatever the moments and the jobs: as many as can be read while one waits.

        Half of that time is for jobs that are in the store alone. A choice by kinds of all jobs since long
        ago is made of the sums of all: what was read for one choice is there for the next.
        """
        is_long_ago = edges[0] < now - LONGEST_S
        if is_long_ago and not query.text:
            jobs, chosen, by_state = EVERY_JOB, query, bool(query.state) or query.group_by == "state"
        else:
            jobs = replace(query, purpose="", weight="job", group_by=None)
            chosen, by_state = replace(query, state=""), query.group_by == "state"
        self._service.renew(now, WAIT_S)
        began_s = self._monotonic()
        found = self._service.jobs.views_since(
            now,
            edges[0],
            lambda: self._monotonic() < began_s + WAIT_S / 2,
            self._spans.knows(edges, jobs, by_state=by_state),
        )
        for_s = began_s + WAIT_S - self._monotonic()
        with self._spans.sums(
            jobs.chosen(found.views), edges, now, jobs, by_state=by_state, for_s=for_s, known=found.known
        ) as (running, lacked):
            answer = self._answer_of_parts(running, chosen)
        return answer._replace(missing=lacked + found.unread + self._service.roster.unmet)

    def _answer_of_parts(self, running: RunningSums, query: FleetQuery) -> _Found:
        how = replace(query, begin=None, end=None, buckets=None)
        windows = _windows(running.edges, query)
        return self._answer(
            running.sums, query, windows, lambda window, make: running.made_of(window, how, make)
        )

    def _answer(
        self, sums: Sums, query: FleetQuery, windows: Sequence[Window], made_of: MadeOf = anew
    ) -> _Found:
        answers = groups_of(sums, query, windows, self._service.settings.prices, made_of)
        parts = [
            FleetPart(begin=window.begin, end=window.end, all=whole, fleet=groups)
            for window, (whole, groups) in zip(windows, answers, strict=True)
        ]
        return _Found(parts, left_out(sums, query, windows[0]))


def shape_asked(query: FleetQuery, *, by_state: bool = False) -> Shape:
    """The shape of the latest window in parts."""
    return moving(WINDOWS_S[query.window], query.buckets or 1, by_state=by_state)


def edges_asked(query: FleetQuery, now: float) -> tuple[float, ...]:
    """Between which moments a query means jobs, other than in the latest window as a whole.

    What goes on ends later than now, so that the same moments are meant when it is asked again.

    >>> edges_asked(FleetQuery(window="1h", buckets=4), now=8000.0)
    (4500.0, 5400.0, 6300.0, 7200.0, 8100.0)
    """
    begin, end, parts = query.begin, query.end, query.buckets or 1
    if begin is None and end is None:
        return shape_asked(query).edges_at(now)
    if begin is None:
        assert end is not None  # noqa: S101 - one of them is told
        begin = end - WINDOWS_S[query.window]
    if end is None:
        end = _end_of_parts(begin, now, parts) if query.buckets else _next(now, 24 * HOUR_S)
    return edges_of(begin, end, parts)


def _end_of_parts(begin: float, now: float, parts: int) -> float:
    """The end of parts from a moment up to now, each of whole minutes; short ones of whole seconds.

    >>> _end_of_parts(0.0, 1000.0, 10), _end_of_parts(0.0, 100.0, 10)
    (1200.0, 110.0)
    """
    size_s = max(now - begin, 0.0) / parts
    return begin + parts * _next(size_s, SHORTEST_PART_S if size_s >= SHORTEST_PART_S else 1.0)


def _next(amount: float, grain: float) -> float:
    """The next multiple of a grain after an amount."""
    return (amount // grain + 1) * grain


def _windows(edges: Sequence[float], query: FleetQuery) -> list[Window]:
    """All of the time between edges, and after it each part, where a query asks for parts."""
    parts = pairwise(edges) if query.buckets else ()
    named = [Window(*part, str(place)) for place, part in enumerate(parts)]
    return [Window(edges[0], edges[-1], WHOLE), *named]
