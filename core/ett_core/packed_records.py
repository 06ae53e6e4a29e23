"""Records of which only the last ones are looked at, as a sequence: those before them lie packed.

An attempt that is over has an account of some 2 kB that nobody looks at, unless the page of its job is open.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator, Sequence
from types import GenericAlias
from typing import Any, Generic, TypeVar, overload
from weakref import ref

import msgspec

from ett_core.amounts import plain
from ett_core.archive import IN_MEMORY, Archive, Parcel

COMPRESSION_LEVEL = 1
UNPACKED_AT_HAND = 32

Record = TypeVar("Record", bound=msgspec.Struct)

_encoder = msgspec.msgpack.Encoder(enc_hook=plain)


class Packed(Generic[Record]):
    """Records of one type as bytes.

    >>> class Seen(msgspec.Struct):
    ...     at: float
    >>> packed = Packed(Seen, [Seen(1.5), Seen(2.5)])
    >>> len(packed), packed.records()[1]
    (2, Seen(at=2.5))
    """

    __slots__ = ("__weakref__", "_count", "_kind", "_parcel")

    def __init__(self, kind: type[Record], records: Sequence[Record], archive: Archive = IN_MEMORY) -> None:
        """Hold these records; `archive` keeps them."""
        self._kind = kind
        self._count = len(records)
        packed = zlib.compress(_encoder.encode(list(records)), COMPRESSION_LEVEL) if records else b""
        self._parcel = Parcel(archive if records else IN_MEMORY, packed)

    def __len__(self) -> int:
        """How many they are."""
        return self._count

    def records(self) -> Sequence[Record]:
        """The records."""
        return _unpacked(self) if self._count else ()

    def unpacked(self) -> Sequence[Record]:
        """The records, made anew."""
        records: Sequence[Record] = msgspec.msgpack.decode(
            zlib.decompress(self._parcel.read()), type=GenericAlias(tuple, (self._kind, ...))
        )
        return records


_at_hand: dict[ref[Packed[Any]], Sequence[Any]] = {}
"""The records that were unpacked last, whoever asked; any thread may call."""
_lock = threading.Lock()


def _unpacked(packed: Packed[Any]) -> Sequence[Any]:
    key = ref(packed)
    found = _at_hand.get(key)
    if found is None:
        found = packed.unpacked()
        with _lock:
            _at_hand[key] = found
            while len(_at_hand) > UNPACKED_AT_HAND:
                del _at_hand[next(iter(_at_hand))]
    return found


class PackedRecords(Sequence[Record]):
    """Records in order; equal to any sequence of the same."""

    __slots__ = ("_last", "earlier")

    def __init__(self, earlier: Packed[Record], last: Sequence[Record]) -> None:
        self.earlier = earlier
        """Those that lie packed."""
        self._last = tuple(last)

    def __len__(self) -> int:
        """How many they are."""
        return len(self.earlier) + len(self._last)

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Record]: ...

    def __getitem__(self, place: int | slice) -> Record | Sequence[Record]:
        """The record at a place, or some of them."""
        if place == -1 and self._last:
            return self._last[-1]
        return [*self][place]

    def __iter__(self) -> Iterator[Record]:
        """All of them."""
        yield from self.earlier.records()
        yield from self._last

    def __eq__(self, other: object) -> bool:
        """Whether they are the records of another sequence."""
        if isinstance(other, PackedRecords) and other.earlier is self.earlier:
            return bool(self._last == other._last)
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list has none

    def __repr__(self) -> str:
        """As a list of them."""
        return repr(list(self))
