"""An attempt as values: what its fold holds, a point to come back to, and how it began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ett_core.accounting.loop import Loop, LoopMark, LoopState
from ett_core.accounting.rank import RankState
from ett_core.accounting.ranks import RanksMark
from ett_core.events import AnyEvent, AttemptEnd, Failure

NEVER_NS = 1 << 62
"""Later than any moment."""
SUCCEEDED = "succeeded"
BY_DECISION = ("cancelled", "timed_out")


class Ender(NamedTuple):
    """What may have ended an attempt, and when."""

    at_ns: int
    event: Failure | AttemptEnd


class Hardware(NamedTuple):
    """What an attempt runs on, as its latest `attempt_start` says."""

    world_size: int
    accelerators: int
    accelerator_type: str


class AttemptMark(NamedTuple):
    """A point in an `Attempt` to come back to; marks share what did not change between them."""

    values: AttemptValues
    held_back: Sequence[tuple[int, AnyEvent]]
    resumed: tuple[int, int] | None
    durable: int
    loop: tuple[Loop, LoopMark] | None
    ranks: RanksMark


class AttemptValues(NamedTuple):
    """The single values of an `Attempt`, in the order of `Attempt._VALUES`."""

    first_ns: int | None
    last_ns: int
    start_ns: int | None
    allocated_ns: int | None
    leader: int | None
    reached_step: int | None
    checkpoint_spoken_ns: int | None
    succeeded_ns: int | None
    ender: Ender | None
    teardown_ns: int | None
    survived: int
    observed: bool
    rank_started: bool
    info: Hardware | None
    last_progress_ns: int | None
    first_bad_ns: int | None
    over_ns: int | None
    late_leader: int | None
    late_report_ns: int


class AttemptState(NamedTuple):
    """An `Attempt` as a value."""

    values: AttemptValues
    rest: bytes | AttemptRest
    """What is rarely needed; packed where the attempt is at rest."""
    blocks: bytes
    """The closed blocks of its loop."""
    begun: Begun | None
    """Where it is at rest."""


class AttemptRest(NamedTuple):
    """What an `Attempt` holds beside its values, as a value."""

    held_back: list[tuple[int, AnyEvent]]
    resumed: tuple[int, int] | None
    durable: list[tuple[int, int]]
    loop: LoopState | None
    ranks: dict[int, RankState]


class Begun(NamedTuple):
    """How an attempt began, and how far it came: the few answers that every account needs."""

    loop_ns: int | None
    critical: int | None
    declared_step: int | None
    last_step: int | None
    """Of its last report, None while its leader has not reported."""
    durable_step: int
    """The highest durable step, -1 without one."""
    durable_ns: int
    """When the last step became durable."""
