"""Records that come seldom and are rarely read: packed, in an archive where they are worth a place in it.

Held by one thread at a time. To change them all are unpacked, so that hundreds belong here, not more.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from types import GenericAlias
from typing import Any, Generic, TypeVar

import msgspec

from ett_core.archive import IN_MEMORY, Archive, Parcel, parcel_of

COMPRESSION_LEVEL = 1

Record = TypeVar("Record", bound=msgspec.Struct)

_encoder = msgspec.msgpack.Encoder()


class Seldom(Generic[Record]):
    """Immutable records of one type, in the order in which they were put.

    >>> class Seen(msgspec.Struct, frozen=True):
    ...     at: float
    ...     sizes: tuple[int, ...] = ()
    >>> seldom = Seldom(Seen)
    >>> seldom.records()
    []
    >>> seldom.put([Seen(1.5, (64, 4))])
    >>> seldom.records()
    [Seen(at=1.5, sizes=(64, 4))]
    """

    __slots__ = ("_archive", "_kind", "_parcel")

    def __init__(self, kind: type[Record], archive: Archive = IN_MEMORY) -> None:
        self._kind = kind
        self._archive = archive
        self._parcel: Parcel | None = None

    def put(self, records: Sequence[Record]) -> None:
        """Hold these records instead of those held before."""
        packed = zlib.compress(_encoder.encode(records), COMPRESSION_LEVEL) if records else b""
        self._parcel = parcel_of(self._archive, packed) if records else None

    def records(self) -> list[Record]:
        """The records that are held."""
        if self._parcel is None:
            return []
        found: list[Any] = msgspec.msgpack.decode(
            zlib.decompress(self._parcel.read()), type=GenericAlias(list, (self._kind,))
        )
        return found
