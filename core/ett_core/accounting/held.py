"""The events of one attempt that may still change places, in columns, in the order of their places.

An event that is folded is held packed; it is read again where a late one takes the fold back.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Any, TypeAlias, get_args

import msgspec

from ett_core.events import PROTOCOL_VERSION, AnyEvent, Progress, StepSeconds

Key: TypeAlias = tuple[int, int, str, int]
"""The place of an event among those of its attempt: time in ns, rank, writer, sequence number."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Any])
_TYPES: tuple[type[AnyEvent], ...] = get_args(AnyEvent)
ENVELOPE = ("v", "job_id", "writer", "seq", "attempt", "rank")
"""The first fields of every kind: the key of an event tells them, with its job and attempt."""
_NUMBERS = {kind: number for number, kind in enumerate(_TYPES)}


def packed(event: AnyEvent) -> bytes:
    """The values of an event that its key does not tell, as bytes for this process and its snapshots.

    >>> event = Progress(job_id="j", writer="w", seq=3, attempt=2, rank=0, time=1.5, step=2, steps=2)
    >>> len(packed(event)) < 30, unpacked(packed(event), (0, 0, "w", 3), "j", 2) == event
    (True, True)
    """
    return _encoder.encode((_NUMBERS[type(event)], *msgspec.structs.astuple(event)[len(ENVELOPE) :]))


def unpacked(data: bytes, key: Key, job_id: str, attempt: int) -> AnyEvent:
    """The event of an attempt that gave `data`, of the version that is spoken here."""
    number, *values = _decoder.decode(data)
    kind = _TYPES[number]
    if kind is Progress and values[-1] is not None:
        values[-1] = StepSeconds(**values[-1])
    envelope = (PROTOCOL_VERSION, job_id, key[2], key[3], attempt, key[1])
    event: AnyEvent = kind(**dict(zip(kind.__struct_fields__, (*envelope, *values), strict=True)))
    return event


class HeldEvents:
    """Events in order; places count from the first that is held."""

    __slots__ = ("_attempt", "_job_id", "_ranks", "_seqs", "_writers", "events", "moments")

    def __init__(self, job_id: str, attempt: int) -> None:
        """Start with none; they will be of one attempt of a job."""
        self._job_id = job_id
        self._attempt = attempt
        self.moments = array("q")
        """When they happened, in nanoseconds."""
        self._ranks = array("l")
        self._writers: list[str] = []
        self._seqs = array("q")
        self.events: list[AnyEvent | bytes] = []
        """Those that are folded are packed; see `at`."""

    def __len__(self) -> int:
        """How many are held."""
        return len(self.events)

    def put(self, at_ns: int, event: AnyEvent | bytes, rank: int, writer: str, seq: int) -> int:
        """Put an event in its place, which is given back."""
        moments = self.moments
        if not moments or at_ns > moments[-1]:
            moments.append(at_ns)
            self._ranks.append(rank)
            self._writers.append(writer)
            self._seqs.append(seq)
            self.events.append(event)
            return len(moments) - 1
        place = self.place_of((at_ns, rank, writer, seq))
        moments.insert(place, at_ns)
        self._ranks.insert(place, rank)
        self._writers.insert(place, writer)
        self._seqs.insert(place, seq)
        self.events.insert(place, event)
        return place

    def place_of(self, key: Key) -> int:
        """The place of the first event that is not before a key."""
        moments, at_ns = self.moments, key[0]
        place = bisect_left(moments, at_ns)
        while place < len(moments) and moments[place] == at_ns and self.key(place) < key:
            place += 1
        return place

    def key(self, place: int) -> Key:
        """The key of the event at a place."""
        return (self.moments[place], self._ranks[place], self._writers[place], self._seqs[place])

    @property
    def last_ns(self) -> int | None:
        """When the last one happened; None without one."""
        return self.moments[-1] if self.moments else None

    def holds(self, key: Key, event: AnyEvent) -> bool:
        """Whether this very event is among them."""
        place = self.place_of(key)
        if place == len(self.events):
            return False
        return self.at(place)[1] == event

    def at(self, place: int) -> tuple[int, AnyEvent]:
        """The time and the event at a place."""
        event = self.events[place]
        if isinstance(event, bytes):
            event = unpacked(event, self.key(place), self._job_id, self._attempt)
        return self.moments[place], event

    def remove(self, place: int) -> None:
        """Let go of one of them."""
        for column in (self.moments, self._ranks, self._writers, self._seqs, self.events):
            del column[place]

    def drop(self, count: int) -> None:
        """Let go of the first ones."""
        for column in (self.moments, self._ranks, self._writers, self._seqs, self.events):
            del column[:count]

    def keys(self) -> list[Key]:
        """The keys, in order."""
        return list(map(self.key, range(len(self))))

    def as_bytes(self) -> list[bytes]:
        """The events, in order."""
        return [each if isinstance(each, bytes) else packed(each) for each in self.events]
