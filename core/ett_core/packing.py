"""States as bytes that can be kept, and back; damage is seen, and no bytes make anything run.

    bytes  =  magic, with the version of the state | CRC-32 of the rest | zlib of MessagePack

The MessagePack is decoded against the types of the state, so that it makes plain values only.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TypeVar

import msgspec

CRC_BYTES = 4
COMPRESSION_LEVEL = 1

State = TypeVar("State")

_encoder = msgspec.msgpack.Encoder()


def wrapped(magic: bytes, state: object) -> bytes:
    """A state behind its magic and checksum.

    >>> unwrapped(b"magic", wrapped(b"magic", [1, 2]), msgspec.msgpack.decode)
    [1, 2]
    """
    packed = zlib.compress(_encoder.encode(state), COMPRESSION_LEVEL)
    return magic + zlib.crc32(packed).to_bytes(CRC_BYTES, "big") + packed


def unwrapped(magic: bytes, data: bytes, decode: Callable[[bytes], State]) -> State:
    """What `wrapped` was given.

    Raises:
        ValueError: the bytes are damaged or of another kind.
    """
    start = len(magic) + CRC_BYTES
    packed = data[start:]
    if data[: len(magic)] != magic:
        raise ValueError("this is no snapshot, or one of another version")
    if zlib.crc32(packed).to_bytes(CRC_BYTES, "big") != data[len(magic) : start]:
        raise ValueError("the snapshot is damaged")
    try:
        plain = zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(f"the snapshot is damaged: {error}") from error
    return decode(plain)
