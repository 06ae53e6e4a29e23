"""The events of one attempt that may still change places, in columns, in the order of their places.

An event that is folded is held packed; it is read again where a late one takes the fold back.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, get_args

import msgspec

from ett_core.archive import IN_MEMORY, Archive, Parcel
from ett_core.events import PROTOCOL_VERSION, AnyEvent, Progress, StepSeconds

Key: TypeAlias = tuple[int, int, str, int]
"""The place of an event among those of its attempt: time in ns, rank, writer, sequence number."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Any])
_chunk_decoder = msgspec.msgpack.Decoder(tuple[bytes, bytes, list[str], bytes, list[bytes]])
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
    values: Sequence[Any] = msgspec.structs.astuple(event)[len(ENVELOPE) :]
    if type(event) is Progress and event.step_seconds is not None:
        values = (*values[:-1], msgspec.structs.astuple(event.step_seconds))
    return _encoder.encode((_NUMBERS[type(event)], *values))


def unpacked(data: bytes, key: Key, job_id: str, attempt: int) -> AnyEvent:
    """The event of an attempt that gave `data`, of the version that is spoken here."""
    number, *values = _decoder.decode(data)
    kind = _TYPES[number]
    if kind is Progress and values[-1] is not None:
        values[-1] = StepSeconds(*values[-1])
    envelope = (PROTOCOL_VERSION, job_id, key[2], key[3], attempt, key[1])
    event: AnyEvent = kind(**dict(zip(kind.__struct_fields__, (*envelope, *values), strict=True)))
    return event


class Chunk(NamedTuple):
    """The first events that are held, or those that follow other chunks, put away."""

    size: int
    last: Key
    """The key of the last of them."""
    parcel: Parcel


class HeldEvents:
    """Events in order; places count from the first that is held.

    Those that are hardly ever asked for again lie in chunks, before those at hand. Whoever asks for one of
    them, or brings one that belongs among them, has them brought back.
    """

    __slots__ = (
        "_archive",
        "_attempt",
        "_chunks",
        "_events",
        "_is_asked",
        "_job_id",
        "_moments",
        "_ranks",
        "_seqs",
        "_writers",
        "put_away",
    )

    def __init__(self, job_id: str, attempt: int, archive: Archive = IN_MEMORY) -> None:
        """Start with none; they will be of one attempt of a job."""
        self._job_id = job_id
        self._attempt = attempt
        self._archive = archive
        self._chunks: list[Chunk] = []
        self.put_away = 0
        """How many lie in chunks."""
        self._is_asked = False
        """Whether any chunk was brought back since the last was put away."""
        self._moments = array("q")
        """When they happened, in nanoseconds."""
        self._ranks = array("l")
        self._writers: list[str] = []
        self._seqs = array("q")
        self._events: list[AnyEvent | bytes] = []
        """Those that are folded are packed; see `at`."""

    def __len__(self) -> int:
        """How many are held."""
        return self.put_away + len(self._events)

    def put(self, at_ns: int, event: AnyEvent | bytes, rank: int, writer: str, seq: int) -> int:
        """Put an event in its place, which is given back."""
        moments = self._moments
        if moments and at_ns > moments[-1]:
            moments.append(at_ns)
            self._ranks.append(rank)
            self._writers.append(writer)
            self._seqs.append(seq)
            self._events.append(event)
            return self.put_away + len(moments) - 1
        place = self.place_of((at_ns, rank, writer, seq))
        at_hand = place - self.put_away
        self._moments.insert(at_hand, at_ns)
        self._ranks.insert(at_hand, rank)
        self._writers.insert(at_hand, writer)
        self._seqs.insert(at_hand, seq)
        self._events.insert(at_hand, event)
        return place

    def place_of(self, key: Key) -> int:
        """The place of the first event that is not before a key."""
        if self._chunks and key <= self._chunks[-1].last:
            self._bring_back(next(n for n, chunk in enumerate(self._chunks) if key <= chunk.last))
        moments = self._moments
        first = bisect_left(moments, key[0])
        if first == len(moments) or moments[first] != key[0]:
            return self.put_away + first
        end = bisect_right(moments, key[0], first)
        return self.put_away + bisect_left(range(end), key, first, end, key=self._key)

    def before(self, at_ns: int) -> int:
        """How many events at least happened before a moment; those in chunks are not looked at."""
        count = 0
        for chunk in self._chunks:
            if chunk.last[0] >= at_ns:
                return count
            count += chunk.size
        return count + bisect_left(self._moments, at_ns)

    def _key(self, at_hand: int) -> Key:
        return (
            self._moments[at_hand],
            self._ranks[at_hand],
            self._writers[at_hand],
            self._seqs[at_hand],
        )

    def key(self, place: int) -> Key:
        """The key of the event at a place."""
        end = 0
        for chunk in self._chunks:
            end += chunk.size
            if end == place + 1:
                return chunk.last
        return self._key(self._at_hand(place))

    @property
    def last_ns(self) -> int | None:
        """When the last one happened; None without one."""
        if self._moments:
            return self._moments[-1]
        return self._chunks[-1].last[0] if self._chunks else None

    def holds(self, key: Key, event: AnyEvent) -> bool:
        """Whether this very event is among them."""
        place = self.place_of(key)
        if place == len(self):
            return False
        return self.at(place)[1] == event

    def at(self, place: int) -> tuple[int, AnyEvent]:
        """The time and the event at a place."""
        at_hand = self._at_hand(place)
        event = self._events[at_hand]
        if isinstance(event, bytes):
            event = unpacked(event, self._key(at_hand), self._job_id, self._attempt)
        return self._moments[at_hand], event

    def remove(self, place: int) -> None:
        """Let go of one of them."""
        at_hand = self._at_hand(place)
        for column in self._columns():
            del column[at_hand]

    def drop(self, count: int) -> None:
        """Let go of the first ones."""
        while self._chunks and self._chunks[0].size <= count:
            chunk = self._chunks.pop(0)
            self.put_away -= chunk.size
            count -= chunk.size
        if count:
            self._at_hand(count - 1)
            for column in self._columns():
                del column[:count]

    def keys(self) -> list[Key]:
        """The keys, in order."""
        return list(map(self.key, range(len(self))))

    def as_bytes(self) -> list[bytes]:
        """The events, in order."""
        self._bring_back(0)
        return [each if isinstance(each, bytes) else packed(each) for each in self._events]

    def put_away_before(self, places: Iterable[int]) -> None:
        """Put away what comes before some places, in order, unless somebody asked for it of late.

        All of it is folded.
        """
        if self._is_asked:
            self._is_asked = False
            return
        for place in places:
            count = place - self.put_away
            if count > 0:
                self._chunks.append(self._chunk(count))
                self.put_away += count
                for column in self._columns():
                    del column[:count]

    def _chunk(self, count: int) -> Chunk:
        rows = (
            self._moments[:count].tobytes(),
            self._ranks[:count].tobytes(),
            self._writers[:count],
            self._seqs[:count].tobytes(),
            self._events[:count],
        )
        return Chunk(count, self._key(count - 1), Parcel(self._archive, _encoder.encode(rows)))

    def _at_hand(self, place: int) -> int:
        """Where an event lies among those at hand, to which it is brought back if need be."""
        begin = 0
        for number, chunk in enumerate(self._chunks):
            begin += chunk.size
            if place < begin:
                self._bring_back(number)
                break
        return place - self.put_away

    def from_place(self, place: int) -> tuple[int, array[int], list[AnyEvent | bytes]]:
        """Moments and events at hand, to which those from a place on belong, and the place there."""
        return self._at_hand(place), self._moments, self._events

    def _bring_back(self, first: int) -> None:
        """Bring back a chunk and those after it."""
        for chunk in reversed(self._chunks[first:]):
            self._is_asked = True
            moments, ranks, writers, seqs, events = _chunk_decoder.decode(chunk.parcel.read())
            self._moments = array("q", moments) + self._moments
            self._ranks = array("l", ranks) + self._ranks
            self._writers[:0] = map(sys.intern, writers)
            self._seqs = array("q", seqs) + self._seqs
            self._events[:0] = events
            self.put_away -= chunk.size
        del self._chunks[first:]

    def _columns(self) -> tuple[array[int], array[int], list[str], array[int], list[AnyEvent | bytes]]:
        return self._moments, self._ranks, self._writers, self._seqs, self._events
