"""Where folds put bytes that they rarely need again: in memory, or wherever an `Archive` keeps them.

What is put there can always be made again from the history, so an archive need not survive its
process. Any thread may call.
"""

from __future__ import annotations

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

    __slots__ = ("__weakref__", "_archive", "_handle")

    def __init__(self, archive: Archive, data: bytes) -> None:
        self._archive = archive
        self._handle = archive.put(data)

    def read(self) -> bytes:
        """The bytes."""
        return self._archive.get(self._handle)

    def __del__(self) -> None:
        """Let go of the bytes."""
        self._archive.drop(self._handle)
