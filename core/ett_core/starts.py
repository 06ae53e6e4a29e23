"""What attempts say at their start: labels, hardware, versions, configuration; the latest word counts.

Part of the details fold (`ett_core.details`): held by one thread, in any order of arrival.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple, TypeAlias

import msgspec

from ett_core.events import AttemptStart
from ett_core.moments import Moment, moment_of
from ett_core.named_sums import NAMES_KEPT

STARTS_KEPT = 64
"""Latest attempts of which it is kept what they ran on."""

Words: TypeAlias = dict[str, tuple[Moment, str | int]]
"""By name the latest value that says something."""


class Start(msgspec.Struct, frozen=True, gc=False):
    """What an attempt said at its start: the versions and the configuration that it runs, its nodes."""

    versions: dict[str, str] = {}
    config_hash: str = ""
    nodes: tuple[str, ...] = ()
    """In the order of their names."""


class StartsState(NamedTuple):
    """A `Starts` as a value."""

    said: dict[str, tuple[Moment, str | int]]
    labels: dict[str, tuple[Moment, str | int]]
    versions: dict[str, tuple[Moment, str | int]]
    starts: dict[int, tuple[Moment, Start]]


class Starts:
    """The fold: `add` events, then read."""

    __slots__ = ("_at_hand", "_labels", "_others", "_said", "_starts", "_versions")

    def __init__(self) -> None:
        self._said: Words = {}
        self._labels: Words = {}
        self._versions: Words = {}
        self._starts: Mapping[int, Start] = {}
        """Never changed, only replaced: readers share it."""
        self._at_hand: Moment | None = None
        """When the attempt that was told of last said what it runs on."""
        self._others = b""
        """The same of the others, packed."""

    def add(self, event: AttemptStart) -> None:
        """Take in one start of a process."""
        moment = moment_of(event)
        for field in ("world_size", "accelerators", "accelerator_type", "config_hash"):
            _say(self._said, field, moment, getattr(event, field))
        for name, value in event.labels.items():
            _say(self._labels, name, moment, value)
        for name, value in event.versions.items():
            _say(self._versions, name, moment, value)
        self._keep(event, moment)

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the job; each as its latest `attempt_start` said it."""
        return {name: str(value) for name, (_, value) in sorted(self._labels.items())}

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what the job runs on; each as its latest `attempt_start` said it."""
        return {name: str(value) for name, (_, value) in sorted(self._versions.items())}

    @property
    def by_attempt(self) -> Mapping[int, Start]:
        """What each of the latest attempts said at its start, by number of the attempt."""
        return self._starts

    @property
    def config_hash(self) -> str:
        """Hash of the job's configuration, empty where never said."""
        return str(self._latest("config_hash", ""))

    @property
    def world_size(self) -> int:
        """Ranks of the job in its latest attempt that says so, else 0."""
        return int(str(self._latest("world_size", 0)))

    @property
    def accelerators(self) -> int:
        """Accelerators held by the whole job in its latest attempt that says so, else 0."""
        return int(str(self._latest("accelerators", 0)))

    @property
    def accelerator_type(self) -> str:
        """Type of the accelerators, empty where never said."""
        return str(self._latest("accelerator_type", ""))

    def state(self) -> StartsState:
        """The starts as a value."""
        moments = self._moments()
        starts = {attempt: (moments[attempt], start) for attempt, start in self._starts.items()}
        return StartsState(dict(self._said), dict(self._labels), dict(self._versions), starts)

    @classmethod
    def of_state(cls, state: StartsState) -> Starts:
        """The starts that gave `state`."""
        starts = cls()
        starts._said, starts._labels = dict(state.said), dict(state.labels)
        starts._versions = dict(state.versions)
        starts._others = _encoder.encode({attempt: moment for attempt, (moment, _) in state.starts.items()})
        for attempt, (_, start) in state.starts.items():
            starts._starts = {**starts._starts, attempt: starts._shared(start)}
        return starts

    def _moments(self) -> dict[int, Moment]:
        """When each of the latest attempts said what it runs on."""
        moments = _decoder.decode(self._others) if self._others else {}
        if self._at_hand is not None:
            moments[self._at_hand[0]] = self._at_hand
        return moments

    def _bring(self, attempt: int, new: Moment) -> Moment:
        """Have the moment of an attempt at hand, which is `new` where it has none."""
        if self._at_hand is None or self._at_hand[0] != attempt:
            moments = self._moments()
            _, time, writer, seq = moments.pop(attempt, new)
            self._at_hand = (attempt, time, sys.intern(writer), seq)
            kept = {number: at for number, at in moments.items() if number in self._starts}
            self._others = _encoder.encode(kept)
        return self._at_hand

    def _latest(self, field: str, default: object) -> object:
        return self._said[field][1] if field in self._said else default

    def _keep(self, event: AttemptStart, moment: Moment) -> None:
        """Of an attempt, the latest word on what it runs on, and all nodes that spoke."""
        known_at, known = self._bring(event.attempt, moment), self._starts.get(event.attempt, Start())
        nodes = _with(known.nodes, event.node)
        if (event.versions or event.config_hash) and (
            moment >= known_at or not (known.versions or known.config_hash)
        ):
            versions = known.versions if known.versions == event.versions else _first(event.versions)
            self._at_hand, start = moment, Start(versions, event.config_hash or "", nodes)
        else:
            start = Start(known.versions, known.config_hash, nodes)
        if self._starts.get(event.attempt) != start:
            starts = {**self._starts, event.attempt: self._shared(start)}
            if len(starts) > STARTS_KEPT:
                del starts[min(starts)]
            self._starts = starts

    def _shared(self, start: Start) -> Start:
        """One object for all attempts that start alike: jobs often start again where they were."""
        return next((known for known in self._starts.values() if known == start), start)


def _with(nodes: tuple[str, ...], node: str) -> tuple[str, ...]:
    """Names in order, one more among them unless it is there or empty.

    >>> _with(("a", "c"), "b"), _with(("a",), "a"), _with((), "")
    (('a', 'b', 'c'), ('a',), ())
    """
    place = bisect_left(nodes, node)
    if not node or nodes[place : place + 1] == (node,):
        return nodes
    return (*nodes[:place], sys.intern(node), *nodes[place:])


def _first(versions: Mapping[str, str]) -> dict[str, str]:
    return dict(islice(versions.items(), NAMES_KEPT))


def _say(said: Words, name: str, moment: Moment, value: str | int) -> None:
    """Keep the latest value that says something under `name`."""
    if not value or (name not in said and len(said) >= NAMES_KEPT):
        return
    if name not in said or said[name][0] < moment:
        said[name] = (moment, value)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[int, Moment])
