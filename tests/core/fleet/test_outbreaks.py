"""Outbreaks: a service that breaks is found with its span, and nothing is found where nothing broke."""

from __future__ import annotations

import random

import pytest
from fleet_rows import HOUR, failure, run

from ett_core.fleet.outbreaks import BELOW, outbreaks

END = 100 * HOUR
FLEET = [run(f"j{n}", 0.0, hours=100.0) for n in range(20)]
STORE = {"failure_class": "object_store", "domain": "infrastructure"}


def outage(jobs=8, at=60.0, owners=4):
    return [failure(f"j{n}", (at + n / 10) * HOUR, team=f"t{n % owners}", **STORE) for n in range(jobs)]


def test_an_outage_is_found_with_its_span_and_rates():
    """Eight jobs in an hour against one in the days before."""
    before = failure("j9", 3 * HOUR, team="t9", **STORE)
    (found,) = outbreaks(FLEET, [before, *outage()], 0.0, END)
    assert (found.failure_class, found.since, found.until) == ("object_store", 60 * HOUR, 60.7 * HOUR)
    assert (found.jobs, found.owners) == (8, ["t0", "t1", "t2", "t3"])
    assert found.factor > 100
    assert found.probability < 1e-6
    assert found.log_likelihood_ratio > 10
    assert found.lost_accelerator_s == pytest.approx(8 * 100.0 * 8)


def test_an_outage_that_goes_on_has_no_end():
    (found,) = outbreaks(FLEET, outage(at=99.2), 0.0, END)
    assert found.until is None


def test_the_troubles_of_one_owner_are_no_outbreak():
    assert outbreaks(FLEET, outage(owners=1), 0.0, END) == []


def test_one_job_in_a_crash_loop_is_no_outbreak():
    """Its later failures of the row are not strikes."""
    loop = [failure("j0", (60 + n / 10) * HOUR, count=n + 1, **STORE) for n in range(30)]
    assert outbreaks(FLEET, loop, 0.0, END) == []


def test_more_jobs_at_the_same_rate_are_no_outbreak():
    """Twice as many failures while twenty times as many jobs run."""
    runs = [run("a", 0.0, hours=90.0), *(run(f"j{n}", 90 * HOUR, hours=10.0) for n in range(100))]
    old = [failure(f"o{n}", n * 10 * HOUR, team=f"t{n}", **STORE) for n in range(9)]
    new = [failure(f"n{n}", (90 + n) * HOUR, team=f"t{n}", **STORE) for n in range(9)]
    assert outbreaks(runs, [*old, *new], 0.0, END) == []


def test_a_steady_rate_is_rarely_an_outbreak():
    """Strikes at random moments, over 200 fleets: an outbreak is found in about 1 % at most."""
    chance = random.Random(3)
    wrong = 0
    for _ in range(200):
        failures = [
            failure(f"j{n}", chance.uniform(0.0, END), team=f"t{n % 7}", failure_class=f"c{n % 3}")
            for n in range(60)
        ]
        wrong += bool(outbreaks(FLEET, failures, 0.0, END))
    assert wrong <= 200 * BELOW + 4


def test_a_steady_rate_of_very_many_is_no_outbreak():
    """More strikes than are looked at: the time before those that are does not count as calm."""
    many = [failure(f"j{n}", n * 100 / 900 * HOUR, team=f"t{n % 5}", **STORE) for n in range(900)]
    assert outbreaks(FLEET, many, 0.0, END) == []


def test_nothing_is_made_of_nothing():
    assert outbreaks([], [], 0.0, END) == []
    assert outbreaks([], outage(), 0.0, END) == []
