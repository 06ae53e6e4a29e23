"""What attempts say at their start: labels, hardware, versions, configuration; the latest word counts.

Part of the details fold (`ett_core.details`): held by one thread, in any order of arrival.
"""

from __future__ import annotations

import sys
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
    nodes: frozenset[str] = frozenset()


class StartsState(NamedTuple):
    """A `Starts` as a value."""

    said: dict[str, tuple[Moment, str | int]]
    labels: dict[str, tuple[Moment, str | int]]
    versions: dict[str, tuple[Moment, str | int]]
    starts: dict[int, tuple[Moment, Start]]


class Starts:
    """The fold: `add` events, then read."""

    __slots__ = ("_labels", "_said", "_starts", "_versions")

    def __init__(self) -> None:
        self._said: Words = {}
        self._labels: Words = {}
        self._versions: Words = {}
        self._starts: dict[int, tuple[Moment, Start]] = {}

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
    def by_attempt(self) -> dict[int, Start]:
        """What each of the latest attempts said at its start, by number of the attempt."""
        return {attempt: start for attempt, (_, start) in self._starts.items()}

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
        return StartsState(dict(self._said), dict(self._labels), dict(self._versions), dict(self._starts))

    @classmethod
    def of_state(cls, state: StartsState) -> Starts:
        """The starts that gave `state`."""
        starts = cls()
        starts._said, starts._labels = dict(state.said), dict(state.labels)
        starts._versions = dict(state.versions)
        for attempt, ((_, time, writer, seq), start) in state.starts.items():
            starts._starts[attempt] = ((attempt, time, sys.intern(writer), seq), starts._shared(start))
        return starts

    def _latest(self, field: str, default: object) -> object:
        return self._said[field][1] if field in self._said else default

    def _keep(self, event: AttemptStart, moment: Moment) -> None:
        """Of an attempt, the latest word on what it runs on, and all nodes that spoke."""
        known_at, known = self._starts.get(event.attempt, (moment, Start()))
        seen = not event.node or event.node in known.nodes
        nodes = known.nodes if seen else known.nodes | {sys.intern(event.node)}
        says = bool(event.versions or event.config_hash)
        if says and (moment >= known_at or not (known.versions or known.config_hash)):
            versions = known.versions if known.versions == event.versions else _first(event.versions)
            known_at, known = moment, Start(versions, event.config_hash or "", nodes)
        elif nodes is not known.nodes:
            known = Start(known.versions, known.config_hash, nodes)
        self._starts[event.attempt] = (known_at, self._shared(known))
        if len(self._starts) > STARTS_KEPT:
            del self._starts[min(self._starts)]

    def _shared(self, start: Start) -> Start:
        """One object for all attempts that start alike: jobs often start again where they were."""
        known = (each for _, each in self._starts.values() if each == start)
        return next(known, start)


def _first(versions: Mapping[str, str]) -> dict[str, str]:
    return dict(islice(versions.items(), NAMES_KEPT))


def _say(said: Words, name: str, moment: Moment, value: str | int) -> None:
    """Keep the latest value that says something under `name`."""
    if not value or (name not in said and len(said) >= NAMES_KEPT):
        return
    if name not in said or said[name][0] < moment:
        said[name] = (moment, value)
