"""The accounts of a job's attempts as a sequence, of which all but the last lie packed.

An attempt that is over has an account of some 2 kB that nobody looks at, unless the page of its job is open.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import overload

import msgspec

from ett_core.accounting.account import AttemptAccount

COMPRESSION_LEVEL = 1
UNPACKED_AT_HAND = 32

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[AttemptAccount])


class PackedAccounts(Sequence[AttemptAccount]):
    """Accounts of attempts, in order; equal to a list of the same."""

    __slots__ = ("_count", "_last", "_packed")

    def __init__(self, earlier: bytes, count: int, last: AttemptAccount) -> None:
        """Hold `count` accounts that `pack` made `earlier` of, and the last one."""
        self._packed = earlier
        self._count = count
        self._last = last

    def __len__(self) -> int:
        """How many they are."""
        return self._count + 1

    @overload
    def __getitem__(self, place: int) -> AttemptAccount: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[AttemptAccount]: ...

    def __getitem__(self, place: int | slice) -> AttemptAccount | Sequence[AttemptAccount]:
        """The account at a place, or some of them."""
        if place in (-1, self._count):
            return self._last
        return list(self)[place]

    def __iter__(self) -> Iterator[AttemptAccount]:
        """All of them."""
        if self._count:
            yield from _unpacked(self._packed)
        yield self._last

    def __eq__(self, other: object) -> bool:
        """Whether they are the accounts of another sequence."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list has none

    def __repr__(self) -> str:
        """As a list of them."""
        return repr(list(self))


def pack(accounts: Sequence[AttemptAccount]) -> bytes:
    """Accounts as bytes; nothing of none."""
    return zlib.compress(_encoder.encode(list(accounts)), COMPRESSION_LEVEL) if accounts else b""


@lru_cache(UNPACKED_AT_HAND)
def _unpacked(packed: bytes) -> Sequence[AttemptAccount]:
    return _decoder.decode(zlib.decompress(packed))
