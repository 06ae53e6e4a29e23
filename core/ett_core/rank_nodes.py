"""Where the ranks of a job run, by the latest word of each, and when that came: in columns.

Part of the details fold (`ett_core.details`): held by one thread, in any order of arrival.
"""

from __future__ import annotations

import sys
from array import array
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

    __slots__ = ("_attempts", "_nodes", "_places", "_seqs", "_times", "_writers")

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        """Of each rank, in the columns: its node, and when it was told."""
        self._nodes: list[str] = []
        self._attempts = array("q")
        self._times = array("d")
        self._writers: list[str] = []
        self._seqs = array("q")

    def note(self, event: AnyEvent) -> None:
        """Take in one event of any kind."""
        rank, node = event.rank, event.node
        if rank < 0 or not node:
            return
        place = self._places.get(rank)
        if place is None:
            if len(self._places) < RANKS_KEPT:
                self._append(rank, node, moment_of(event))
            return
        attempt, time = event.attempt, event.time
        if attempt == self._attempts[place] and time > self._times[place]:
            self._times[place] = time
            self._seqs[place] = event.seq
            if self._writers[place] != event.writer:
                self._writers[place] = sys.intern(event.writer)
        elif moment_of(event) >= self._moment(place):
            self._attempts[place], self._times[place], self._writers[place], self._seqs[place] = moment_of(
                event
            )
        else:
            return
        if self._nodes[place] != node:
            self._nodes[place] = sys.intern(node)

    def _append(self, rank: int, node: str, moment: Moment) -> None:
        attempt, time, writer, seq = moment
        self._places[rank] = len(self._nodes)
        self._nodes.append(sys.intern(node))
        self._attempts.append(attempt)
        self._times.append(time)
        self._writers.append(sys.intern(writer))
        self._seqs.append(seq)

    def _moment(self, place: int) -> Moment:
        return self._attempts[place], self._times[place], self._writers[place], self._seqs[place]

    @property
    def by_rank(self) -> dict[int, str]:
        """The node of each rank, by its latest event that names one."""
        return dict(zip(self._places, self._nodes, strict=True))

    def node_in(self, attempt: int, rank: int) -> str:
        """The node of a rank in an attempt; empty where it is not known, or of an earlier attempt."""
        place = self._places.get(rank)
        return "" if place is None or self._attempts[place] != attempt else self._nodes[place]

    def heard_at(self, attempt: int) -> dict[int, float]:
        """When each rank of an attempt last told something that names its node, if that was in this one."""
        told = zip(self._places, self._attempts, self._times, strict=True)
        return {rank: time for rank, of, time in told if of == attempt}

    def state(self) -> RankNodesState:
        """The nodes as a value."""
        return RankNodesState(
            self.by_rank, {rank: self._moment(place) for rank, place in self._places.items()}
        )

    @classmethod
    def of_state(cls, state: RankNodesState) -> RankNodes:
        """The nodes that gave `state`."""
        nodes = cls()
        for rank, node in state.nodes.items():
            nodes._append(rank, node, state.moments[rank])
        return nodes
