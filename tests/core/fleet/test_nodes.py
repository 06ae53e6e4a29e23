"""Suspect nodes: the bad one is found, good ones and victims are left in peace."""

from __future__ import annotations

import random

import pytest
from fleet_rows import HOUR, failure, run

from ett_core.fleet.nodes import SUSPECT_BELOW, nodes

END = 1000 * HOUR


def fleet(count=50):
    return [run(f"j{n}", 0.0, hours=1000.0, nodes=frozenset({f"n{n}"})) for n in range(count)]


def test_a_node_that_fails_more_than_its_share_is_suspect_with_the_figure():
    """Five of eight failures on one of fifty nodes: observed, expected and probability are given."""
    failures = [failure(f"a{n}", n * HOUR, node="n7") for n in range(5)]
    failures += [failure(f"b{n}", n * HOUR, node=f"n{n}") for n in range(3)]
    first, *others = nodes(fleet(), failures, 0.0, END)
    assert (first.node, first.suspect, first.counted, first.jobs) == ("n7", True, 5, 5)
    assert first.expected == pytest.approx(8 / 50)
    assert 0 < first.probability < 1e-4
    assert first.node_hours == pytest.approx(1000.0)
    assert not any(node.suspect for node in others)


def test_a_node_in_use_for_longer_may_fail_more_often():
    """Failures go by hours of use: the one node of a small fleet that did all the work is not suspect."""
    runs = [run("a", 0.0, hours=900.0, nodes=frozenset({"busy"}))]
    runs += [run(f"b{n}", 0.0, hours=1.0, nodes=frozenset({f"n{n}"})) for n in range(50)]
    failures = [failure(f"j{n}", n * HOUR, node="busy") for n in range(8)]
    assert not any(node.suspect for node in nodes(runs, failures, 0.0, END))


NOT_THE_NODE = {
    "a victim": {"role": "cascade", "failure_class": "peer_failure", "domain": "unknown"},
    "a wait": {"role": "root", "failure_class": "collective_timeout", "domain": "unknown"},
    "the job": {"failure_class": "gpu_oom", "domain": "workload"},
    "a service": {"failure_class": "object_store"},
    "the scheduler": {"failure_class": "preempted", "domain": "platform"},
}


@pytest.mark.parametrize("what", NOT_THE_NODE.values(), ids=NOT_THE_NODE.keys())
def test_what_is_not_the_fault_of_a_node_does_not_count(what):
    failures = [failure(f"j{n}", n * HOUR, node="n7", **what) for n in range(20)]
    (node,) = nodes(fleet(), failures, 0.0, END)
    assert (node.failures, node.counted, node.suspect) == (20, 0, False)


def test_a_job_that_repeats_an_unknown_mistake_counts_once():
    """A crash loop on one node makes no suspect of it; the same faults in many jobs do."""
    unknown = {"failure_class": "native_crash", "domain": "unknown", "node": "n7"}
    one = nodes(fleet(), [failure("j", n * HOUR, **unknown) for n in range(20)], 0.0, END)
    many = nodes(fleet(), [failure(f"j{n}", n * HOUR, **unknown) for n in range(20)], 0.0, END)
    assert [(node.counted, node.suspect) for node in (*one, *many)] == [(1, False), (20, True)]


def test_a_node_that_never_said_it_was_in_use_gets_no_verdict():
    """Where the hours are not known there is neither an expectation nor a probability."""
    failures = [failure(f"j{n}", n * HOUR, node="ghost") for n in range(9)]
    (node,) = nodes(fleet(), failures, 0.0, END)
    assert (node.expected, node.probability, node.suspect, node.failures) == (None, None, False, 9)


def test_good_nodes_are_rarely_called_suspect():
    """Failures thrown at random over 200 fleets of 50 equal nodes: suspects in about 1 % at most."""
    chance = random.Random(5)
    wrong = 0
    for _ in range(200):
        failures = [failure(f"j{n}", n * HOUR, node=f"n{chance.randrange(50)}") for n in range(60)]
        wrong += any(node.suspect for node in nodes(fleet(), failures, 0.0, END))
    assert wrong <= 200 * SUSPECT_BELOW + 4


def test_a_fleet_without_runs_or_failures_has_no_suspects():
    assert nodes([], [], 0.0, END) == []
    assert nodes([], [failure("j", HOUR, node="n")], 0.0, END)[0].probability is None
