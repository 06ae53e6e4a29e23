"""Where the ranks of a job run, by the latest word of each, and when that came.

Part of the details fold (`ett_core.details`): held by one thread, in any order of arrival.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from ett_core.events import AnyEvent
from ett_core.moments import Moment, moment_of

RANKS_KEPT = 65_536


class RankNodesState(NamedTuple):
    """A `RankNodes` as a value."""

    nodes: dict[int, str]
    moments: dict[int, Moment]


class RankNodes:
    """The fold: `note` events, then read."""

    __slots__ = ("_moments", "_nodes")

    def __init__(self) -> None:
        self._nodes: dict[int, str] = {}
        self._moments: dict[int, Moment] = {}

    def note(self, event: AnyEvent) -> None:
        """Take in one event of any kind."""
        rank, node = event.rank, event.node
        if rank < 0 or not node:
            return
        known = self._moments.get(rank)
        if known is None:
            if len(self._moments) < RANKS_KEPT:
                self._moments[rank] = moment_of(event)
                self._nodes[rank] = sys.intern(node)
            return
        writer = known[2] if known[2] == event.writer else sys.intern(event.writer)
        moment = (event.attempt, event.time, writer, event.seq)
        if moment >= known:
            self._moments[rank] = moment
            if self._nodes[rank] != node:
                self._nodes[rank] = sys.intern(node)

    @property
    def by_rank(self) -> dict[int, str]:
        """The node of each rank, by its latest event that names one."""
        return dict(self._nodes)

    def node_in(self, attempt: int, rank: int) -> str:
        """The node of a rank in an attempt; empty where it is not known, or of an earlier attempt."""
        moment = self._moments.get(rank)
        return self._nodes[rank] if moment is not None and moment[0] == attempt else ""

    def heard_at(self, attempt: int) -> dict[int, float]:
        """When each rank of an attempt last told something that names its node, if that was in this one."""
        return {rank: moment[1] for rank, moment in self._moments.items() if moment[0] == attempt}

    def state(self) -> RankNodesState:
        """The nodes as a value."""
        return RankNodesState(dict(self._nodes), dict(self._moments))

    @classmethod
    def of_state(cls, state: RankNodesState) -> RankNodes:
        """The nodes that gave `state`."""
        nodes = cls()
        nodes._nodes, nodes._moments = dict(state.nodes), dict(state.moments)
        return nodes
