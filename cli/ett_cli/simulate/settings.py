"""What can be chosen of a simulated fleet, and the scenarios that have a name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

LARGEST_WORLD = 1024
MOST_JOBS = 100_000
LONGEST_DAYS = 366.0


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A fleet over a window of time that ends when the simulation ends.

    Moments are shares of the window: 0 its beginning, 1 its end. `adoption` tells how much of the
    optimised pipeline a job uses: 0 nothing, 1 everything.
    """

    jobs: int = 12
    """Jobs that are submitted in the window."""
    days: float = 1.0
    """Length of the window in days."""
    ranks: int = 64
    """Largest world size; sizes are powers of two up to it."""
    smallest: int = 1
    """Smallest world size."""
    seed: int = 0
    """The same seed gives the same fleet."""
    report_s: float = 10.0
    """Seconds between two reports of a leader."""
    reporting_ranks: int = 8
    """Ranks of a job that report; launchers tell of the death of the others."""
    train_hours: float = 5.0
    """Median training time of a job in hours."""
    node_failures: float = 6.5
    """Failures of hardware and platform in 1,000 node-days."""
    job_failures: float = 0.35
    """Failures of a job's own doing, and of the services it uses, in a day of training."""
    preemptions: float = 0.25
    """Preemptions of a job in a day of training."""
    stalls: float = 0.3
    """Stalls in a day of training that pass by themselves."""
    stragglers: float = 0.15
    """Times in a day of training that a rank becomes slower than the others."""
    interference: float = 0.06
    """How much longer steps take while an asynchronous save is in flight, as a share."""
    warnings: float = 0.2
    """Lines in a day of training that look like a failure and are none."""
    start_failures: float = 0.03
    """Share of attempts that fail before their first batch."""
    adoption: tuple[float, float] = (0.2, 0.2)
    """Adoption at the beginning and at the end of the window."""
    waves: tuple[float, ...] = ()
    """Moments at which a wave of preemptions takes half of the jobs."""
    bad_node: bool = False
    """Whether one node of each cluster fails far more often than the others."""
    cluster_nodes: int = 160
    """Nodes of each cluster."""
    outage: tuple[float, float] | None = None
    """From when to when the object store refuses requests, which ends many jobs alike."""
    deploy: float | None = None
    """Moment of a deploy that makes starts slower."""
    cold: tuple[float, float] | None = None
    """From when to when compile caches are cold."""
    every_class: bool = False
    """Whether jobs fail by each class in turn, instead of by their frequency."""
    crash_loop: int = 0
    """Attempts that the first job loses at its start, all by the same cause."""
    disorder: float = 0.0
    """Share of lines that come late, and of lines that come twice."""
    skew: float = 0.0
    """Share of nodes whose clock is wrong."""

    def __post_init__(self) -> None:
        """Check what the user chose.

        Raises:
            ValueError: a value is out of its range; the message names the option.
        """
        _within("--jobs", self.jobs, 1, MOST_JOBS)
        _within("--days", self.days, 0.001, LONGEST_DAYS)
        _within("--ranks", self.ranks, 1, LARGEST_WORLD)
        _within("--report-s", self.report_s, 1, 600)
        _within("--node-failures", self.node_failures, 0, 1e6)
        _within("--train-hours", self.train_hours, 0.05, 10_000)
        _within("--disorder", self.disorder, 0, 0.5)
        _within("--skew", self.skew, 0, 1)

    @property
    def window_ms(self) -> int:
        """Length of the window in milliseconds."""
        return round(self.days * 86_400_000)

    def at_ms(self, share: float) -> int:
        """Milliseconds from the beginning of the window to a moment given as its share."""
        return round(self.window_ms * share)

    def adopted(self, at_ms: int) -> float:
        """Adoption at a moment, in milliseconds from the beginning of the window.

        >>> Scenario(days=1.0, adoption=(0.0, 0.8)).adopted(43_200_000)
        0.4
        """
        first, last = self.adoption
        return first + (last - first) * min(max(at_ms / self.window_ms, 0.0), 1.0)

    def is_cold(self, at_ms: int) -> bool:
        """Whether compile caches are cold at a moment."""
        return self.cold is not None and _inside(self, self.cold, at_ms)

    def is_deployed(self, at_ms: int) -> bool:
        """Whether the deploy that makes starts slower has happened by a moment."""
        return self.deploy is not None and at_ms >= self.at_ms(self.deploy)


def _inside(scenario: Scenario, span: tuple[float, float], at_ms: int) -> bool:
    return scenario.at_ms(span[0]) <= at_ms < scenario.at_ms(span[1])


def _within(option: str, value: float, low: float, high: float) -> None:
    if not (math.isfinite(value) and low <= value <= high):
        raise ValueError(f"{option} must be between {low:g} and {high:g}, not {value:g}")


SCENARIOS: Mapping[str, tuple[str, Scenario]] = {
    "small": ("a dozen jobs over a day, with some of everything", Scenario(job_failures=1.0)),
    "fleet": (
        "160 jobs over a week whose ETT rises as optimisations are adopted, with a wave of preemptions",
        Scenario(
            jobs=160,
            days=7.0,
            ranks=512,
            report_s=30.0,
            train_hours=8.0,
            adoption=(-0.1, 0.8),
            waves=(0.55,),
            bad_node=True,
        ),
    ),
    "incident": (
        "40 jobs over two days: a bad node, an outage of the object store, a deploy that slows starts",
        Scenario(
            jobs=40,
            days=2.0,
            ranks=128,
            adoption=(0.6, 0.6),
            train_hours=8.0,
            bad_node=True,
            cluster_nodes=24,
            outage=(0.70, 0.76),
            deploy=0.5,
        ),
    ),
    "launch": (
        "one job of 1,024 ranks for two weeks, that crashes at its start until its settings are mended",
        Scenario(
            jobs=1,
            days=14.0,
            ranks=1024,
            smallest=1024,
            report_s=20.0,
            train_hours=4000.0,
            adoption=(0.5, 0.5),
            crash_loop=4,
        ),
    ),
    "preemption": (
        "30 jobs over a day on capacity that is taken away four times",
        Scenario(jobs=30, ranks=32, preemptions=3.0, waves=(0.2, 0.45, 0.7, 0.9)),
    ),
    "cold-cache": (
        "40 jobs over four days, the third of which finds its compile caches cold",
        Scenario(jobs=40, days=4.0, ranks=64, adoption=(0.8, 0.8), cold=(0.5, 0.75)),
    ),
    "failures": (
        "24 jobs over a day that fail often, by every class of failure in turn",
        Scenario(
            jobs=24,
            ranks=32,
            node_failures=60_000.0,
            job_failures=20.0,
            preemptions=2.0,
            start_failures=0.15,
            stragglers=4.0,
            warnings=4.0,
            every_class=True,
            train_hours=12.0,
        ),
    ),
}
"""Name to a sentence about it and the scenario."""


def scenario(name: str, **chosen: Any) -> Scenario:  # noqa: ANN401 - the fields of a scenario
    """The scenario of a name, with what was chosen (None: as it is).

    Raises:
        ValueError: a value is out of its range.
    """
    changes = {field: value for field, value in chosen.items() if value is not None}
    base = SCENARIOS[name][1]
    if "ranks" in changes:
        changes["smallest"] = min(base.smallest, changes["ranks"])
    return replace(base, **changes)
