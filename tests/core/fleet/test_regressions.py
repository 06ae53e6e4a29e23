"""Component regressions: a slow release is found with what changed, and calm fleets raise no alarm."""

from __future__ import annotations

import random

import pytest
from fleet_rows import HOUR, run

from ett_core.fleet.regressions import BELOW, regressions
from ett_core.fleet.rows import TIME_TO_RECOVER, TIME_TO_START

END = 1000 * HOUR


def history(chance, *, jobs=30, slow_from=None, factor=2.0, families=("m",), **fields):
    """A job every ten hours; from one of them on a part of the start takes longer."""
    runs = []
    for n in range(jobs):
        usual = 30.0 * chance.lognormvariate(0.0, 0.15)
        slow = slow_from is not None and n >= slow_from
        model_init = usual * (factor if slow else 1.0)
        figures = {TIME_TO_START: 200.0 + model_init, "start.model_init": model_init, "data_wait": 0.02}
        said = {name: make(n) for name, make in fields.items()}
        runs.append(run(f"j{n}", n * 10 * HOUR, figures=figures, family=families[n % len(families)], **said))
    return runs


def test_a_slow_release_is_found_with_what_changed():
    """The figure, since when, before and after, and the version that came with it, but no hash of its own."""
    runs = history(
        random.Random(1),
        slow_from=24,
        versions=lambda n: {"torch": "2.13" if n >= 24 else "2.12", "python": "3.11"},
        config_hash=lambda n: f"hash{n}",
    )
    (found,) = regressions(runs, 0.0, END)
    assert (found.family, found.figure, found.unit) == ("m", "start.model_init", "s")
    assert found.since == 240 * HOUR
    assert (found.jobs_before, found.jobs_after) == (24, 6)
    assert found.after / found.before == pytest.approx(2.0, rel=0.3)
    assert [(c.what, c.before, c.after) for c in found.changed] == [("torch", ["2.12"], ["2.13"])]


def test_it_is_seen_after_a_handful_of_jobs():
    """Six new jobs against twenty-four are enough, three never are."""
    assert regressions(history(random.Random(2), slow_from=24), 0.0, END)
    assert not regressions(history(random.Random(2), slow_from=27, factor=10.0), 0.0, END)


def test_one_outlier_raises_no_alarm():
    runs = history(random.Random(3))
    runs[25] = run("j25", 250 * HOUR, figures={**runs[25].figures, "start.model_init": 5000.0})
    assert regressions(runs, 0.0, END) == []


def test_one_job_that_starts_often_raises_no_alarm():
    """Forty slow starts of a single job are one job."""
    runs = history(random.Random(4))
    figures = {TIME_TO_START: 900.0, "start.model_init": 600.0}
    runs += [run("loop", (310 + n) * HOUR, figures=figures) for n in range(40)]
    assert regressions(runs, 0.0, END) == []


def test_what_became_quicker_is_no_alarm():
    assert regressions(history(random.Random(5), slow_from=15, factor=0.3), 0.0, END) == []


def test_a_certain_difference_that_does_not_matter_is_no_alarm():
    """Ten percent more, or three seconds more, is left out however certain."""
    chance = random.Random(6)
    assert regressions(history(chance, slow_from=15, factor=1.1, jobs=60), 0.0, END) == []
    small = [
        run(f"j{n}", n * HOUR, figures={TIME_TO_START: 1.0 + (n >= 15) * 3.0 + n / 1000}) for n in range(30)
    ]
    assert regressions(small, 0.0, END) == []


def test_larger_jobs_are_no_regression():
    """Where a start takes longer with every doubling, a turn to larger jobs is not held against it."""
    chance = random.Random(7)
    runs = []
    for n in range(40):
        size = 2 ** (chance.randrange(3) + (3 if n >= 25 else 0))
        seconds = 40.0 * size**0.5 * chance.lognormvariate(0.0, 0.05)
        runs.append(run(f"j{n}", n * HOUR, world_size=size, figures={TIME_TO_START: seconds}))
    assert regressions(runs, 0.0, END) == []


def test_many_small_families_together_show_what_none_shows_alone():
    """Five jobs a family tell little; all families slow at once tell much."""
    families = [f"m{n}" for n in range(8)]
    runs = history(random.Random(8), jobs=40, slow_from=20, families=families)
    (found,) = regressions(runs, 0.0, END)
    assert (found.family, found.figure, found.families) == ("", "start.model_init", 8)


def test_a_new_part_of_the_start_is_a_regression():
    """A part that runs did not have before took no time then."""
    runs = history(random.Random(9), jobs=30)
    slow = [
        run(r.job_id, r.start, figures={**r.figures, "start.sharding_plan": 60.0}) if n >= 20 else r
        for n, r in enumerate(runs)
    ]
    (found,) = regressions(slow, 0.0, END)
    assert (found.figure, found.before, found.after) == ("start.sharding_plan", 0.0, 60.0)


def test_shares_of_the_loop_are_compared_too():
    runs = [
        run(f"j{n}", n * HOUR, figures={"data_wait": (0.2 if n >= 20 else 0.03) + n / 10_000})
        for n in range(30)
    ]
    (found,) = regressions(runs, 0.0, END)
    assert (found.figure, found.unit) == ("data_wait", "ratio")


def test_recoveries_are_compared_with_recoveries():
    """Runs that resume and runs that start anew have different figures, which do not mix."""
    runs = [run(f"a{n}", n * HOUR, figures={TIME_TO_START: 50.0 + n / 100}) for n in range(20)]
    runs += [run(f"b{n}", (20 + n) * HOUR, figures={TIME_TO_RECOVER: 500.0 + n / 100}) for n in range(20)]
    assert regressions(runs, 0.0, END) == []


def test_calm_histories_rarely_raise_an_alarm():
    """Over 60 histories of 8 families in which nothing changed: alarms in about 1 % at most."""
    chance = random.Random(10)
    families = [f"m{n}" for n in range(8)]
    wrong = sum(bool(regressions(history(chance, jobs=60, families=families), 0.0, END)) for _ in range(60))
    assert wrong <= 60 * BELOW + 3


def test_nothing_is_made_of_nothing():
    assert regressions([], 0.0, END) == []
    assert regressions([run("j", 0.0, figures={})], 0.0, END) == []
