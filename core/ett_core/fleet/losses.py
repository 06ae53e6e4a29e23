"""What each failure of a job cost: pure functions of its account.

Every second is charged to one failure: what the failure threw away, what its attempt had stood still
for, and everything that recovers after it until the next failure or the next loop. Over all failures
the recovery adds up to the `recover.*` components of the job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_core.accounting.account import AttemptAccount, JobAccount
from ett_core.components import RECOVER_QUEUE, STALLED
from ett_core.fleet.attempts import failed_places

_RECOVER = "recover."


class Losses(msgspec.Struct, frozen=True, gc=False):
    """Seconds that one failure cost, and what they weigh.

    `accelerators`: those of the attempt, else its ranks, at least 1. In `queue_s` (a part of
    `recovery_s`) no hardware is held, so it weighs nothing in accelerator-seconds.
    """

    unsaved_s: float
    stalled_s: float
    recovery_s: float
    queue_s: float
    accelerators: int

    @property
    def total_s(self) -> float:
        """All seconds, queueing included."""
        return self.unsaved_s + self.stalled_s + self.recovery_s

    @property
    def accelerator_s(self) -> float:
        """Held accelerator-seconds.

        >>> Losses(10.0, 0.0, 20.0, 5.0, 8).accelerator_s
        200.0
        """
        return (self.total_s - self.queue_s) * self.accelerators


def losses(account: JobAccount) -> list[Losses]:
    """What each of the account's failures cost, in its order."""
    ended = failed_places(account.attempts)
    ends = [*ended[1:], len(account.attempts) - 1][: len(ended)]
    return [
        _losses(account.attempts[place : end + 1], failure.unsaved_s, is_last=place == ended[-1])
        for place, end, failure in zip(ended, ends, account.failures, strict=True)
    ]


def _losses(attempts: Sequence[AttemptAccount], unsaved_s: float, *, is_last: bool) -> Losses:
    """Of the failed attempt that comes first, and those up to the next that failed, if any."""
    failed, later = attempts[0], attempts[1:]
    gaps = attempts if is_last else attempts[:-1]
    parts = [*(attempt.after for attempt in gaps), *(attempt.components for attempt in later)]
    return Losses(
        unsaved_s=unsaved_s,
        stalled_s=failed.components.get(STALLED, 0.0),
        recovery_s=sum(map(_recovery_s, parts)),
        queue_s=sum(part.get(RECOVER_QUEUE, 0.0) for part in parts),
        accelerators=failed.accelerators or failed.world_size or 1,
    )


def _recovery_s(components: Mapping[str, float]) -> float:
    return sum(seconds for name, seconds in components.items() if name.startswith(_RECOVER))
