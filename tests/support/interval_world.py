"""A job that trains, saves and fails at moments drawn beforehand: what its intervals cost it, exactly."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Lived(NamedTuple):
    """What a life cost: failures, seconds of training lost to them, seconds blocked by saves."""

    failures: int
    unsaved_s: float
    blocked_s: float

    @property
    def wasted_s(self) -> float:
        """All of it."""
        return self.unsaved_s + self.blocked_s


def moments(seed: int, failures: int, between_s: float) -> Sequence[float]:
    """Moments of failures of a Poisson process, in seconds of the job's time."""
    chance, now, drawn = random.Random(seed), 0.0, []
    for _ in range(failures):
        now += chance.expovariate(1.0 / between_s)
        drawn.append(now)
    return drawn


def lived(
    moments: Sequence[float], *, blocking_s: float, upload_s: float, interval: Callable[[int, float], float]
) -> Lived:
    """A life of a job up to its last failure; recovery takes no time of it.

    `interval(failures, now_s)` is asked for the seconds of training before each save. A save holds what
    was trained before it began, blocks, and is durable `upload_s` seconds after it has ceased to block.
    """
    now = unsaved_s = blocked_s = 0.0
    for failed, moment in enumerate(moments):
        safe_s = trained_s = 0.0
        durable: list[tuple[float, float]] = []
        while True:
            step_s = interval(failed, now)
            if now + step_s >= moment:
                trained_s += moment - now
                break
            now, trained_s = now + step_s, trained_s + step_s
            begun_s = min(blocking_s, moment - now)
            blocked_s, now = blocked_s + begun_s, now + begun_s
            if now >= moment:
                break
            durable.append((now + upload_s, trained_s))
        safe_s = max((held for at, held in durable if at <= moment), default=0.0)
        unsaved_s += trained_s - safe_s
        now = moment
    return Lived(len(moments), unsaved_s, blocked_s)
