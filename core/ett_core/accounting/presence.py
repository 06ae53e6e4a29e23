"""When each writer of an attempt number spoke, and what that tells of restarts that forgot to count."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ett_core.events import AnyEvent

Told = tuple[int, str, int, int]
"""Rank, writer, and its first and last event."""


class _Seen:
    """First and last event of a writer of a rank."""

    __slots__ = ("first_ns", "last_ns", "writer")

    def __init__(self, first_ns: int, last_ns: int, writer: str) -> None:
        self.first_ns, self.last_ns, self.writer = first_ns, last_ns, writer


class Presence:
    """First and last event of each writer of each rank.

    >>> presence = Presence([(0, "a", 0, 20), (0, "b", 80, 90)], divided=True)
    >>> presence.splits(), sorted(presence.writers())
    ([80], ['a', 'b'])
    """

    __slots__ = ("_packed", "_seen", "divided")

    def __init__(self, told: Iterable[Told] = (), *, divided: bool = False) -> None:
        self._seen: dict[tuple[int, str], _Seen] = {}
        self._packed = b""
        """The same while nobody speaks."""
        self.divided = divided
        """Whether the lowest rank has several writers."""
        if rows := list(told):
            self._packed = _encoder.encode(rows)

    def note(self, at_ns: int, event: AnyEvent) -> str:
        """Learn when a writer spoke; gives its name as one object for all its events."""
        if self._packed:
            self._unpack()
        seen = self._seen.get((event.rank, event.writer))
        if seen is None:
            writer = sys.intern(event.writer)
            seen = self._seen[event.rank, writer] = _Seen(at_ns, at_ns, writer)
            self.divided = self._several_lowest_writers()
        elif at_ns > seen.last_ns:
            seen.last_ns = at_ns
        elif at_ns < seen.first_ns:
            seen.first_ns = at_ns
        return seen.writer

    def pack(self) -> None:
        """Hold it in less memory, where nobody is expected to speak."""
        self._packed = _encoder.encode(self.told())
        self._seen = {}

    def told(self) -> list[Told]:
        """It as a value."""
        if self._packed:
            return _decoder.decode(self._packed)
        return [(rank, writer, seen.first_ns, seen.last_ns) for (rank, writer), seen in self._seen.items()]

    def writers(self) -> set[str]:
        """Who spoke."""
        return {row[1] for row in self.told()}

    def splits(self) -> list[int]:
        """When the job was started again under the same number."""
        found: dict[int, list[tuple[int, int]]] = {}
        for rank, _, first, last in self.told():
            found.setdefault(rank, []).append((first, last))
        return division_moments({rank: sorted(writers) for rank, writers in found.items()})

    def _unpack(self) -> None:
        for rank, writer, first, last in _decoder.decode(self._packed):
            name = sys.intern(writer)
            self._seen[rank, name] = _Seen(first, last, name)
        self._packed = b""

    def _several_lowest_writers(self) -> bool:
        ranks = [rank for rank, _ in self._seen if rank >= 0]
        return bool(ranks) and ranks.count(min(ranks)) > 1


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Told])


def division_moments(writers: Mapping[int, Sequence[tuple[int, int]]]) -> list[int]:
    """When a job was started again under the same attempt number.

    The lowest rank (not the launcher) shows it: it begins again. Where another rank or the
    launcher began again before that, but after the lowest had fallen silent, that is the moment.

    >>> division_moments({-1: [(0, 70), (78, 90)], 0: [(0, 20), (80, 90)]})
    [78]
    """
    ranks = [rank for rank in writers if rank >= 0]
    if not ranks:
        return []
    lowest = min(ranks)
    others = [at for rank in writers if rank != lowest for _, at in begun_again(writers[rank])]
    return [
        min([moment, *(at for at in others if silent_ns < at < moment)])
        for silent_ns, moment in begun_again(writers[lowest])
    ]


def begun_again(writers: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """When one rank had fallen silent, and when a new writer of it then began.

    `writers` holds the first and last event of each writer, in the order of the first.

    >>> begun_again([(0, 20), (10, 30), (80, 90)])
    [(30, 80)]
    """
    found: list[tuple[int, int]] = []
    silent_ns = None
    for first, last in writers:
        if silent_ns is not None and first > silent_ns:
            found.append((silent_ns, first))
        silent_ns = last if silent_ns is None else max(silent_ns, last)
    return found
