"""What failures cost: every second of recovery is charged once."""

from __future__ import annotations

import pytest
from event_soup import soups
from hypothesis import given, settings

from ett_cli.simulate.fleet import Fleet
from ett_cli.simulate.settings import scenario
from ett_core.accounting import JobFold
from ett_core.components import RECOVER_QUEUE
from ett_core.fleet.losses import losses

END_MS = 1_764_000_000_000


def check(account):
    found = losses(account)
    assert len(found) == len(account.failures)
    recovery = {name: s for name, s in account.components.items() if name.startswith("recover.")}
    assert sum(each.recovery_s for each in found) == pytest.approx(sum(recovery.values()), abs=1e-6)
    assert sum(each.queue_s for each in found) == pytest.approx(recovery.get(RECOVER_QUEUE, 0.0), abs=1e-6)
    assert [each.unsaved_s for each in found] == [failure.unsaved_s for failure in account.failures]
    assert all(each.accelerator_s >= 0 for each in found)


def test_recovery_of_a_simulated_fleet_is_charged_once():
    """Whatever fails, in loops too: the charges add up to the components of each job."""
    shape = scenario("failures", jobs=6, report_s=60.0)
    fleet = Fleet(shape, END_MS)
    failures = 0
    for story in fleet.stories():
        fold = JobFold(story.plan.job_id)
        fold.add([event for _, event in story.events(shape.window_ms)])
        account = fold.account(END_MS / 1000)
        check(account)
        failures += len(account.failures)
    assert failures > 20


@given(soups)
@settings(max_examples=40, deadline=None)
def test_recovery_of_any_events_is_charged_once(events):
    fold = JobFold(events[0].job_id)
    fold.add(events)
    account = fold.account(max(event.time for event in events) + 1000.0)
    if account is not None:
        check(account)
