"""Where the time of all jobs went: from parameters to the answer, read from a service in worker threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from ett_exporter.answer_types import Fleet, FleetPart
from ett_exporter.fleet import MadeOf, Window, anew, groups_of, left_out
from ett_exporter.fleet_spans import FleetSpans
from ett_exporter.fleet_sums import Sums, part_of
from ett_exporter.followed import SumsOfAll, edges_of
from ett_exporter.queries import FleetQuery, QueryError
from ett_exporter.running_sums import WHOLE
from ett_exporter.service import QUICKLY_S, WAIT_S, Service
from ett_exporter.views import WINDOWS_S, JobView


class _Found(NamedTuple):
    """The whole of the time that a query asks for, then each of its parts, if any."""

    parts: Sequence[FleetPart]
    left_out: int
    """Jobs of other purposes."""
    missing: int = 0
    """Jobs that are in no figure, as nobody has read them yet."""


class FleetReads:
    """Answers from one service; any thread may call."""

    def __init__(self, service: Service, spans: FleetSpans | None = None) -> None:
        """`spans` are those that somebody keeps up, if anybody does."""
        self._service = service
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
        if query.begin is not None or query.end is not None or query.buckets is not None:
            sums = self._going_on(query, now)
            return self._of_chosen(query, now) if sums is None else self._of_all(query, sums, now)
        window = Window(now - WINDOWS_S[query.window], now, query.window)
        if query.text:
            sums_of_chosen = Sums()
            for view in self._views(query):
                sums_of_chosen.change(None, part_of(view))
            return self._answer(sums_of_chosen, query, [window])
        self._service.renew(now, WAIT_S)
        missing = self._service.roster.unmet
        with self._service.roster.sums() as ledger:
            return self._answer(ledger.windows, query, [window])._replace(missing=missing)

    def _going_on(self, query: FleetQuery, now: float) -> SumsOfAll | None:
        """The sums of all jobs between the moments of a query, where they go on anyway.

        Where they have only begun to, who asks for some jobs does not wait for all the others.
        """
        if query.begin is None or query.end is None or query.text:
            return None
        edges = edges_of(query.begin, query.end, query.buckets or 1)
        by_state = bool(query.state) or query.group_by == "state"
        sums = self._spans.going_on(edges, now, by_state=by_state)
        is_about_some = query.cluster or query.team or query.model or query.scheduler or query.state
        return None if sums is not None and is_about_some and not sums.is_ready else sums

    def _of_all(self, query: FleetQuery, sums: SumsOfAll, now: float) -> _Found:
        self._service.renew(now, WAIT_S)
        for_s = WAIT_S if self._service.is_small else QUICKLY_S
        with self._spans.of_all(sums, now, for_s, WAIT_S) as (running, missing):
            how = replace(query, begin=None, end=None, buckets=None)
            found = self._answer(
                running.sums,
                query,
                _windows(running.edges, query),
                lambda window, make: running.made_of(window, how, make),
            )
        return found._replace(missing=missing + self._service.roster.unmet)

    def _of_chosen(self, query: FleetQuery, now: float) -> _Found:
        """As `_of_all`, whatever the moments and the jobs."""
        begin, end = query.begin, now if query.end is None else query.end
        if begin is None and query.end is None:
            begin = now - WINDOWS_S[query.window]
        views = self._views(query, -math.inf if begin is None else begin)
        if begin is None:
            begin = min((view.account.start for view in views), default=now)
        edges = edges_of(begin, end, query.buckets or 1)
        jobs = None if query.end is None else replace(query, purpose="", weight="job", group_by=None)
        by_state = query.group_by == "state"
        with self._spans.sums(views, edges, now, jobs, by_state=by_state) as running:
            how = (query.weight, query.group_by, query.purpose)
            return self._answer(
                running.sums,
                replace(query, state=""),
                _windows(edges, query),
                lambda window, make: running.made_of(window, how, make),
            )

    def _views(self, query: FleetQuery, since: float = -math.inf) -> list[JobView]:
        """Jobs that are meant, of whatever purpose; not all of those that were over before a moment."""
        chosen = replace(query, purpose="")
        return chosen.chosen(self._service.known_views(self._service.clock(), since))

    def _answer(
        self, sums: Sums, query: FleetQuery, windows: Sequence[Window], made_of: MadeOf = anew
    ) -> _Found:
        answers = groups_of(sums, query, windows, self._service.settings.prices, made_of)
        parts = [
            FleetPart(begin=window.begin, end=window.end, all=whole, fleet=groups)
            for window, (whole, groups) in zip(windows, answers, strict=True)
        ]
        return _Found(parts, left_out(sums, query, windows[0]))


def _windows(edges: Sequence[float], query: FleetQuery) -> list[Window]:
    """All of the time between edges, and after it each part, where a query asks for parts."""
    parts = pairwise(edges) if query.buckets else ()
    named = [Window(*part, str(place)) for place, part in enumerate(parts)]
    return [Window(edges[0], edges[-1], WHOLE), *named]
