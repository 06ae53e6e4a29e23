"""When each writer of an attempt number spoke, and what that tells of restarts that forgot to count."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ett_core.events import AnyEvent

Told = tuple[int, str, int, int]
"""Rank, writer, and its first and last event."""
LAST_RANK = 2**31 - 1
"""The highest rank that an event can name."""


class Presence:
    """First and last event of each writer of each rank.

    >>> from ett_core.events import Heartbeat
    >>> presence = Presence()
    >>> said = {"job_id": "j", "seq": 0, "attempt": 0, "time": 0.0}
    >>> for at_ns, writer, rank in ((0, "a", 0), (20, "a", 0), (80, "b", 0), (90, "b", 1), (95, "b", 0)):
    ...     _ = presence.note(at_ns, Heartbeat(writer=writer, rank=rank, **said))
    >>> presence.told(), presence.divided, presence.splits()
    ([(0, 'a', 0, 20), (0, 'b', 80, 95), (1, 'b', 90, 90)], True, [80])
    """

    __slots__ = (
        "_firsts",
        "_lasts",
        "_lowest",
        "_of_lowest",
        "_packed",
        "_places",
        "_ranks",
        "_writers",
        "divided",
    )

    def __init__(self, told: Iterable[Told] = (), *, divided: bool = False) -> None:
        self._clear()
        self._packed = b""
        """The same while nobody speaks."""
        self.divided = divided
        """Whether the lowest rank has several writers."""
        if rows := list(told):
            self._packed = _encoder.encode(rows)

    def _clear(self) -> None:
        self._places: dict[str | tuple[int, str], int] = {}
        """In the columns, of each writer; where it speaks for further ranks, of each of these beside it."""
        self._ranks = array("q")
        self._writers: list[str] = []
        self._firsts = array("q")
        self._lasts = array("q")
        self._lowest = LAST_RANK
        """The lowest rank but for launchers, and how many writers it has."""
        self._of_lowest = 0

    def note(self, at_ns: int, event: AnyEvent) -> str:
        """Learn when a writer spoke; gives its name as one object for all its events."""
        if self._packed:
            self._unpack()
        place = self._places.get(event.writer)
        if place is None or self._ranks[place] != event.rank:
            place = self._place(event.rank, event.writer, at_ns)
        if at_ns > self._lasts[place]:
            self._lasts[place] = at_ns
        elif at_ns < self._firsts[place]:
            self._firsts[place] = at_ns
        return self._writers[place]

    def _place(self, rank: int, writer: str, at_ns: int) -> int:
        """The place of a writer that is new, or speaks for another rank than at first."""
        writer = sys.intern(writer)
        key = (rank, writer) if writer in self._places else writer
        place = self._places.get(key)
        if place is None:
            place = self._append(key, (rank, writer, at_ns, at_ns))
            self.divided = self._of_lowest > 1
        return place

    def _append(self, key: str | tuple[int, str], told: Told) -> int:
        rank, writer, first_ns, last_ns = told
        place = self._places[key] = len(self._ranks)
        self._ranks.append(rank)
        self._writers.append(writer)
        self._firsts.append(first_ns)
        self._lasts.append(last_ns)
        if 0 <= rank <= self._lowest:
            self._of_lowest = self._of_lowest + 1 if rank == self._lowest else 1
            self._lowest = rank
        return place

    def _unpack(self) -> None:
        for rank, name, first_ns, last_ns in _decoder.decode(self._packed):
            writer = sys.intern(name)
            key = (rank, writer) if writer in self._places else writer
            self._append(key, (rank, writer, first_ns, last_ns))
        self._packed = b""

    def pack(self) -> None:
        """Hold it in less memory, where nobody is expected to speak."""
        self._packed = _encoder.encode(self.told())
        self._clear()

    def told(self) -> list[Told]:
        """It as a value."""
        if self._packed:
            return _decoder.decode(self._packed)
        return list(zip(self._ranks, self._writers, self._firsts, self._lasts, strict=True))

    def writers(self) -> set[str]:
        """Who spoke."""
        return {row[1] for row in self.told()}

    def splits(self) -> list[int]:
        """When the job was started again under the same number."""
        found: dict[int, list[tuple[int, int]]] = {}
        for rank, _, first, last in self.told():
            found.setdefault(rank, []).append((first, last))
        return division_moments({rank: sorted(writers) for rank, writers in found.items()})


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
