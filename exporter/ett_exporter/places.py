"""Where a segment lies among all that were ever kept: values that the store and the live jobs share."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ett_core.events import AnyEvent


class Place(msgspec.Struct, frozen=True, gc=False, order=True):
    """The place of a segment among all; what is committed later has a later one.

    With several replicas that holds for what is behind the horizon only (`Store.horizon`).
    """

    transaction_id: int
    segment_id: int


FIRST = Place(-1, -1)
"""Before every segment."""
LAST_ID = 2**63 - 1


class Kept(msgspec.Struct, frozen=True):
    """What became of a segment: its events that are new, and where they are; None where none is."""

    events: Sequence[AnyEvent]
    place: Place | None


class Snapshot(msgspec.Struct, frozen=True):
    """The folds of a job after its segments up to `place`, and those of the ids in `beyond`."""

    job_id: str
    place: Place
    beyond: Sequence[int]
    blob: bytes


class Stored(msgspec.Struct, frozen=True):
    """A segment as it is read again."""

    place: Place
    job_id: str
    received_at: float
    events: Sequence[AnyEvent]
