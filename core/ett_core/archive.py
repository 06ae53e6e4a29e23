"""Where folds put bytes that they rarely need again: in memory, or wherever an `Archive` keeps them.

What is put there can always be made again from the history, so an archive need not survive its
process. Any thread may call.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

ARCHIVED_BYTES = 128
"""Less than this is not worth a place in an archive."""


class Archive(Protocol):
    """Keeps bytes under a handle."""

    def put(self, data: bytes) -> object:
        """Keep bytes; gives the handle to get them back."""

    def get(self, handle: object, begin: int = 0, end: int | None = None) -> bytes:
        """The bytes under a handle, or a part of them."""

    def drop(self, handle: object) -> None:
        """Forget the bytes under a handle."""


class InMemory:
    """An archive that keeps everything in memory: the handle is the bytes."""

    def put(self, data: bytes) -> object:
        """Keep bytes."""
        return data

    def get(self, handle: object, begin: int = 0, end: int | None = None) -> bytes:
        """The bytes under a handle, or a part of them."""
        assert isinstance(handle, bytes)  # noqa: S101 - `put` gave it
        return handle[begin:end]

    def drop(self, handle: object) -> None:
        """Nothing to do: they go with the handle."""


IN_MEMORY = InMemory()


class Parcel:
    """Bytes in an archive, for as long as somebody holds the parcel.

    >>> parcel = Parcel(IN_MEMORY, b"data")
    >>> parcel.read(), parcel.read(1, 3)
    (b'data', b'at')
    """

    __slots__ = ("_archive", "_handle")

    def __init__(self, archive: Archive, data: bytes) -> None:
        self._archive = archive
        self._handle: object = archive.put(data)

    def read(self, begin: int = 0, end: int | None = None) -> bytes:
        """The bytes, or a part of them."""
        return self._archive.get(self._handle, begin, end)

    def give_up(self) -> object:
        """The handle, which somebody else drops from now on."""
        handle, self._handle = self._handle, None
        return handle

    def __del__(self) -> None:
        """Let go of the bytes."""
        if self._handle is not None:
            self._archive.drop(self._handle)


class Loan(NamedTuple):
    """One of many parcels, to be read while anybody holds it.

    >>> parcels = Parcels(IN_MEMORY)
    >>> loan = Loan(parcels, parcels.adopt(Parcel(IN_MEMORY, b"data")))
    >>> loan.read(1, 3), Loan(parcels, parcels.adopt(loan)).read()
    (b'at', b'data')
    """

    parcels: Parcels
    number: int

    def read(self, begin: int = 0, end: int | None = None) -> bytes:
        """The bytes, or a part of them."""
        return self.parcels.get(self.number, begin, end)

    def give_up(self) -> object:
        """The handle, which somebody else drops from now on."""
        return self.parcels.take(self.number)


Bytes: TypeAlias = Parcel | Loan
"""Bytes that lie in an archive."""


def parcel_of(archive: Archive, data: bytes) -> Parcel:
    """Bytes in an archive, or in memory where they are too few to be worth a place in it."""
    return Parcel(archive if len(data) >= ARCHIVED_BYTES else IN_MEMORY, data)


class Parts(NamedTuple):
    """Several pieces of data in one parcel, one after the other."""

    parcel: Bytes
    ends: Sequence[int]

    def part(self, place: int) -> bytes:
        """One of them."""
        return self.parcel.read(self.ends[place - 1] if place else 0, self.ends[place])


class Parcels:
    """Many parcels of one owner, each under a number, for as long as somebody holds them together.

    >>> parcels = Parcels(IN_MEMORY)
    >>> numbers = [parcels.put(b"first"), parcels.put(b"second")]
    >>> [parcels.get(number) for number in numbers]
    [b'first', b'second']

    The first of them may be parts of one parcel:

    >>> parcels = Parcels(IN_MEMORY, Parts(Parcel(IN_MEMORY, b"onetwo"), [3, 6]))
    >>> number = parcels.put(b"three")
    >>> parcels.get(1), parcels.get(number)
    (b'two', b'three')
    """

    __slots__ = ("__weakref__", "_free", "_handles", "_others", "archive", "parts")

    def __init__(self, archive: Archive, parts: Parts | None = None) -> None:
        self.parts = parts
        self.archive = archive
        self._handles = array("q")
        """Handles that are integers, as those of a file are: eight bytes each."""
        self._others: list[object] = []
        self._free = array("q")
        """Numbers that may be given again."""

    @property
    def _first(self) -> int:
        """The first number that is of no part."""
        return 0 if self.parts is None else len(self.parts.ends)

    def put(self, data: bytes) -> int:
        """Keep bytes; gives their number."""
        return self._hold(self.archive.put(data))

    def adopt(self, parcel: Bytes) -> int:
        """Hold what was held by one of the same archive; gives its number."""
        return self._hold(parcel.give_up())

    def _hold(self, handle: object) -> int:
        if not isinstance(handle, int):
            self._others.append(handle)
            return -len(self._others)
        if self._free:
            number = self._free.pop()
            self._handles[number - self._first] = handle
            return number
        self._handles.append(handle)
        return self._first + len(self._handles) - 1

    def get(self, number: int, begin: int = 0, end: int | None = None) -> bytes:
        """The bytes under a number, or a part of them."""
        if number < 0:
            return self.archive.get(self._others[-number - 1], begin, end)
        if self.parts is not None and number < self._first:
            return self.parts.part(number)[begin:end]
        return self.archive.get(self._handles[number - self._first], begin, end)

    def take(self, number: int) -> object:
        """The handle under a number that is of no part, which somebody else drops from now on."""
        if number < 0:
            handle, self._others[-number - 1] = self._others[-number - 1], None
            return handle
        self._free.append(number)
        return self._handles[number - self._first]

    def drop(self, number: int) -> None:
        """Let go of the bytes under a number; a part goes with all others."""
        if number < 0 or number >= self._first:
            self.archive.drop(self.take(number))

    def __del__(self) -> None:
        """Let go of the bytes."""
        free = frozenset(self._free)
        held = (handle for place, handle in enumerate(self._handles) if place + self._first not in free)
        for handle in (*held, *(each for each in self._others if each is not None)):
            self.archive.drop(handle)
