"""An event that a fold cannot take in is left out, and nothing else with it."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from plausible import plausible

from ett_core import events as ev
from ett_core.accounting import JobFold
from ett_core.accounting.snapshot import dump, load
from ett_core.details import JobDetails
from ett_core.refusals import REMEMBERED

TOO_LARGE = 2**70
"""No event that was decoded holds such a number."""
LATER = (0, 1000, 30_000)


def poisons(events, source):
    """Events that decoding would refuse, at the moments of some of the others, from their writers."""
    ranks = [event for event in events if event.rank >= 0]
    for seq, like in enumerate(source.sample(ranks, min(len(ranks), 4)), 10**9):
        about = {"job_id": like.job_id, "writer": like.writer, "seq": seq, "time": like.time}
        about |= {"attempt": like.attempt, "rank": like.rank}
        timed = ev.StepSeconds(count=TOO_LARGE, sum=1.0, max=1.0)
        yield source.choice(
            [
                ev.CheckpointDurable(step=TOO_LARGE, mode="async", **about),
                ev.Progress(step=TOO_LARGE, steps=1, step_seconds=timed, **about),
            ]
        )


@pytest.mark.parametrize("late_s", [0, 20])
@pytest.mark.parametrize("broken", [False, True])
def test_the_others_are_accounted_for_as_without_it(late_s, broken):
    """In order or not, read again from the history or not, with a snapshot in between or not."""
    refused = 0
    for seed in range(60):
        source = random.Random(seed)
        events, now = plausible(source)
        bad = list(poisons(events, source))
        told = sorted([*events, *bad], key=lambda event: event.time + source.uniform(0, late_s))
        fold, clean = JobFold("job", history=lambda told=told: told), JobFold("job")
        for event in told:
            fold.add([event])
            if broken and source.random() < 0.05:
                fold = load(dump(fold), lambda told=told: told)
        clean.add([event for event in told if event.seq < 10**9])
        for later in LATER:
            assert fold.account(now + later) == clean.account(now + later), seed
        refused += len(fold.refusals.take())
    assert refused


def unwaited(event):
    """A report whose wait for data is no number."""
    return replace(event, data_wait_s=None) if isinstance(event, ev.Progress) else event


def test_the_details_go_on():
    """What is known beside the time, too; each refused event is named once, with the reason."""
    events, _ = plausible(random.Random(7))
    bad = [unwaited(event) for event in poisons(events, random.Random(7))]
    details, clean = JobDetails(), JobDetails()
    clean.add(events)
    details.add([*events[:9], *bad, *events[9:], *bad])
    assert details.async_saves.saves == clean.async_saves.saves
    assert details.checkpoints.latest[: len(clean.checkpoints.latest)] == clean.checkpoints.latest
    refused = details.refusals.take()
    assert {(each.writer, each.seq) for each in refused} <= {(event.writer, event.seq) for event in bad}
    assert refused
    assert details.refusals.take() == []


def test_a_run_of_events_that_fails_takes_away_no_other():
    """Its events are named; what other ranks told is there."""
    events, _ = plausible(random.Random(7))
    ranks = [event for event in events if event.rank >= 0]
    timeless = [replace(event, writer="timeless", seq=n, time=None) for n, event in enumerate(ranks[:2])]
    details, clean = JobDetails(), JobDetails()
    details.add([*events[:9], *timeless, *events[9:]])
    clean.add(events[:9])
    clean.add(events[9:])
    assert details.nodes.state() == clean.nodes.state()
    assert details.samples == clean.samples
    refused = details.refusals.take()
    assert {each.writer for each in refused} == {"timeless"}


def test_a_thousand_of_them():
    """Each is left out alone, however many they are."""
    events, now = plausible(random.Random(7))
    like = next(event for event in events if event.rank >= 0)
    about = {"job_id": like.job_id, "writer": like.writer, "attempt": like.attempt, "rank": like.rank}
    bad = [ev.CheckpointDurable(step=TOO_LARGE, time=like.time, seq=10**9 + n, **about) for n in range(1500)]
    fold, clean = JobFold("job"), JobFold("job")
    fold.add([*events, *bad])
    clean.add(events)
    assert fold.account(now) == clean.account(now)
    assert len(fold.refusals.take()) == REMEMBERED
