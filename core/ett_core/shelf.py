"""Records that are rarely read, packed: a few dozen bytes each instead of some hundreds.

Held by one thread at a time. Reading unpacks all of them, so a shelf holds hundreds, not more. What
is worth it lies in an archive.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec

from ett_core.archive import IN_MEMORY, Archive, parcel_of

Record = TypeVar("Record", bound=msgspec.Struct)

_encoder = msgspec.msgpack.Encoder()


class Shelf(Generic[Record]):
    """Immutable records of one type, in the order in which they were put.

    >>> class Seen(msgspec.Struct, frozen=True):
    ...     at: float
    ...     what: str
    >>> shelf = Shelf(Seen)
    >>> shelf.put([Seen(1.5, "a"), Seen(2.0, "b")])
    >>> shelf.records()[1], len(shelf)
    (Seen(at=2.0, what='b'), 2)
    """

    __slots__ = ("_archive", "_count", "_parcel", "_type")

    def __init__(
        self, kind: type[Record], records: Iterable[Record] = (), archive: Archive = IN_MEMORY
    ) -> None:
        self._type = kind
        self._archive = archive
        self.put(records)

    def put(self, records: Iterable[Record]) -> None:
        """Hold these records instead of those held before."""
        rows: list[tuple[Any, ...]] = [msgspec.structs.astuple(record) for record in records]
        self._count = len(rows)
        packed = _encoder.encode(rows) if rows else b""
        self._parcel = parcel_of(self._archive, packed)

    def records(self) -> list[Record]:
        """The records that are held."""
        return (
            [self._type(*row) for row in msgspec.msgpack.decode(self._parcel.read())] if self._count else []
        )

    def __len__(self) -> int:
        """How many records are held."""
        return self._count
