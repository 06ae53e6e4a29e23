"""Families of jobs and what is usual in them."""

from __future__ import annotations

from fleet_rows import run

from ett_core.fleet.families import families, usual


def test_families_with_most_jobs_come_first():
    runs = [run("a", 1.0, family="x"), run("b", 2.0, family="y"), run("c", 9.0, family="y")]
    told = [(each.family, each.jobs, each.runs, each.latest) for each in families(runs)]
    assert told == [("y", 2, 2, 9.0), ("x", 1, 1, 1.0)]


def test_a_job_that_starts_often_counts_once():
    often = [run("often", n, attempt=n, figures={"f": 100.0}) for n in range(9)]
    once = [run("one", 1.0, figures={"f": 10.0}), run("two", 1.0, figures={"f": 20.0})]
    assert usual([*often, *once]) == {"f": 20.0}
    assert usual([]) == {}
