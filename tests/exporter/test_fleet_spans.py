"""Parts of the time of live jobs: what is kept of them is what would be read anew."""

from __future__ import annotations

import os
import random
from itertools import pairwise

import pytest
from live_jobs import OneJob, SomeJobs
from plausible import EPOCH, plausible

from ett_core import events as ev
from ett_exporter.fleet import Window, groups_of
from ett_exporter.fleet_spans import FleetSpans
from ett_exporter.queries import FleetQuery


def parts(spans, view, edges, now):
    """Nanoseconds by component in each part, and in all."""
    names = [*(str(place) for place in range(len(edges) - 1)), "whole"]
    with spans.sums([view], edges, now, "all") as (running, _):
        return [[dict(total.amounts_ns(name)) for _, total in running.sums.of_window(name)] for name in names]


def edges_at(now, size_s, count):
    """The edges of parts of which the last goes on."""
    end = (now // size_s + 1) * size_s
    return [end - size_s * place for place in range(count, -1, -1)]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(200 if os.environ.get("ETT_FULL") == "1" else 8))
def test_parts_that_are_kept_are_those_of_the_job_as_it_is(seed, share):
    """However a job goes on, whatever comes late, whichever window is asked for."""
    source = random.Random(seed)
    events, end = plausible(source)
    late = {id(event): source.expovariate(1 / 60.0) for event in events if source.random() < share}
    events.sort(key=lambda event: event.time + late.get(id(event), 0.0))
    one = OneJob()
    spans = FleetSpans(one)
    arrived = EPOCH
    for first in range(0, len(events), 3):
        told = events[first : first + 3]
        one.tell(told)
        arrived = max(arrived, *(event.time for event in told))
        for now in (arrived + source.random(), arrived + 5.0 * source.random()):
            view = one.job.view(now)
            for size_s, count in ((7.0, 5), (60.0, 12)):
                edges = edges_at(now, size_s, count)
                assert parts(spans, view, edges, now) == parts(FleetSpans(one), view, edges, now)
    view = one.job.view(end)
    assert parts(spans, view, edges, end) == parts(FleetSpans(one), view, edges, end)


def training(minutes):
    """A job of one rank that reports every ten seconds."""
    where = {"job_id": "job", "writer": "w", "attempt": 0, "rank": 0}
    yield ev.FirstBatch(**where, seq=0, time=EPOCH)
    for report in range(1, 6 * minutes):
        yield ev.Progress(**where, seq=report, time=EPOCH + 10 * report, step=report, steps=1)


def test_a_job_that_trains_is_read_once_for_each_part():
    """A question that comes again reads nothing of the job; a new part reads that alone."""
    one, (first, *reports) = OneJob(), training(60)
    one.tell([first])
    spans = FleetSpans(one)
    for report in reports:
        one.tell([report])
        now = report.time + 1.0
        edges = edges_at(now, 300.0, 6)
        found = parts(spans, one.job.view(now), edges, now)
        seconds = [
            {name: round(amount * 1e9) for name, amount in part.items()} for part in one.job.spans(now, edges)
        ]
        assert [part[0] if part else {} for part in found[:-1]] == seconds
    assert one.read <= 12 + 2


@pytest.mark.parametrize("by_state", [True, False])
@pytest.mark.parametrize("seed", range(100 if os.environ.get("ETT_FULL") == "1" else 4))
def test_sums_that_go_on_are_those_of_the_jobs_as_they_are(seed, by_state):
    """Whichever jobs go on, come or are asked for no more, from question to question."""
    source = random.Random(seed)
    told = {f"job-{number}": plausible(source)[0] for number in range(4)}
    some, views = SomeJobs(told), {}
    spans, now = FleetSpans(some), EPOCH
    while any(told.values()):
        now = max(now, min(events[0].time for events in told.values() if events)) + source.choice((0.5, 5.0))
        for name, events in told.items():
            due = [event for event in events if event.time <= now]
            if due and source.random() < 0.7:
                del events[: len(due)]
                some.tell(name, due)
                views[name] = some.jobs[name].job.view(now)
        shown = [view for view in views.values() if view is not None and source.random() < 0.9]
        edges = edges_at(now, 60.0, 12)
        anew = added(FleetSpans(some), shown, edges, now, by_state)
        assert added(spans, shown, edges, now, by_state) == anew


def added(spans, views, edges, now, by_state):
    """Jobs, nanoseconds by component and moments by part and kind of job; what was made of parts holds."""
    with spans.sums(views, edges, now, "all", by_state=by_state) as (running, _):
        assert groups(running, edges) == groups_of(running.sums, EVERYTHING, windows(edges), {})
        return {
            name: {
                kind: (total.jobs(name), dict(total.amounts_ns(name)), total.starts, total.failed_at)
                for kind, total in running.sums.of_window(name)
            }
            for name in [*(str(place) for place in range(len(edges) - 1)), "whole"]
        }


EVERYTHING = FleetQuery(purpose="", group_by="team")


def windows(edges):
    """All of the time, and each of its parts."""
    parts = [Window(*part, str(place)) for place, part in enumerate(pairwise(edges))]
    return [Window(edges[0], edges[-1], "whole"), *parts]


def groups(running, edges):
    """The groups of each of these, made anew only where that is due."""
    return groups_of(
        running.sums, EVERYTHING, windows(edges), {}, lambda name, make: running.made_of(name, "", make)
    )


def test_what_was_made_of_a_part_that_is_over_is_not_made_again():
    """While a job trains, of six parts the last is another one, and so is all of the time."""
    one, (first, *reports) = OneJob(), training(35)
    one.tell([first, *reports[:-2]])
    spans, found = FleetSpans(one), []
    for report in reports[-2:]:
        one.tell([report])
        now = report.time + 1.0
        edges = edges_at(now, 300.0, 6)
        with spans.sums([one.job.view(now)], edges, now, "all") as (running, _):
            found.append(groups(running, edges))
    assert [before is after for before, after in zip(*found, strict=True)] == [False, *[True] * 5, False]
