"""Lines and facts that may explain failures, by attempt.

Part of the details fold (`ett_core.details`): held by one thread, in any order of arrival. Only the latest
attempts are told of more than once in a while; what was told of earlier ones lies packed.
"""

from __future__ import annotations

import math
import zlib
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ett_core.archive import IN_MEMORY, Archive, Parcel, parcel_of
from ett_core.causes import cause_of_event, senders_told, with_sender
from ett_core.events import Evidence, Failure
from ett_core.plain_text import plain

EVIDENCE_KEPT = 100
"""Latest lines kept of one attempt."""
EVIDENCE_ATTEMPTS_KEPT = 20
EVIDENCE_CHARACTERS = 8192
ATTEMPTS_AT_HAND = 1
STOPPED = "stopped"
STALL_SOURCES = ("stall", "stack", STOPPED)
"""Sources of evidence about jobs that make no progress: that they do not, what each rank was doing, and
which processes stood stopped."""
COMPRESSION_LEVEL = 1


class EvidenceLine(msgspec.Struct, frozen=True, gc=False, order=True):
    """A line or fact that may explain a failure of its attempt."""

    time: float
    rank: int
    writer: str
    seq: int
    node: str
    source: str
    text: str


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[int, list[EvidenceLine]])


class EvidenceLog:
    """The fold: `add` events, then read."""

    __slots__ = ("_archive", "_at_hand", "_packed", "_told", "changes")

    def __init__(
        self, known: Mapping[int, Sequence[EvidenceLine]] | None = None, archive: Archive = IN_MEMORY
    ) -> None:
        """Start with what `everything` gave; `archive` keeps what is rarely needed again."""
        self._archive = archive
        self.changes = 0
        """How many events were taken in."""
        self._at_hand = {attempt: list(lines) for attempt, lines in (known or {}).items()}
        self._packed: Parcel | None = None
        self._told: dict[int, int] = dict.fromkeys(self._at_hand, 0)
        self._pack()

    def add(self, event: Evidence | Failure) -> None:
        """Take in one event."""
        attempt = event.attempt
        if attempt not in self._at_hand:
            self._bring_back(attempt)
        lines = self._at_hand[attempt]
        insort(lines, line_of(event))
        del lines[:-EVIDENCE_KEPT]
        self._told[attempt] = self._told.get(attempt, 0) + 1
        self.changes += 1
        self._pack()

    def _bring_back(self, attempt: int) -> None:
        if attempt in self._told:
            self._at_hand |= self._unpacked()
            self._packed = None
        self._at_hand.setdefault(attempt, [])

    def told(self, attempt: int) -> int:
        """A number that grows with every event of an attempt."""
        return self._told.get(attempt, -1)

    def lines(self, attempt: int, begin: float = -math.inf, end: float = math.inf) -> list[EvidenceLine]:
        """The lines of one attempt in order of time, signals with their senders where known.

        Args:
            attempt: its number.
            begin: Unix seconds from which they are wanted, where several attempts say one number.
            end: the moment before which they are.
        """
        lines = [line for line in self._lines(attempt) if begin <= line.time < end]
        senders = senders_in(lines)
        if not senders:
            return lines
        return [msgspec.structs.replace(line, text=with_sender(line.text, senders)) for line in lines]

    def _lines(self, attempt: int) -> list[EvidenceLine]:
        if attempt in self._at_hand:
            return list(self._at_hand[attempt])
        return self._unpacked().get(attempt, []) if attempt in self._told else []

    def stalls(self) -> list[dict[str, Any]]:
        """What launchers told of stalls, and of what the ranks were doing then, as JSON objects in order."""
        fields = ("time", "rank", "node", "source", "text")
        return [
            {"attempt": attempt, **{field: getattr(line, field) for field in fields}}
            for attempt, lines in self.everything().items()
            for line in lines
            if line.source in STALL_SOURCES
        ]

    def everything(self) -> dict[int, list[EvidenceLine]]:
        """The lines of all attempts, as they were told, in order."""
        found = self._unpacked() | {attempt: list(lines) for attempt, lines in self._at_hand.items()}
        return dict(sorted(found.items()))

    def _unpacked(self) -> dict[int, list[EvidenceLine]]:
        return {} if self._packed is None else _decoder.decode(zlib.decompress(self._packed.read()))

    def _pack(self) -> None:
        """Pack all but the latest attempts, and let go of those that are too many."""
        if len(self._at_hand) <= ATTEMPTS_AT_HAND:
            return
        found = self.everything()
        for attempt in list(found)[:-EVIDENCE_ATTEMPTS_KEPT]:
            del found[attempt], self._told[attempt]
        self._at_hand = {attempt: found.pop(attempt) for attempt in list(found)[-ATTEMPTS_AT_HAND:]}
        packed = zlib.compress(_encoder.encode(found), COMPRESSION_LEVEL)
        self._packed = parcel_of(self._archive, packed)


def senders_in(lines: Iterable[EvidenceLine]) -> dict[tuple[str, str], str]:
    """Who sent which signal, by rank and name of the signal, as launchers tell among these lines."""
    return senders_told(line.text for line in lines if line.source == "launcher")


def line_of(event: Evidence | Failure) -> EvidenceLine:
    """What an event tells, as a line."""
    if isinstance(event, Evidence):
        time, source, text = event.observed_at or event.time, event.source, event.text
    else:
        time, source, text = event.first_error_at or event.time, "failure", _failure_text(event)
    text = plain(text[:EVIDENCE_CHARACTERS])
    return EvidenceLine(time, event.rank, event.writer, event.seq, event.node, source, text)


def _failure_text(event: Failure) -> str:
    cause = cause_of_event(event)
    return f"{cause}\n{event.message}" if event.message and event.message not in cause else cause
