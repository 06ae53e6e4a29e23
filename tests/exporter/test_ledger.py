"""The sums over jobs: as if everything were added up anew, and counters that never fall."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from msgspec.structs import replace
from plausible import plausible

from ett_core.accounting import JobFold
from ett_core.accounting.account import nanoseconds
from ett_core.details import JobDetails
from ett_exporter.fleet_series import fleet_samples
from ett_exporter.fleet_sums import kind_of
from ett_exporter.ledger import CauseKey, FinalKey, Ledger, NodeKey
from ett_exporter.views import WINDOWS_S, JobView, details_view


def view_of(seed, fold, details, now):
    account = fold.account(now)
    if account is None:
        return None
    windows = {window: fold.window(now - length, now, now) for window, length in WINDOWS_S.items()}
    described = replace(
        details_view(details, account), accelerators=1 + seed % 3, labels={"cluster": "c", "team": "t"}
    )
    return JobView(replace(account, job_id=f"job-{seed}", failures=(), ttr_s=()), described, windows)


def lives(seeds):
    """Views of plausible jobs as they go on, in the order of time."""
    found = []
    for seed in seeds:
        source = random.Random(seed)
        events, now = plausible(source)
        events.sort(key=lambda event: event.time)
        fold, details = JobFold("job"), JobDetails()
        for place, event in enumerate(events):
            fold.add([event])
            details.add([event])
            if place % 5 == 0:
                found.append(view_of(seed, fold, details, event.time))
        found.append(view_of(seed, fold, details, now))
    return [view for view in found if view is not None]


def test_the_ledger_is_the_sum_over_the_latest_views():
    """Whatever views came before, windows and final time are those of the latest view of each job."""
    ledger, latest = Ledger(), {}
    before = {}
    for view in lives(range(30)):
        ledger.put(view)
        latest[view.account.job_id] = view
        assert all(ledger.final.counted[key] >= amount for key, amount in before.items())
        before = dict(ledger.final.counted)
    final = {}
    for view in latest.values():
        for component, seconds in view.account.final.items():
            if component != "recover.queue":
                key = FinalKey("c", "t", component)
                final[key] = final.get(key, 0) + view.accelerator_weight * nanoseconds(seconds)
    counted, back = ledger.final.counted, ledger.final.taken_back
    assert amounts_of(ledger) == added_up(latest.values())
    left = {key: amount - back.get(key, 0) for key, amount in counted.items()}
    assert {key: amount for key, amount in left.items() if amount} == final


def amounts_of(ledger):
    """Nanoseconds in the ledger by kind, window and component."""
    return {
        (*kind, window, component): amount
        for window in WINDOWS_S
        for kind, total in ledger.windows.of_window(window)
        for component, amount in total.amounts_ns(window).items()
    }


def added_up(views):
    """The same from the views, one by one."""
    sums = Counter()
    for view in views:
        for window, components in view.windows.items():
            for component, seconds in components.items():
                sums[(*kind_of(view), window, component)] += nanoseconds(seconds)
    return +sums


def test_jobs_that_leave_take_their_windows_and_leave_their_counts():
    """Without jobs no window holds anything, and what was final stays counted."""
    ledger, views = Ledger(), lives(range(5))
    for view in views:
        ledger.put(view)
    counted = dict(ledger.final.counted)
    for view in views:
        ledger.drop(view.account.job_id)
    assert (amounts_of(ledger), ledger.final.counted) == ({}, counted)


def test_a_job_from_before_the_start_counts_from_where_it_stands():
    """Its windows are there at once; its counters begin with what comes next."""
    first, *_, last = lives([3])
    ledger, whole = Ledger(), Ledger()
    ledger.put(first, is_old=True)
    assert ledger.final.counted == {}
    ledger.put(last, is_old=True)
    for view in (first, last):
        whole.put(view)
    assert 0 < sum(ledger.final.counted.values()) <= sum(whole.final.counted.values())
    assert amounts_of(ledger) == amounts_of(whole)


def samples_of(running, now):
    ledger = Ledger()
    views = running.views(now)
    for view in views:
        ledger.put(view)
    return {(name, *labels): value for name, labels, value in fleet_samples(ledger)}


def test_failures_and_their_cost_by_cause(service, story):
    """Each job of the story fails once and trains again: counted by cause and node, with what it cost."""
    running = service()
    for name in ("a", "b"):
        for body in story(name).bodies().values():
            running.ingest(body)
    views = running.views(running.clock())
    failure, why = views[0].account.failures[0], views[0].diagnoses[0]
    ledger = Ledger()
    for view in views:
        ledger.put(view)
    cause = CauseKey(why.failure_class, why.domain, views[0].label("cluster"))
    weight = views[0].accelerator_weight
    assert ledger.failures.counted == {cause: 2}
    cost_s = weight * (failure.unsaved_s + failure.ttr_s)
    assert ledger.lost.counted[cause] / 1e9 == pytest.approx(2 * cost_s)
    assert ledger.nodes.counted == {NodeKey(why.node or failure.node, why.failure_class): 2}
    found = samples_of(running, running.clock())
    cluster = cause.cluster
    assert found["ett_fleet_time_to_start_seconds_count", cluster] == 2
    assert found["ett_fleet_time_to_recover_seconds_bucket", cluster, "+Inf"] == 2
    assert found["ett_fleet_time_to_recover_seconds_sum", cluster] == pytest.approx(2 * failure.ttr_s)
    assert found["ett_fleet_checkpoint_blocking_seconds_count", cluster] > 0
