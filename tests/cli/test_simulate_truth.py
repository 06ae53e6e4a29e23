"""The accounting of simulated events equals the truth that was kept while they were invented.

The ledger of a story is written without the accounting: what agrees here was found twice. A small
sample is run by default; ETT_FULL=1 runs many more seeds and moments.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest

from ett_cli.simulate.fleet import Fleet
from ett_cli.simulate.settings import Scenario, scenario
from ett_cli.simulate.truth import JobTruth
from ett_core.accounting import JobFold
from ett_core.accounting.account import JobAccount
from ett_core.details import JobDetails
from ett_core.events import AnyEvent, AttemptEnd, Event, Failure, FirstBatch, JobEnd, Progress

END_MS = 1_764_000_000_000
EXACTLY_S = 1e-6
FULL = os.environ.get("ETT_FULL") == "1"
SEEDS = range(40 if FULL else 3)
MOMENTS = 20 if FULL else 4
SHAPES: dict[str, Scenario] = {
    "small": scenario("small", jobs=6, train_hours=2.0),
    "every class": scenario("failures", jobs=4, train_hours=1.5),
    "fleet": scenario("fleet", jobs=8, days=1.0),
    "incident": scenario("incident", jobs=6, days=0.7),
    "preemption": scenario("preemption", jobs=6, days=0.5),
    "large": scenario("launch", days=0.4, ranks=256),
}
STATES = {
    "running": {
        "starting",
        "recovering",
        "training",
        "stalled",
        "checkpointing",
        "evaluating",
        "compiling",
        "publishing",
        "unobserved",
    },
}


def reseeded(shape: Scenario, seed: int, **changes: float) -> Scenario:
    fields = {name: getattr(shape, name) for name in shape.__dataclass_fields__}
    return Scenario(**{**fields, "seed": seed, **changes})


def near(told: float | None, found: float | None) -> bool:
    if told is None or found is None:
        return told is found
    return abs(told - found) <= EXACTLY_S


def differences(truth: JobTruth, found: JobAccount) -> list[tuple[object, ...]]:
    """What the accounting says other than the truth: what, truth, account."""
    pairs = [
        (name, truth.components.get(name, 0.0), found.components.get(name, 0.0))
        for name in sorted({*truth.components, *found.components})
    ]
    names = ("start", "end", "wall_s", "tts_s", "unsaved_exposure_s", "ett_percent")
    pairs += [(name, getattr(truth, name), getattr(found, name)) for name in names]
    pairs.append(("failures", len(truth.failures), len(found.failures)))
    pairs += [
        (f"failure {place} {name}", getattr(meant, name), getattr(seen, name))
        for place, (meant, seen) in enumerate(zip(truth.failures, found.failures, strict=False))
        for name in ("attempt", "time", "ttr_s", "unsaved_s")
    ]
    wrong = [pair for pair in pairs if not near(pair[1], pair[2])]
    if found.state not in STATES.get(truth.outcome, {truth.outcome}) or truth.finished != found.finished:
        wrong.append(("state", truth.outcome, found.state))
    return wrong


def accounted(events: Sequence[AnyEvent], now: float) -> JobAccount:
    fold = JobFold(events[0].job_id)
    fold.add(events)
    account = fold.account(now)
    assert account is not None
    return account


def check_all(shape: Scenario) -> int:
    """Compare every job of a fleet at the end of its window; returns how many there were."""
    fleet = Fleet(shape, END_MS)
    jobs = 0
    for story in fleet.stories():
        events = [event for _, event in fleet.told(story, shape.window_ms)]
        truth = story.truth(shape.window_ms)
        if truth is None:
            assert events == []
            continue
        jobs += 1
        assert differences(truth, accounted(events, END_MS / 1000)) == [], (shape.seed, story.plan.place)
        check_details(truth, events)
    return jobs


def check_details(truth: JobTruth, events: Sequence[AnyEvent]) -> None:
    details = JobDetails()
    details.add(events)
    saves = details.checkpoints
    assert truth.events == len({(event.writer, event.seq) for event in events})
    assert truth.samples == unique_samples(events)
    assert {
        name: {"hits": t.hits, "misses": t.misses, "bypasses": t.bypasses}
        for name, t in details.processes.caches.items()
    } == {name: dict(totals) for name, totals in truth.caches.items()}
    if len(events) == truth.events:  # details take each event once
        if not truth.uncounted:  # details tell saves apart by attempt and step
            meant = (truth.saves.saved, truth.saves.durable, truth.saves.failed)
            assert meant == (saves.count, saves.durable_count, saves.failed_count)
            assert truth.saves.blocking_s == pytest.approx(saves.blocking_s)
        assert dict(truth.compile_s) == pytest.approx(details.compile_s)
        assert truth.accelerators == details.starts.accelerators
        assert dict(truth.labels) == details.starts.labels


def unique_samples(events: Sequence[Event]) -> float:
    seen = {(event.writer, event.seq): event for event in events}
    return sum(event.samples for event in seen.values() if isinstance(event, Progress))


@pytest.mark.parametrize("name", SHAPES)
def test_the_accounting_finds_the_truth_of_every_job(name):
    """Components, wall time, TTS, TTR, unsaved training and exposure, failures: to the microsecond."""
    assert sum(check_all(reseeded(SHAPES[name], seed)) for seed in SEEDS)


@pytest.mark.parametrize("name", ["small", "every class"])
def test_wrong_clocks_and_late_and_repeated_lines_change_nothing(name):
    """Offsets that are told are taken off; lines that come late or twice count once, in their place."""
    for seed in SEEDS:
        assert check_all(reseeded(SHAPES[name], seed, skew=0.4, disorder=0.05))


@pytest.mark.parametrize("name", ["small", "every class", "preemption"])
def test_the_truth_holds_at_any_moment_of_a_job(name):
    """Also in the middle of a start, a save, a stall, a fall; and right at an event."""
    for seed in SEEDS:
        check_moments(reseeded(SHAPES[name], seed, jobs=2, skew=0.3 * (seed % 2)), random.Random(seed))


def check_moments(shape: Scenario, source: random.Random) -> None:
    fleet = Fleet(shape, END_MS)
    for place in range(2):
        whole = [at_ms for at_ms, _ in fleet.story(place).events(shape.window_ms)]
        for _ in range(MOMENTS):
            after_ms = source.choice((0, 0, 1, 500, 30_000, 200_000, 700_000))
            now_ms = min(source.choice(whole) + after_ms, shape.window_ms)
            story = fleet.story(place)
            events = [event for _, event in story.events(now_ms)]
            truth = story.truth(now_ms)
            assert truth is not None
            now = fleet.origin.unix_s(now_ms)
            assert differences(truth, accounted(events, now)) == [], (shape.seed, place, now_ms)


def test_restarts_that_forgot_to_count_are_found_at_any_moment():
    """Two attempts under one number are told apart by their writers."""
    source, uncounted = random.Random(1), 0
    fleet = Fleet(scenario("failures", jobs=60, days=0.4, train_hours=1.0), END_MS)
    window_ms = fleet.scenario.window_ms
    for story in (story for story in fleet.stories() if story.plan.forgets):
        place = story.plan.place
        whole = [at_ms for at_ms, _ in story.events(window_ms)]
        for now_ms in [window_ms, *source.sample(whole, 4 * MOMENTS)]:
            again = fleet.story(place)
            events = [event for _, event in again.events(now_ms)]
            truth = again.truth(now_ms)
            assert truth is not None
            uncounted += truth.uncounted
            assert differences(truth, accounted(events, fleet.origin.unix_s(now_ms))) == [], (place, now_ms)
    assert uncounted > 20


def one_job() -> tuple[JobTruth, list[AnyEvent]]:
    """A job that fails and recovers, and its truth."""
    shape = reseeded(SHAPES["every class"], 1)
    story = Fleet(shape, END_MS).story(0)
    events = [event for _, event in story.events(shape.window_ms)]
    truth = story.truth(shape.window_ms)
    assert truth is not None
    assert truth.failures
    return truth, events


@pytest.mark.parametrize(
    ("kind", "which"), [(Progress, -1), (Failure, 0), (AttemptEnd, -1), (FirstBatch, -1)]
)
def test_an_event_that_is_missing_is_noticed(kind, which):
    """The comparison can fail: it does where one event that matters is lost."""
    truth, events = one_job()
    attempt = truth.failures[0].attempt
    places = [p for p, e in enumerate(events) if isinstance(e, kind) and e.attempt == attempt]
    del events[places[which]]
    assert differences(truth, accounted(events, END_MS / 1000)) != []


def test_order_of_arrival_changes_nothing():
    truth, events = one_job()
    random.Random(5).shuffle(events)
    assert differences(truth, accounted(events, END_MS / 1000)) == []


def test_the_truth_is_a_partition_by_itself():
    """Components add up to the wall time, and to the areas that jobs end with."""
    for name, shape in SHAPES.items():
        for story in Fleet(shape, END_MS).stories():
            last = None
            for _, last in story.events(shape.window_ms):  # noqa: B007 - the last one is looked at
                pass
            truth = story.truth(shape.window_ms)
            if truth is None:
                continue
            assert sum(truth.components.values()) == pytest.approx(truth.wall_s, abs=EXACTLY_S), name
            assert min(truth.components.values()) >= 0.0
            assert isinstance(last, JobEnd) == (
                truth.outcome in {"succeeded", "failed", "cancelled", "timed_out"}
            )
