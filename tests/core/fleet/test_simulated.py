"""Fleets with known troubles: a bad node, an outage, a slow deploy are found; calm fleets are left alone.

A few seeds by default, all of them with ETT_FULL=1.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache

import pytest
from simulated_rows import END, simulated

from ett_cli.simulate.settings import Scenario, scenario
from ett_core.fleet.nodes import nodes
from ett_core.fleet.outbreaks import outbreaks
from ett_core.fleet.regressions import regressions

FULL = bool(os.environ.get("ETT_FULL"))
DEPLOYED = {f"{kind}.{part}" for kind in ("start", "recover") for part in ("preproc_creation", "model_init")}


@lru_cache(maxsize=16)
def rows(shape: Scenario, ranks: int = 2):
    """All runs and failures of a fleet of whose jobs a few ranks report, and its window.

    Kept for the next test of the same fleets.
    """
    found = [each for each, _ in simulated(replace(shape, reporting_ranks=ranks))]
    runs = [run for each in found for run in each.runs]
    failures = [failure for each in found for failure in each.failures]
    return runs, failures, END - shape.window_ms / 1000, END


def blocks(first: int, few: int, many: int) -> list[range]:
    """A few seeds by default; many in blocks with ETT_FULL=1."""
    size = 20
    if not FULL:
        return [range(first, first + few)]
    return [range(begin, begin + size) for begin in range(first, first + many, size)]


@pytest.mark.parametrize("seeds", blocks(0, 3, 40), ids=str)
def test_a_deploy_that_slows_starts_is_found(seeds):
    """In nearly every fleet of 40 jobs: the parts that became slower, no others, from about when they did."""
    seen = 0
    for seed in seeds:
        shape = scenario("incident", seed=seed, report_s=300.0)
        runs, _, begin, end = rows(shape)
        found = [each for each in regressions(runs, begin, end) if not each.family]
        seen += bool({each.figure for each in found} & DEPLOYED)
        assert {each.figure for each in found} <= {*DEPLOYED, "time_to_start", "time_to_recover"}
        for each in found:
            assert abs((each.since - begin) / (end - begin) - 0.5) < 0.2
            assert 1.5 < each.factor < 3.5
    assert seen >= 0.9 * len(seeds)


@pytest.mark.parametrize("seeds", blocks(0, 3, 40), ids=str)
def test_an_outage_is_found(seeds):
    """In most fleets enough jobs are struck; what is found is the outage, give or take a strike before it."""
    seen = 0
    for seed in seeds:
        shape = scenario("incident", seed=seed, report_s=300.0)
        for each in outbreaks(*rows(shape)):
            if each.failure_class == "object_store":
                seen += 1
                at = [(moment - END) / (shape.window_ms / 1000) + 1 for moment in (each.since, each.until)]
                assert 0.65 < at[0] < 0.76
                assert 0.7 < at[1] < 0.77
    assert seen >= len(seeds) / 2


@pytest.mark.parametrize("seeds", blocks(0, 3, 20), ids=str)
def test_a_bad_node_is_found(seeds):
    """Each cluster of `incident` has one, in use more or less; whoever is called suspect is one of them."""
    suspects = 0
    for seed in seeds:
        shape = replace(scenario("incident", seed=seed, jobs=60, days=3.0, report_s=300.0), cluster_nodes=16)
        found = [each for each in nodes(*rows(shape, ranks=8)) if each.suspect]
        assert all(each.node.endswith("-n007") for each in found)
        suspects += len(found)
    assert suspects >= 0.6 * len(seeds)


@pytest.mark.parametrize("seeds", blocks(1000, 5, 200), ids=str)
def test_calm_fleets_raise_few_alarms(seeds):
    """Without deploy, outage and bad node: an alarm of any kind in one or two of twenty fleets at most."""
    alarms = 0
    for seed in seeds:
        shape = scenario("incident", seed=seed, report_s=300.0)
        runs, failures, begin, end = rows(replace(shape, deploy=None, outage=None, bad_node=False))
        suspects = [each for each in nodes(runs, failures, begin, end) if each.suspect]
        alarms += bool(suspects or outbreaks(runs, failures, begin, end) or regressions(runs, begin, end))
    assert alarms <= 2
