"""What strikes a job, and when: the next cause of a failure, drawn at the beginning of each loop."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from ett_cli.simulate.catalogue import (
    BEFORE_LOOP,
    BY_CLASS,
    ENDING,
    JOB,
    NODE,
    OUTSIDE,
    START,
    TAKEN,
    Cause,
    of_hazard,
)
from ett_cli.simulate.chance import Chance
from ett_cli.simulate.plans import Plan
from ett_cli.simulate.settings import Scenario

BAD_NODE_FAILURES_A_DAY = 3.0
WAVE_SHARE, OUTAGE_SHARE = 0.5, 0.7


class Strike(NamedTuple):
    """A cause, the moment at which it strikes and the node where, if that matters."""

    at_ms: int
    cause: Cause
    node: str | None = None


class Hazards:
    """Draws what happens to one job."""

    def __init__(self, scenario: Scenario, plan: Plan, chance: Chance) -> None:
        self._scenario = scenario
        self._plan = plan
        self._chance = chance
        self._turn: Iterator[int] = count(2 * plan.place)
        self._next = self._in_turn()

    def bad_node(self) -> str | None:
        """The node of the job's cluster that fails more often than the others."""
        return node_name(self._plan.cluster, 7) if self._scenario.bad_node else None

    def _in_turn(self) -> Cause:
        return ENDING[next(self._turn) % len(ENDING)]

    def _one_of(self, hazard: str) -> Cause:
        return self._chance.weighted(*of_hazard(hazard))

    def before_loop(self, *, resumes: bool, tries: int) -> Cause | None:
        """What ends a start, None where it succeeds; `tries` counts starts that failed in a row."""
        scenario = self._scenario
        if scenario.every_class:
            if self._next.how not in (START, OUTSIDE):
                return None
            cause, self._next = self._next, self._in_turn()
        elif self._plan.place == 0 and tries < scenario.crash_loop and not resumes:
            return BY_CLASS["config_error"]
        elif self._chance.hit(scenario.start_failures):
            cause = self._one_of(BEFORE_LOOP)
        else:
            return None
        return cause if resumes or cause.phase != "checkpoint_load" else BY_CLASS["config_error"]

    def in_loop(self, begin_ms: int, nodes: list[str], limit_ms: int | None) -> Strike | None:
        """The first thing that strikes a loop that begins at a moment."""
        strikes = list(self._strikes(begin_ms, nodes, limit_ms))
        first = min(strikes, key=lambda strike: strike.at_ms, default=None)
        if first is None or not self._scenario.every_class:
            return first
        while self._next.how in (START, OUTSIDE):
            self._next = self._in_turn()
        cause, self._next = self._next, self._in_turn()
        return first._replace(cause=cause)

    def _strikes(self, begin_ms: int, nodes: list[str], limit_ms: int | None) -> Iterator[Strike]:
        scenario, chance = self._scenario, self._chance
        for hazard, rate in (
            (NODE, self._plan.nodes * scenario.node_failures / 1000.0),
            (JOB, scenario.job_failures),
            (TAKEN, scenario.preemptions),
        ):
            wait_ms = chance.wait_ms(rate)
            if wait_ms is not None:
                yield Strike(begin_ms + wait_ms, self._one_of(hazard))
        bad = self.bad_node()
        if bad in nodes:
            wait_ms = chance.wait_ms(BAD_NODE_FAILURES_A_DAY)
            yield Strike(begin_ms + (wait_ms or 0), BY_CLASS["gpu_ecc"], bad)
        for wave in scenario.waves:
            at_ms = scenario.at_ms(wave) + chance.between_ms(0.0, 600.0)
            if at_ms > begin_ms and chance.hit(WAVE_SHARE):
                yield Strike(at_ms, BY_CLASS["preempted"])
        if scenario.outage is not None:
            first_ms, last_ms = scenario.at_ms(scenario.outage[0]), scenario.at_ms(scenario.outage[1])
            at_ms = chance.randint(first_ms, last_ms)
            if at_ms > begin_ms and chance.hit(OUTAGE_SHARE):
                yield Strike(at_ms, BY_CLASS["object_store"])
        if limit_ms is not None and limit_ms > begin_ms:
            yield Strike(limit_ms, BY_CLASS["time_limit"])


def node_name(cluster: str, number: int) -> str:
    """The host name of a node.

    >>> node_name("pci1", 7)
    'pci1-n007'
    """
    return f"{cluster}-n{number:03d}"
