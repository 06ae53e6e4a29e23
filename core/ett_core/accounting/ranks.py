"""The ranks of one attempt: what each has told of its way into the loop, and when the loop began.

A rank that is in the loop and says no more than that lies packed; the leader, and those whose phases may
still change, are at hand. What follows from all of them is kept until any way into the loop changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ett_core.accounting.account import seconds
from ett_core.accounting.phases import Phase
from ett_core.accounting.rank import Rank, RankMark, RankState, begin_reported, begin_unreported
from ett_core.amounts import Moments

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(RankState)


class Entered(NamedTuple):
    """What is known of the way of all ranks into the loop."""

    leader: int | None
    first_report_ns: int | None
    loop_ns: int | None
    critical: int | None
    declared_step: int | None
    """The step of the first batch of the lowest rank that says one."""
    first_batch_at: Mapping[int, float]
    """Unix seconds by rank."""


class RanksMark(NamedTuple):
    """A point in `Ranks` to come back to; ranks that were not at hand are as they lie packed."""

    at_hand: dict[int, tuple[Rank, RankMark]]
    entered: Entered | None


class Ranks:
    """All ranks that spoke in an attempt, by number."""

    __slots__ = ("_at_hand", "_entered", "_marked", "_packed")

    def __init__(self, states: Mapping[int, RankState] | None = None) -> None:
        """Start with what `states` gave."""
        self._at_hand = {number: Rank.of_state(state) for number, state in (states or {}).items()}
        self._packed: dict[int, bytes] = {}
        """Also of some that are at hand: as they were when they were packed."""
        self._entered: Entered | None = None
        self._marked: dict[int, tuple[Rank, RankMark]] = {}
        """Of the latest mark."""

    def __contains__(self, number: int) -> bool:
        """Whether a rank spoke."""
        return number in self._at_hand or number in self._packed

    def __iter__(self) -> Iterator[int]:
        """The numbers of the ranks, in no order."""
        return iter(self._at_hand.keys() | self._packed.keys())

    def __len__(self) -> int:
        """How many spoke."""
        return len(self._at_hand.keys() | self._packed.keys())

    def spoke(self, number: int) -> None:
        """A rank said anything."""
        if number not in self._at_hand and number not in self._packed:
            self._at_hand[number] = Rank()
            self._entered = None

    def at_hand(self, number: int) -> Rank:
        """A rank that spoke, to be changed."""
        rank = self._at_hand.get(number)
        if rank is None:
            rank = self._at_hand[number] = self._unpacked(number)
        return rank

    def look(self, number: int) -> Rank:
        """A rank that spoke, to be looked at."""
        return self._at_hand.get(number) or self._unpacked(number)

    def _unpacked(self, number: int) -> Rank:
        return Rank.of_state(_decoder.decode(self._packed[number]))

    def first_batch(self, number: int, at_ns: int, step: int | None) -> None:
        """The first batch of a rank."""
        self._entered = None
        self.at_hand(number).first_batch(at_ns, step)

    def begin_phase(self, number: int, at_ns: int, phase: str, track: str) -> None:
        """A phase of a rank begins."""
        rank = self.at_hand(number)
        if rank.since_report is None:
            self._entered = None
        rank.begin_phase(at_ns, phase, track)

    def end_phase(self, number: int, at_ns: int, phase: str, track: str) -> list[Phase]:
        """A phase of a rank ends; gives back those that end and had begun before its last report."""
        rank = self.at_hand(number)
        if rank.since_report is None or at_ns == rank.first_report_ns:
            self._entered = None
        return rank.end_phase(at_ns, phase, track)

    def reported(self, number: int, at_ns: int) -> None:
        """A rank that does not lead reports."""
        rank = self._at_hand.get(number)
        if rank is None:
            return  # nothing was open since its last report
        if rank.since_report is None:
            self._entered = None
        rank.reported(at_ns)

    def entered(self, leader: int | None, first_report_ns: int | None) -> Entered:
        """When the loop began, with what decided it; `first_report_ns` is the leader's, None without one."""
        known = self._entered
        if known is None or known[:2] != (leader, first_report_ns):
            known = self._entered = self._newly_entered(leader, first_report_ns)
        return known

    def _newly_entered(self, leader: int | None, first_report_ns: int | None) -> Entered:
        ranks = {number: self.look(number) for number in sorted(self)}
        if first_report_ns is None:
            begin = begin_unreported(ranks)
        else:
            begin = begin_reported(ranks, leader, first_report_ns)
        steps = (r.first_batch_step for r in ranks.values() if r.first_batch_step is not None)
        batches = {n: seconds(r.first_batch_ns) for n, r in ranks.items() if r.first_batch_ns is not None}
        return Entered(leader, first_report_ns, *begin, next(steps, None), Moments(batches))

    def mark(self) -> RanksMark:
        """What `restore` needs to come back to this point; marks share what did not change between them."""
        at_hand = {number: (rank, rank.mark()) for number, rank in self._at_hand.items()}
        if at_hand != self._marked:
            self._marked = at_hand
        return RanksMark(self._marked, self._entered)

    def restore(self, mark: RanksMark) -> None:
        """Forget everything after `mark`."""
        self._marked, self._entered = mark
        self._at_hand = {}
        for number, (rank, rank_mark) in mark.at_hand.items():
            rank.restore(rank_mark)
            self._at_hand[number] = rank

    def pack(self, leader: int | None, marks: Sequence[RanksMark]) -> None:
        """Pack the ranks that are in the loop and are the same in all marks that lead back."""
        told = {id(each): each for each in (*(mark.at_hand for mark in marks), self._marked)}.values()
        for number, rank in [*self._at_hand.items()]:
            log, now = rank.since_report, (rank, rank.mark())
            if number == leader or log is None or not log.is_empty():
                continue
            if all(each.get(number) == now for each in told):
                self._packed[number] = _encoder.encode(rank.state())
                del self._at_hand[number]
                for each in told:
                    del each[number]

    def states(self) -> dict[int, RankState]:
        """The ranks as values."""
        return {number: self.look(number).state() for number in self}
