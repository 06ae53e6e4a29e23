"""Lanes to which nothing comes any more, put away, and brought back by what is asked of their attempts.

What the accounts of a job need of them at every view was computed before (`ett_core.accounting.earlier`).
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import msgspec

from ett_core.accounting.attempt import Attempt
from ett_core.accounting.lane import Lane
from ett_core.accounting.lane_state import LaneState
from ett_core.accounting.layout import Span
from ett_core.accounting.partition import Partition
from ett_core.accounting.settings import Settings
from ett_core.archive import Archive, Loan, Parcel, Parcels
from ett_core.refusals import Refusals

COMPRESSION_LEVEL = 1
NOTHING = 2**62


class _Frame(NamedTuple):
    """A `Partition` without its attempt."""

    start_ns: int
    end_ns: int
    outcome: str
    silent: bool
    loop_ns: int | None
    critical: int | None
    after_failure: bool
    threshold: int | None
    begin_step: int | None

    def around(self, attempt: Attempt) -> Partition:
        """The partition of the attempt."""
        return Partition(Span(attempt, *self[:7]), self.threshold, self.begin_step)


class _Contents(NamedTuple):
    lanes: list[LaneState]
    frames: list[_Frame]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Contents)


class Sealed(Sequence[Partition]):
    """Lanes at rest with the partitions of their attempts, made anew whenever one is asked for."""

    __slots__ = ("_archive", "_contents", "_count", "_numbers", "_parcels", "_settings")

    def __init__(
        self, lanes: Sequence[Lane], partitions: Sequence[Partition], settings: Settings, archive: Archive
    ) -> None:
        """Put away lanes at rest, in the order of their numbers; `partitions` are of all their attempts."""
        self._settings = settings
        self._archive = archive
        self._count = len(partitions)
        self._parcels = Parcels(archive)
        self._numbers = array("q")
        """Of each attempt, what is rarely needed and the closed blocks of its loop (`NOTHING`: none)."""
        for rest, blocks in (part.parcels for lane in lanes for part in lane.parts):
            self._numbers.append(self._parcels.adopt(rest))
            self._numbers.append(NOTHING if blocks is None else self._parcels.adopt(blocks))
        frames = [_Frame(*p.span[1:], p.threshold, p.begin_step) for p in partitions]
        packed = _encoder.encode(_Contents([lane.bare_state() for lane in lanes], frames))
        self._contents = Parcel(archive, zlib.compress(packed, COMPRESSION_LEVEL))

    def _unpacked(self) -> _Contents:
        return _decoder.decode(zlib.decompress(self._contents.read()))

    def _attempts(self, lanes: Sequence[LaneState]) -> list[list[Attempt]]:
        """The attempts of each lane, at rest."""
        parcels = map(self._loans, self._numbers[::2], self._numbers[1::2])
        return [
            [
                Attempt.at_rest(lane.number, self._settings, part, next(parcels), self._archive)
                for part in lane.parts
            ]
            for lane in lanes
        ]

    def _loans(self, rest: int, blocks: int) -> tuple[Loan, Loan | None]:
        return Loan(self._parcels, rest), None if blocks == NOTHING else Loan(self._parcels, blocks)

    def lanes(self, job_id: str, refusals: Refusals) -> list[Lane]:
        """The lanes, as they were."""
        states = self._unpacked().lanes
        return [
            Lane.of_state(job_id, self._settings, state, self._archive, refusals, attempts)
            for state, attempts in zip(states, self._attempts(states), strict=True)
        ]

    def states(self) -> list[LaneState]:
        """The lanes as values that need nothing else."""
        states = self._unpacked().lanes
        return [
            state._replace(parts=[attempt.state() for attempt in attempts])
            for state, attempts in zip(states, self._attempts(states), strict=True)
        ]

    def __len__(self) -> int:
        """How many attempts there are."""
        return self._count

    @overload
    def __getitem__(self, place: int) -> Partition: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Partition]: ...

    def __getitem__(self, place: int | slice) -> Partition | Sequence[Partition]:
        """The partition of an attempt, or of some of them."""
        return list(self)[place]

    def __iter__(self) -> Iterator[Partition]:
        """All of them; what one has brought back goes with it."""
        lanes, frames = self._unpacked()
        attempts = (attempt for of_lane in self._attempts(lanes) for attempt in of_lane)
        return (frame.around(attempt) for frame, attempt in zip(frames, attempts, strict=True))
