"""The worked scenarios: events in, components out, in any order and in any cut."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ett_core.accounting import JobFold
from ett_core.events import AnyEvent, decode

SCENARIOS = json.loads((Path(__file__).parent / "data" / "scenarios.json").read_text())


def events_of(scenario: dict) -> list[AnyEvent]:
    return [decode(json.dumps(event)) for event in scenario["events"]]


def now_of(scenario: dict) -> float:
    ends = max(event["time"] for event in scenario["events"])
    return ends if scenario["now"] is None else scenario["now"]


def check(fold: JobFold, scenario: dict) -> None:
    account = fold.account(now_of(scenario))
    expected = scenario["expect"]
    assert account is not None
    assert dict(account.components) == pytest.approx(expected["components"], abs=1e-6)
    assert account.wall_s == pytest.approx(expected["wall_s"], abs=1e-6)
    assert sum(account.components.values()) == pytest.approx(account.wall_s, abs=1e-6)
    assert account.ett_percent == pytest.approx(expected["ett_percent"], abs=1e-5)
    assert len(account.failures) == expected["failures"]
    assert account.tts_s == pytest.approx(expected["tts_s"], abs=1e-6)
    assert list(account.ttr_s) == pytest.approx(expected["ttr_s"], abs=1e-6)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s["name"])
def test_worked_scenario(scenario):
    """Each scenario gives the components that were worked by hand."""
    fold = JobFold(scenario["name"])
    fold.add(events_of(scenario))
    check(fold, scenario)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s["name"])
def test_order_repeats_and_batching_change_nothing(scenario):
    """Shuffled, doubled and asked for after every event, the answer is the same."""
    source = random.Random(scenario["name"])
    events = events_of(scenario) * 2
    source.shuffle(events)
    fold = JobFold(scenario["name"])
    for event in events:
        fold.add([event])
        fold.account(now_of(scenario))
    check(fold, scenario)
