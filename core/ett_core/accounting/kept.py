"""What was computed of one partition while its attempt and its frame stay as they are."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ett_core.accounting.account import AttemptAccount, seconds
from ett_core.accounting.partition import Partition, Totals
from ett_core.amounts import Amounts
from ett_core.components import UNSAVED_TRAINING

LOST_KEPT = 8
NOTHING: Mapping[str, float] = {}
"""Of nearly all attempts, one object; nobody changes it."""


class Kept:
    """The totals of a partition, its account, and what falls back to other steps would take away."""

    __slots__ = ("_lost", "account", "totals")

    def __init__(self, partition: Partition) -> None:
        self.totals = partition.totals()
        self.account = _attempt_account(partition, self.totals)
        self._lost: dict[int | None, int] = {partition.threshold: self.totals.get(UNSAVED_TRAINING, 0)}

    def account_with(self, after: Mapping[str, float]) -> AttemptAccount:
        """The account of the attempt with what lies between it and the next one."""
        if self.account.after != after:
            self.account = msgspec.structs.replace(self.account, after=after)
        return self.account

    def lost_ns(self, partition: Partition) -> int:
        """Training that the threshold of the partition takes away, were it the one that counts."""
        lost = self._lost.get(partition.threshold)
        if lost is None:
            if len(self._lost) >= LOST_KEPT:
                self._lost.clear()
            lost = self._lost[partition.threshold] = partition.lost_ns()
        return lost


def kept_of(partition: Partition) -> Kept:
    """What was computed of a partition, from its attempt where that has it."""
    attempt = partition.span.attempt
    key = (attempt.version, partition)
    if attempt.kept is None or attempt.kept[0] != key:
        attempt.kept = (key, Kept(partition))
    kept: Kept = attempt.kept[1]
    return kept


def _attempt_account(partition: Partition, totals: Totals) -> AttemptAccount:
    span = partition.span
    attempt = span.attempt
    info = attempt.info
    return AttemptAccount(
        attempt=attempt.number,
        start=seconds(span.start_ns),
        end=seconds(span.end_ns),
        loop_start=None if span.loop_ns is None else seconds(span.loop_ns),
        outcome=span.outcome,
        observed=span.observed,
        critical_rank=span.critical,
        leader=attempt.leader,
        world_size=info.world_size if info else 0,
        accelerators=info.accelerators if info else 0,
        accelerator_type=info.accelerator_type if info else "",
        resumed_step=attempt.begun().declared_step,
        last_step=attempt.begun().last_step,
        first_batch_at=attempt.entered().first_batch_at,
        hidden={phase: seconds(amount) for phase, amount in partition.hidden_ns().items()} or NOTHING,
        components=Amounts(totals),
        after=NOTHING,
    )
