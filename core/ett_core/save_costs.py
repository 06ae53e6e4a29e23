"""What the steps beside asynchronous saves cost, measured from reports: pure.

A save is in flight from the end of its blocking part to the first report that it is durable or has
failed. The usual step is the median of the reports around it that no save touches; the excess is
what the steps of a save took beyond as many usual ones:

    reports       |--10 steps, 5 s--|-----10 steps, 8 s-----|--10 steps, 5 s--|
    save                            |<-----in flight------->|
    usual step 0.5 s                 excess 8 - 10 x 0.5 = 3 s, a share of 0.6

It is no component: the time is in `training` already. Data waits are not counted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import asdict, replace

from ett_core.save_reports import Report

NEAR_REPORTS = 20
"""Reports before a save, and as many after it, that say what is usual."""
USUAL_REPORTS = 3
USUAL_STEPS = 10
"""Fewer reports, or fewer steps in them, say nothing about what is usual."""
BRUSH = 0.01
"""A report of which less than this share lies in the flight of a save is untouched by it."""
SPREAD_OF_NORMAL = 1.4826
MEDIAN_ERROR = 1.2533
"""Standard error of a median, in those of a mean."""

SaveKey: TypeAlias = tuple[int, int]
"""Attempt and step."""

NO_END = "nobody told whether it became durable"
NO_STEPS = "no step was reported while it was in flight"
NO_USUAL = "too few steps were reported without a save in flight"


class Flight(NamedTuple):
    """An asynchronous save; `end` is None where nobody told it."""

    begin: float
    end: float | None
    outcome: str


class Part(NamedTuple):
    """A report of which `share` lies in the flight of a save, and how much of its excess is the save's."""

    report: Report
    share: float
    part: float


class SaveInterference(msgspec.Struct, frozen=True, gc=False):
    """What one asynchronous save cost the steps beside it.

    `began` is the end of its blocking part, `ended` the moment when it was durable or had failed
    (Unix seconds); `outcome` is `durable`, `failed` or `unknown`. `excess_s`: seconds that the
    steps in flight took beyond usual ones; `share`: the same as a share of usual ones; `noise_s`:
    about as much may be chance (two standard deviations). All None where `unknown` says why.
    """

    attempt: int
    step: int
    began: float
    ended: float | None
    outcome: str
    steps: float = 0.0
    usual_step_s: float | None = None
    excess_s: float | None = None
    share: float | None = None
    noise_s: float | None = None
    unknown: str = ""


class Interference(msgspec.Struct, frozen=True, gc=False):
    """All asynchronous saves of a job: of `saves`, `known` are in the sums (None without any)."""

    saves: int
    known: int
    excess_s: float | None
    share: float | None
    noise_s: float | None


def measured(
    reports: Sequence[Report], flights: Mapping[SaveKey, Flight], asked: Collection[SaveKey]
) -> dict[SaveKey, SaveInterference]:
    """What some of the saves of one attempt cost, by its reports in order of time.

    A save whose end nobody told is taken to be in flight until the next one begins; it has no
    figures and its steps are not usual ones.
    """
    order = sorted(flights, key=lambda key: (flights[key].begin, key))
    spans = _spans([flights[key] for key in order])
    parts: list[list[Part]] = [[] for _ in spans]
    usual = []
    for report, touched in zip(reports, _touched(reports, spans), strict=True):
        for place, share in touched.items():
            parts[place].append(Part(report, share, share / sum(touched.values())))
        if not touched:
            usual.append(report)
    return {
        key: _measure(key, flights[key], parts[place], _near(usual, spans[place]))
        for place, key in enumerate(order)
        if key in asked
    }


def as_object(saves: Sequence[SaveInterference]) -> dict[str, Any]:
    """The saves and their sums as one JSON object; empty without any save."""
    if not saves:
        return {}
    return {**asdict(total(saves)), "save_list": [asdict(save) for save in saves]}


def total(saves: Iterable[SaveInterference]) -> Interference:
    """The sums over saves; those without figures are only counted."""
    saves = list(saves)
    known = [save for save in saves if save.excess_s is not None]
    if not known:
        return Interference(len(saves), 0, None, None, None)
    excess_s = sum(save.excess_s or 0.0 for save in known)
    usual_s = sum(save.steps * (save.usual_step_s or 0.0) for save in known)
    noise_s = sum((save.noise_s or 0.0) ** 2 for save in known) ** 0.5
    return Interference(len(saves), len(known), excess_s, excess_s / usual_s if usual_s else None, noise_s)


def slowed_s(saves: Iterable[SaveInterference]) -> float | None:
    """Seconds by which one save slows the steps beside it: the median of those with figures.

    A step that stood still, for whatever reason, is no cost of saves. 0 where all of it may be chance;
    None where none has figures.
    """
    known = [(save.excess_s, save.noise_s or 0.0) for save in saves if save.excess_s is not None]
    if not known:
        return None
    usual_s = median(excess_s for excess_s, _ in known)
    by_chance_s = median(noise_s for _, noise_s in known) * min(1.0, MEDIAN_ERROR / len(known) ** 0.5)
    return usual_s if usual_s > by_chance_s else 0.0


def _spans(flights: Sequence[Flight]) -> list[tuple[float, float]]:
    """When saves were in flight, for saves in the order of their beginnings."""
    following = [*(flight.begin for flight in flights), float("inf")][1:]
    return [
        (flight.begin, max(flight.begin, after if flight.end is None else flight.end))
        for flight, after in zip(flights, following, strict=True)
    ]


def _touched(reports: Sequence[Report], spans: Sequence[tuple[float, float]]) -> Iterator[dict[int, float]]:
    """Of each report, the spans that it lies in, and how much of its time in each.

    >>> list(_touched([Report(end=10.0, begin=0.0, steps=5, step_s=10.0)], [(0.0, 2.5), (5.0, 99.0)]))
    [{0: 0.25, 1: 0.5}]
    """
    reach = list(accumulate((end for _, end in spans), max))
    for report in reports:
        places = range(bisect_right(reach, report.begin), bisect_left(spans, (report.end,)))
        if not places:
            yield {}
            continue
        length_s = max(report.end - report.begin, 1e-9)
        shares = ((place, _overlap_s(report, spans[place]) / length_s) for place in places)
        yield {place: share for place, share in shares if share > BRUSH}


def _overlap_s(report: Report, span: tuple[float, float]) -> float:
    return min(span[1], report.end) - max(span[0], report.begin)


def _near(usual: Sequence[Report], span: tuple[float, float]) -> Sequence[Report]:
    """The reports nearest to a span, before and after it."""
    place = bisect_left(usual, (span[0],))
    return usual[max(place - NEAR_REPORTS, 0) : place + NEAR_REPORTS]


def _measure(
    key: SaveKey, flight: Flight, parts: Sequence[Part], usual: Sequence[Report]
) -> SaveInterference:
    steps = sum(part.report.steps * part.share for part in parts)
    save = SaveInterference(*key, flight.begin, flight.end, flight.outcome, steps)
    usual_steps = sum(report.steps for report in usual)
    if flight.end is None:
        return replace(save, unknown=NO_END)
    if not steps:
        return replace(save, unknown=NO_STEPS)
    if len(usual) < USUAL_REPORTS or usual_steps < USUAL_STEPS:
        return replace(save, unknown=NO_USUAL)
    means = [report.step_s / report.steps for report in usual]
    usual_s = median(means)
    spread_s = SPREAD_OF_NORMAL * median(abs(mean - usual_s) for mean in means)
    excess_s = sum((part.report.step_s - part.report.steps * usual_s) * part.part for part in parts)
    seen = sum(part.report.steps * part.part for part in parts)
    by_chance = (seen * usual_steps / len(usual) + (MEDIAN_ERROR * seen) ** 2 / len(usual)) ** 0.5
    return replace(
        save,
        usual_step_s=usual_s,
        excess_s=excess_s,
        share=excess_s / (steps * usual_s) if usual_s else None,
        noise_s=2.0 * spread_s * by_chance,
    )
