"""A lane as values: its state to be kept, and a point to come back to."""

from __future__ import annotations

from typing import NamedTuple

from ett_core.accounting.attempt_state import AttemptMark, AttemptState
from ett_core.accounting.held import Key


class LaneMark(NamedTuple):
    """A point in the fold of a lane: events consumed, attempts begun, and the last of these."""

    consumed: int
    parts: int
    last: AttemptMark | None


class LaneState(NamedTuple):
    """A `Lane` as a value: its attempts as of its first mark, and what came after that.

    A stale lane has neither: it is folded again from the history.
    """

    number: int
    stale: bool
    presence: list[tuple[int, str, int, int]]
    divided: bool
    cuts: list[int | None]
    splits: list[int]
    dropped: int
    dropped_through: Key | None
    at_rest: bool
    parts: list[AttemptState]
    keys: list[Key]
    events: list[bytes]
    is_cut: bool = False
