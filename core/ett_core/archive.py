"""Where folds put bytes that they rarely need again: in memory, or wherever an `Archive` keeps them.

What is put there can always be made again from the history, so an archive need not survive its
process. Any thread may call.
"""

from __future__ import annotations

from array import array
from typing import Protocol


class Archive(Protocol):
    """Keeps bytes under a handle."""

    def put(self, data: bytes) -> object:
        """Keep bytes; gives the handle to get them back."""

    def get(self, handle: object) -> bytes:
        """The bytes under a handle."""

    def drop(self, handle: object) -> None:
        """Forget the bytes under a handle."""


class InMemory:
    """An archive that keeps everything in memory: the handle is the bytes."""

    def put(self, data: bytes) -> object:
        """Keep bytes."""
        return data

    def get(self, handle: object) -> bytes:
        """The bytes under a handle."""
        assert isinstance(handle, bytes)  # noqa: S101 - `put` gave it
        return handle

    def drop(self, handle: object) -> None:
        """Nothing to do: they go with the handle."""


IN_MEMORY = InMemory()


class Parcel:
    """Bytes in an archive, for as long as somebody holds the parcel.

    >>> Parcel(IN_MEMORY, b"data").read()
    b'data'
    """

    __slots__ = ("_archive", "_handle")

    def __init__(self, archive: Archive, data: bytes) -> None:
        self._archive = archive
        self._handle = archive.put(data)

    def read(self) -> bytes:
        """The bytes."""
        return self._archive.get(self._handle)

    def __del__(self) -> None:
        """Let go of the bytes."""
        self._archive.drop(self._handle)


class Parcels:
    """Many parcels of one owner, each under a number, for as long as somebody holds them together.

    >>> parcels = Parcels(IN_MEMORY)
    >>> numbers = [parcels.put(b"first"), parcels.put(b"second")]
    >>> [parcels.get(number) for number in numbers]
    [b'first', b'second']
    """

    __slots__ = ("__weakref__", "_archive", "_free", "_handles", "_others")

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._handles = array("q")
        """Handles that are integers, as those of a file are: eight bytes each."""
        self._others: list[object] = []
        self._free: list[int] = []
        """Numbers that may be given again."""

    def put(self, data: bytes) -> int:
        """Keep bytes; gives their number."""
        handle = self._archive.put(data)
        if not isinstance(handle, int):
            self._others.append(handle)
            return -len(self._others)
        if self._free:
            number = self._free.pop()
            self._handles[number] = handle
            return number
        self._handles.append(handle)
        return len(self._handles) - 1

    def get(self, number: int) -> bytes:
        """The bytes under a number."""
        return self._archive.get(self._handles[number] if number >= 0 else self._others[-number - 1])

    def drop(self, number: int) -> None:
        """Let go of the bytes under a number, which may be given again."""
        if number >= 0:
            self._archive.drop(self._handles[number])
            self._free.append(number)
        else:
            self._others[-number - 1] = None

    def __del__(self) -> None:
        """Let go of the bytes."""
        free = frozenset(self._free)
        held = (handle for number, handle in enumerate(self._handles) if number not in free)
        for handle in (*held, *(each for each in self._others if each is not None)):
            self._archive.drop(handle)
