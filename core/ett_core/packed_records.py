"""Records of which only the last ones are looked at, as a sequence: those before them lie packed.

An attempt that is over has an account of some 2 kB that nobody looks at, unless the page of its job is open.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import GenericAlias
from typing import Any, Generic, TypeVar, overload

import msgspec

COMPRESSION_LEVEL = 1
UNPACKED_AT_HAND = 32

Record = TypeVar("Record", bound=msgspec.Struct)

_encoder = msgspec.msgpack.Encoder()


class Packed(Generic[Record]):
    """Records of one type as bytes.

    >>> class Seen(msgspec.Struct):
    ...     at: float
    >>> packed = Packed(Seen, [Seen(1.5), Seen(2.5)])
    >>> len(packed), packed.records()[1]
    (2, Seen(at=2.5))
    """

    __slots__ = ("_count", "_data", "_kind")

    def __init__(self, kind: type[Record], records: Sequence[Record]) -> None:
        self._kind = kind
        self._count = len(records)
        self._data = zlib.compress(_encoder.encode(list(records)), COMPRESSION_LEVEL) if records else b""

    def __len__(self) -> int:
        """How many they are."""
        return self._count

    def records(self) -> Sequence[Record]:
        """The records."""
        return _unpacked(self._kind, self._data) if self._count else ()


@lru_cache(UNPACKED_AT_HAND)
def _unpacked(kind: type[Any], data: bytes) -> Sequence[Any]:
    records: Sequence[Any] = msgspec.msgpack.decode(
        zlib.decompress(data), type=GenericAlias(tuple, (kind, ...))
    )
    return records


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
