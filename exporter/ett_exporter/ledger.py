"""What all jobs add up to, kept up to date job by job, so that an answer about all of them adds up nothing.

A job's view is put in when it is new; what the job contributed before is then taken out again.
Final amounts are whole nanoseconds of held accelerator time (the time times the accelerators of its
job; queueing after a failure weighs nothing), so that sums stay exact; jobs that are not there to train add
none.
Held by one thread at a time.

Windows are gauges: of the jobs that are there. Counters and histograms only grow, from the start of
the exporter on: what jobs had counted before it is where they begin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ett_core.accounting.account import nanoseconds
from ett_core.components import RECOVER_QUEUE
from ett_core.fleet.losses import losses
from ett_core.growing import Distribution, Growing, Histogram, highest
from ett_core.metrics import BLOCKING_BOUNDS_S, START_BOUNDS_S
from ett_core.purposes import TRAINING
from ett_exporter.fleet_sums import Sums, part_of
from ett_exporter.job_series import clip
from ett_exporter.views import JobView, has_settled


class FinalKey(NamedTuple):
    """What final accelerator time is added up by."""

    cluster: str
    team: str
    component: str


class CauseKey(NamedTuple):
    """What failures are added up by."""

    failure_class: str
    domain: str
    cluster: str


class NodeKey(NamedTuple):
    """What failures of nodes are added up by."""

    node: str
    failure_class: str


class Contribution(msgspec.Struct, frozen=True):
    """What one view adds."""

    view: JobView
    final: Mapping[FinalKey, int]
    failures: Mapping[CauseKey, int]
    lost: Mapping[CauseKey, int]
    nodes: Mapping[NodeKey, int]
    started: bool
    recovered: frozenset[int]
    """Attempts after whose failure a loop began again."""


MOST_CLUSTERS, MOST_TEAMS, MOST_NODES = 256, 1024, 8192
"""Names of each that are told apart, teams of all clusters together; further ones count as `OTHER`."""
OTHER = "(other)"


class Told:
    """Names that are told apart, the first of them to come; the same name is always told alike.

    >>> told = Told(2)
    >>> [told.of(name) for name in ("a", "b", "c", "a")]
    ['a', 'b', '(other)', 'a']
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[tuple[str, str]] = set()

    def of(self, name: str, within: str = "") -> str:
        """The name as a label; the same name within two others is two."""
        clipped = clip(name)
        key = (within, clipped)
        if key not in self._names:
            if len(self._names) >= self._most:
                return OTHER
            self._names.add(key)
        return clipped


class Names:
    """Those of the clusters, teams and nodes of a fleet."""

    def __init__(self) -> None:
        self.clusters = Told(MOST_CLUSTERS)
        self.teams = Told(MOST_TEAMS)
        self.nodes = Told(MOST_NODES)


KEYS_SHARED = 65_536
_final_key = lru_cache(KEYS_SHARED)(FinalKey)
"""Keys that are equal are mostly one object: every job has dozens."""


class Ledger:
    """The sums over jobs: `put` views, then read."""

    def __init__(self) -> None:
        self._of_job: dict[str, Contribution] = {}
        self.names = Names()
        self.windows = Sums()
        """The trailing windows of the views."""
        self.final: Growing[FinalKey] = Growing()
        self.failures: Growing[CauseKey] = Growing()
        self.lost: Growing[CauseKey] = Growing()
        self.nodes: Growing[NodeKey] = Growing()
        self.to_start: dict[str, Histogram] = {}
        self.to_recover: dict[str, Histogram] = {}
        self.blocking: dict[str, Histogram] = {}
        self.clusters: set[str] = set()
        """Clusters of which a job was ever put in: what they count begins at 0 from then on."""

    def put(self, view: JobView, *, is_old: bool = False) -> None:
        """Let a job contribute what its view says; of a job that `is_old`, the first one counts nothing."""
        job_id = view.account.job_id
        before = self._of_job.get(job_id)
        if before is not None and before.view is view:
            return
        self._meet(self.names.clusters.of(view.label("cluster")))
        now = self._of_job[job_id] = contribution(view, before, self.names)
        self.windows.change(part_of(before.view) if before else None, part_of(view))
        if before is None and is_old:
            return
        self.final.change(before.final if before else {}, now.final)
        self.failures.change(before.failures if before else {}, now.failures)
        self.lost.change(before.lost if before else {}, now.lost)
        self.nodes.change(before.nodes if before else {}, now.nodes)
        self._observe(before, now)

    def _meet(self, cluster: str) -> None:
        """Let the histograms of a cluster be there, empty, before anything is observed."""
        if cluster not in self.clusters:
            self.clusters.add(cluster)
            self.to_start[cluster] = Histogram(START_BOUNDS_S)
            self.to_recover[cluster] = Histogram(START_BOUNDS_S)
            self.blocking[cluster] = Histogram(BLOCKING_BOUNDS_S)

    def drop(self, job_id: str) -> None:
        """Let go of a job; what it counted stays counted."""
        gone = self._of_job.pop(job_id, None)
        if gone is not None:
            self.windows.change(part_of(gone.view), None)

    def _observe(self, before: Contribution | None, now: Contribution) -> None:
        account, cluster = now.view.account, self.names.clusters.of(now.view.label("cluster"))
        if now.started and not (before and before.started) and account.tts_s is not None:
            self.to_start[cluster].observe(account.tts_s)
        fresh = now.recovered - (before.recovered if before else frozenset())
        for failure in account.failures if fresh else ():
            if failure.attempt in fresh and failure.ttr_s is not None:
                self.to_recover[cluster].observe(failure.ttr_s)
        known: Distribution | None = before.view.details.checkpoint_blocking if before else None
        blocking = now.view.details.checkpoint_blocking
        if known is not blocking and any(blocking.counts):
            self.blocking[cluster].add(known, blocking)


def contribution(view: JobView, before: Contribution | None, names: Names) -> Contribution:
    """What a view adds; what only grows is at least what it was `before`."""
    cluster, weight = names.clusters.of(view.label("cluster")), view.accelerator_weight
    team = names.teams.of(view.label("team"), cluster)
    failures, lost, nodes = _causes(view, cluster, names.nodes)
    recovered = frozenset(f.attempt for f in view.account.failures if f.ttr_s is not None)
    return Contribution(
        view=view,
        final={
            _final_key(cluster, team, component): weight * nanoseconds(seconds)
            for component, seconds in view.account.final.items()
            if component != RECOVER_QUEUE and view.purpose == TRAINING
        },
        failures=highest(before.failures, failures) if before else failures,
        lost=highest(before.lost, lost) if before else lost,
        nodes=highest(before.nodes, nodes) if before else nodes,
        started=view.account.tts_s is not None or (before is not None and before.started),
        recovered=recovered | before.recovered if before else recovered,
    )


def _causes(
    view: JobView, cluster: str, told: Told
) -> tuple[Mapping[CauseKey, int], Mapping[CauseKey, int], Mapping[NodeKey, int]]:
    failures: Counter[CauseKey] = Counter()
    lost: Counter[CauseKey] = Counter()
    nodes: Counter[NodeKey] = Counter()
    costs = losses(view.account) if view.account.failures else []
    for failure, why, cost in zip(view.account.failures, view.diagnoses, costs, strict=True):
        if has_settled(failure, view.account.as_of):
            key = CauseKey(why.failure_class, why.domain, cluster)
            failures[key] += 1
            lost[key] += nanoseconds(cost.accelerator_s)
            node = why.node or failure.node
            if node:
                nodes[NodeKey(told.of(node), why.failure_class)] += 1
    return failures, lost, nodes
