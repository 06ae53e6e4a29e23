"""What a reader may ask for: the parameters of the query API, decoded and checked.

>>> sorted(from_pairs(JobsQuery, [("state", "training"), ("state", "stalled"), ("limit", "5")]).states)
['stalled', 'training']
>>> from_pairs(TimelineQuery, [("begin", "soon")])
Traceback (most recent call last):
ett_exporter.queries.QueryError: begin: Expected `float | null`, got `str`
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Literal, TypeVar

import msgspec

from ett_core.accounting import STATES
from ett_core.fleet.rows import Failure
from ett_core.fleet.what_if import FAILURE_PREFIX, LEVERS
from ett_core.purposes import TRAINING
from ett_exporter.fleet_sums import Kind
from ett_exporter.views import JobView

HOUR_S = 3600.0
LONGEST_WAIT_S = 60.0
MOST_ROWS = 10_000

Moment = Annotated[float, msgspec.Meta(gt=-1e11, lt=1e11, description="Unix seconds")]
Words = Annotated[str, msgspec.Meta(max_length=1024, description="one or more, separated by commas")]
Text = Annotated[str, msgspec.Meta(max_length=256, description="a part of it, in any case")]
ANY_STATE = f"({'|'.join(STATES)})"
States = Annotated[
    str,
    msgspec.Meta(
        max_length=1024,
        extra_json_schema={"pattern": f"^({ANY_STATE}(,{ANY_STATE})*)?$"},
        description="one or more states, separated by commas",
    ),
]
LEVER = f"({FAILURE_PREFIX}[A-Za-z0-9_]+|{'|'.join(LEVERS)})"
LeverKeys = Annotated[
    str,
    msgspec.Meta(
        max_length=1024,
        extra_json_schema={"pattern": f"^({LEVER}(,{LEVER})*)?$"},
        description=f"{FAILURE_PREFIX}CLASS, {', '.join(LEVERS)}; several with commas between them",
    ),
]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS, description="rows of the answer, at most")]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**31, description="rows to pass over")]

SortKey = Literal[
    "job_id", "-job_id", "job_name", "-job_name", "state", "-state", "state_since", "-state_since",
    "start", "-start", "end", "-end", "wall_s", "-wall_s", "ett_percent", "-ett_percent", "tts_s", "-tts_s",
    "failures", "-failures", "attempts", "-attempts", "accelerators", "-accelerators",
    "unsaved_exposure_s", "-unsaved_exposure_s", "last_progress_at", "-last_progress_at",
    "urgency", "-urgency",
]  # fmt: skip

GroupKey = Literal[
    "failure_class", "domain", "ending", "node", "cluster", "team", "model", "accelerator_type", "job_id"
]  # fmt: skip
WINDOWS_S = {"1h": HOUR_S, "24h": 24 * HOUR_S, "7d": 168 * HOUR_S, "30d": 720 * HOUR_S, "90d": 2160 * HOUR_S}

T = TypeVar("T", bound=msgspec.Struct)


class QueryError(ValueError):
    """A query is not understood; the message names the parameter."""


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


class Filter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs; all of what is given must hold."""

    state: States = ""
    cluster: Words = ""
    team: Words = ""
    model: Words = ""
    scheduler: Words = ""
    purpose: Words = ""
    text: Text = ""

    def __post_init__(self) -> None:
        """Check.

        Raises:
            ValueError: there is no such state.
        """
        if unknown := sorted(self.states.difference(STATES)):
            raise ValueError(f"state: there is no state `{unknown[0][:40]}`; there are {', '.join(STATES)}")

    @property
    def states(self) -> frozenset[str]:
        """The states asked for; empty for all."""
        return _words(self.state)

    def kinds(self) -> Callable[[Kind], bool]:
        """Whether jobs of a kind are meant, `text` aside."""
        names = ("state", "cluster", "team", "model", "scheduler", "purpose")
        wanted = [(name, words) for name in names if (words := _words(getattr(self, name)))]
        return lambda kind: all(getattr(kind, name) in words for name, words in wanted)

    def chosen(self, views: Iterable[JobView]) -> list[JobView]:
        """Those of the jobs that are meant."""
        if states := self.states:
            views = [view for view in views if view.account.state in states]
        for name in ("cluster", "team", "model", "scheduler"):
            if given := _words(getattr(self, name)):
                views = [view for view in views if view.label(name) in given]
        if purposes := _words(self.purpose):
            views = [view for view in views if view.purpose in purposes]
        if text := self.text.casefold():
            views = [view for view in views if text in _text_of(view)]
        return list(views)


class Page(Filter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs, and which rows of them."""

    limit: Limit | None = None
    offset: Offset = 0


class RowsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which rows."""

    limit: Limit | None = None
    offset: Offset = 0


class JobsQuery(Page, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs, in which order: by their beginning in the exporter, or `sort` (`-` turns it round).

    `urgency` puts those first that somebody should look at first.
    """

    sort: SortKey | None = None


class SpanQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the time of a job."""

    begin: Moment | None = None
    end: Moment | None = None


class TimelineQuery(SpanQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the time of a job, in how many stretches at most (about)."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=20_000)] = 2000


class WindowQuery(Filter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs, and which time: the latest `window`, or `begin` and `end`."""

    window: Literal["1h", "24h", "7d", "30d", "90d"] = "30d"
    begin: Moment | None = None
    end: Moment | None = None

    def span(self, now: float) -> tuple[float, float]:
        """The beginning and the end of the time that is meant, in Unix seconds."""
        end = now if self.end is None else self.end
        return (end - WINDOWS_S[self.window] if self.begin is None else self.begin, end)


class NodesQuery(WindowQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes of which jobs, in which time, and which rows of them."""

    limit: Limit | None = None
    offset: Offset = 0


class RunsQuery(WindowQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs of which jobs, of one family or all, in which time, and which rows of them."""

    family: Annotated[str, msgspec.Meta(max_length=1024, description="the whole name of one")] | None = None
    limit: Limit | None = 1000
    offset: Offset = 0


class FailuresQuery(Page, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Failures of which jobs, classes, domains, endings and nodes, in which time (all, unless told).

    `group_by` adds the groups, the largest first by `order`: their number, or what they lost.
    `buckets` adds the same groups in so many equal parts of the time.
    """

    failure_class: Words = ""
    domain: Words = ""
    ending: Words = ""
    node: Words = ""
    limit: Limit | None = 1000
    window: Literal["1h", "24h", "7d", "30d", "90d"] | None = None
    begin: Moment | None = None
    end: Moment | None = None
    group_by: GroupKey | None = None
    order: Literal["count", "lost"] = "lost"
    buckets: Annotated[int, msgspec.Meta(ge=1, le=500)] | None = None

    def span(self, now: float) -> tuple[float, float]:
        """The beginning and the end of the time that is meant, in Unix seconds; infinite where untold."""
        begin, end = self.begin, math.inf if self.end is None else self.end
        if begin is None:
            begin = -math.inf if self.window is None else min(now, end) - WINDOWS_S[self.window]
        return begin, end

    def wanted(self) -> Callable[[Failure], bool]:
        """Whether a failure of a job and a time that are meant is meant."""
        names = ("failure_class", "domain", "ending", "node")
        wanted = [(name, words) for name in names if (words := _words(getattr(self, name)))]
        return lambda failure: all(getattr(failure, name) in words for name, words in wanted)


class CacheRunsQuery(Page, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs of which jobs, of which verdicts (all, unless told), and only those that surprise."""

    verdict: Words = ""
    family: Annotated[str, msgspec.Meta(max_length=1024, description="the whole name of one")] | None = None
    surprise: bool = False
    limit: Limit | None = 500

    @property
    def verdicts(self) -> frozenset[str]:
        """The verdicts asked for; empty for all."""
        return _words(self.verdict)


class ComparisonQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two runs by their ids, `JOB~ATTEMPT`."""

    one: Annotated[str, msgspec.Meta(max_length=256)]
    two: Annotated[str, msgspec.Meta(max_length=256)]


class WhatIfQuery(Filter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs (those that train, unless told), which latest time, weighted how, which levers together."""

    purpose: Words = TRAINING
    window: Literal["1h", "24h", "7d"] = "7d"
    weight: Literal["job", "accelerator", "cost"] = "accelerator"
    levers: LeverKeys = ""

    @property
    def keys(self) -> list[str]:
        """The names of the levers, in order."""
        return sorted(_words(self.levers))


class FleetQuery(Filter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs (those that train, unless told) and time (`window`, or `begin` and `end`), cut how.

    A beginning alone means up to now, an end alone the window before it. Parts of a window up to now begin
    at multiples of their length, and the last one goes on: an hour in 12 parts at 13:07 is 12:10 to 13:10.
    """

    purpose: Words = TRAINING
    window: Literal["1h", "24h", "7d"] = "24h"
    begin: Moment | None = None
    end: Moment | None = None
    weight: Literal["job", "accelerator", "cost"] = "accelerator"
    group_by: (
        Literal["cluster", "team", "model", "scheduler", "purpose", "accelerator_type", "state"] | None
    ) = None
    buckets: (
        Annotated[
            int,
            msgspec.Meta(
                ge=1,
                le=500,
                description="equal parts; of a window up to now (not of begin and end) they begin at "
                "multiples of their length, and the last one goes on",
            ),
        ]
        | None
    ) = None


class ChangesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changed since a cursor (empty: everything), waiting for it for some seconds.

    Without `rows` only the names of the jobs come, for which the exporter has next to nothing to do.
    """

    since: Annotated[str, msgspec.Meta(max_length=64)] = ""
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT_S)] = 0.0
    limit: Limit = 1000
    rows: bool = True


def from_pairs(kind: type[T], pairs: Iterable[tuple[str, str]]) -> T:
    """The parameters of a query string; one that is repeated counts as a list with commas.

    Raises:
        QueryError: a parameter is unknown, or a value is not understood.
    """
    given: dict[str, str] = {}
    for name, value in pairs:
        given[name] = f"{given[name]},{value}" if name in given else value
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise QueryError(_sentence(str(error))) from error


def _sentence(error: str) -> str:
    """What is wrong, the name of the parameter first.

    >>> _sentence("Expected `int`, got `str` - at `$.limit`")
    'limit: Expected `int`, got `str`'
    >>> _sentence("Object contains unknown field `colour`")
    'there is no parameter `colour` here'
    """
    where = re.fullmatch(r"(.*) - at `\$\.(\w+)`", error, re.DOTALL)
    if where:
        return f"{where[2]}: {where[1]}"
    return re.sub(r"^Object contains unknown field (.*)$", r"there is no parameter \1 here", error[:200])


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in text.split(",") if word)


def _text_of(view: JobView) -> str:
    labels = [view.label(name) for name in ("job_name", "team", "model", "cluster", "scheduler")]
    return "\n".join([view.account.job_id, *labels]).casefold()
