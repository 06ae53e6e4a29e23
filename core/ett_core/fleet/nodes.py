"""Suspect nodes: those that fail more often than the rate of the fleet explains. Pure.

    Given that K failures happened in H node-hours, and that all nodes are alike, the failures of a
    node that was in use for h hours are binomial: K trials, each with probability h / H.

The probability of as many failures as were seen, or more, is exact. It is held against the number
of nodes (Holm), so that among a thousand good nodes one is called suspect by mistake as rarely as
among ten.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from ett_core.failures.classes import INFRASTRUCTURE, UNKNOWN
from ett_core.failures.rule import ROOT
from ett_core.fleet.rows import Failure, Run
from ett_core.fleet.tails import binomial_tail, holm

OF_THE_NODE = frozenset(
    {
        "gpu_ecc",
        "gpu_lost",
        "gpu_hardware",
        "nvlink_fault",
        "gpu_busy",
        "cuda_driver",
        "node_failure",
        "network_fault",
    }
)
"""Classes whose place is the node: each failure counts."""
NEVER = frozenset(
    {
        "collective_timeout",
        "peer_failure",
        "external_stop",
        "object_store",
        "storage_full",
        "checkpoint_stall",
        "checkpoint_save_failed",
        "checkpoint_corrupt",
    }
)
"""Classes that tell of a victim, of somebody's decision, or of a service that all nodes share."""
SUSPECT_BELOW = 0.01
"""Probability, for all nodes together, of calling any good node suspect."""
FEWEST_FAILURES = 2
HOUR_S = 3600.0


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node and its failures. `expected` and `probability` are null where its time in use is unknown.

    `failures` are all that point at it; `counted` those that may be its own fault; `probability` is
    that of so many or more on a node like all others, for all nodes together.
    """

    node: str
    cluster: str
    failures: int
    counted: int
    jobs: int
    node_hours: float
    expected: float | None
    probability: float | None
    suspect: bool
    classes: dict[str, int]
    last_failure: float
    lost_accelerator_s: float


def nodes(runs: Iterable[Run], failures: Sequence[Failure], begin: float, end: float) -> list[Node]:
    """The nodes at which failures between two moments point, the most suspicious first."""
    within = [failure for failure in failures if failure.node and begin <= failure.time < end]
    hours = _node_hours(runs, begin, end)
    counted = Counter(failure.node for failure in _counted(within) if failure.node in hours)
    total, all_hours = sum(counted.values()), sum(hours.values())
    raw = [binomial_tail(counted[node], total, hours[node] / all_hours) for node in hours]
    probability = dict(zip(hours, holm(raw), strict=True))
    by_node: dict[str, list[Failure]] = defaultdict(list)
    for failure in within:
        by_node[failure.node].append(failure)
    found = [
        Node(
            node=node,
            cluster=members[-1].cluster,
            failures=len(members),
            counted=counted[node],
            jobs=len({failure.job_id for failure in members}),
            node_hours=hours.get(node, 0.0),
            expected=total * hours[node] / all_hours if node in hours else None,
            probability=probability.get(node),
            suspect=counted[node] >= FEWEST_FAILURES and probability.get(node, 1.0) < SUSPECT_BELOW,
            classes=dict(Counter(failure.failure_class for failure in members).most_common()),
            last_failure=max(failure.time for failure in members),
            lost_accelerator_s=sum(failure.losses.accelerator_s for failure in members),
        )
        for node, members in by_node.items()
    ]
    return sorted(
        found, key=lambda each: (not each.suspect, _or_one(each.probability), -each.counted, each.node)
    )


def _or_one(probability: float | None) -> float:
    return 1.0 if probability is None else probability


def _counted(failures: Iterable[Failure]) -> Iterable[Failure]:
    """Failures that may be the fault of their node.

    Whoever repeats a mistake of its own on one node says nothing new of it: but for faults of the
    hardware, a job counts once for a node.
    """
    seen: set[tuple[str, str]] = set()
    for failure in failures:
        is_effect = failure.role != ROOT and failure.failure_class != UNKNOWN
        if is_effect or failure.failure_class in NEVER:
            continue
        if failure.failure_class in OF_THE_NODE:
            yield failure
        elif failure.domain in (INFRASTRUCTURE, UNKNOWN) and (failure.job_id, failure.node) not in seen:
            seen.add((failure.job_id, failure.node))
            yield failure


def _node_hours(runs: Iterable[Run], begin: float, end: float) -> dict[str, float]:
    """Hours that each node was in use between two moments, as its own processes told."""
    hours: dict[str, float] = {}
    for run in runs:
        used_s = min(run.end, end) - max(run.start, begin)
        if used_s > 0:
            for node in run.nodes:
                hours[node] = hours.get(node, 0.0) + used_s / HOUR_S
    return hours
