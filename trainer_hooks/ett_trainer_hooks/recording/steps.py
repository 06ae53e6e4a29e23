"""Adds up steps between two reports: pure arithmetic on readings of the monotonic clock.

Used by the training thread only. A step runs from the moment its batch is there to the moment
the next is asked for; phases inside it (a checkpoint, an evaluation) are taken off.
"""

from __future__ import annotations

import msgspec

from ett_core.step_times import LAST_BUCKET, bucket_of


class Tally(msgspec.Struct, frozen=True):
    """What happened since the previous report.

    `buckets` are steps by the bucket of their duration (`ett_core.step_times`), `done_s` are monotonic
    seconds of the last step's end.
    """

    step: int
    steps: int
    samples: float
    data_wait_s: float
    sum_s: float
    max_s: float
    buckets: dict[int, int]
    done_s: float


class StepMeter:
    """Counts steps and their seconds.

    >>> meter = StepMeter()
    >>> meter.begin(10.0, samples=32); meter.complete(10.5)
    True
    >>> meter.wait(0.25); meter.begin(10.75, samples=32); meter.complete(12.0)
    True
    >>> tally = meter.take(12.0)
    >>> tally.step, tally.samples, tally.data_wait_s, tally.sum_s, tally.max_s, tally.buckets, tally.done_s
    (2, 64.0, 0.25, 1.75, 1.25, {153: 1, 163: 1}, 12.0)
    """

    __slots__ = (
        "_away_before_s",
        "_began_s",
        "_counts",
        "_done_s",
        "_max_s",
        "_sum_s",
        "_wait_s",
        "away_s",
        "in_hand",
        "samples",
        "step",
        "steps",
    )

    def __init__(self) -> None:
        self.step = 0
        self._began_s: float | None = None
        self.in_hand = 0.0
        self.away_s = 0.0
        """Seconds in phases of their own so far, which are no part of a step."""
        self._away_before_s = 0.0
        self._done_s = 0.0
        self._counts = [0] * (LAST_BUCKET + 1)
        self._clear()

    def _clear(self) -> None:
        self.steps = 0
        self.samples = 0.0
        self._wait_s = 0.0
        self._sum_s = 0.0
        self._max_s = 0.0

    def wait(self, seconds: float) -> None:
        """Time spent waiting for data, which is no part of a step."""
        self._wait_s += seconds

    def begin(self, now_s: float, samples: float = 0.0, waited_s: float = 0.0) -> None:
        """A batch of `samples` samples is there after `waited_s` of waiting; its step begins."""
        self._began_s = now_s
        self._wait_s += waited_s
        self.in_hand = samples
        self._away_before_s = self.away_s

    @property
    def in_step(self) -> bool:
        """A batch is in hand."""
        return self._began_s is not None

    def drop(self) -> None:
        """The step in hand will not be complete."""
        self._began_s = None

    def away(self, seconds: float) -> None:
        """Time within the step that belongs to a phase of its own."""
        self.away_s += seconds

    def phase_over(self, away_s: float, seconds: float) -> None:
        """A phase is over that took so long; `away_s` as it was when it began.

        Phases inside it are part of it. As this counts nothing up, it may be said again, and a phase
        that never comes to its end leaves nothing behind.
        """
        self.away_s = away_s + seconds

    def was_away(self, seconds: float) -> None:
        """Time within the step in hand that belonged to phases, told before the step was known."""
        self._away_before_s -= seconds

    def complete(self, now_s: float, *, wait_s: float = 0.0) -> bool:
        """The step in hand is complete; False where there is none."""
        if self._began_s is None:
            return False
        seconds = now_s - self._began_s - (self.away_s - self._away_before_s) - wait_s
        if seconds < 0.0:  # noqa: PLR1730 - half the time of max()
            seconds = 0.0
        self._began_s = None
        self._done_s = now_s
        self.step += 1
        self.steps += 1
        self.samples += self.in_hand
        self._wait_s += wait_s
        self._sum_s += seconds
        if seconds > self._max_s:  # noqa: PLR1730 - half the time of max()
            self._max_s = seconds
        self._counts[bucket_of(seconds)] += 1
        return True

    def _take_buckets(self) -> dict[int, int]:
        """The buckets that hold steps; all are empty afterwards."""
        counts = self._counts
        if not self.steps:
            return {}
        buckets = {bucket: steps for bucket, steps in enumerate(counts) if steps}
        for bucket in buckets:
            counts[bucket] = 0
        return buckets

    def finish(self, now_s: float, *, samples: float, wait_s: float) -> None:
        """A step is complete and the next one begins at once (a loop that counts by itself)."""
        if self._began_s is None:
            self.begin(now_s)
        self.in_hand = samples
        self.complete(now_s, wait_s=wait_s)
        self.begin(now_s)

    def take(self, now_s: float) -> Tally | None:
        """The tally since the last call, which starts a new one; None where nothing happened."""
        if not self.steps and not self._wait_s:
            return None
        done_s = self._done_s if self.steps else now_s
        tally = Tally(
            step=self.step,
            steps=self.steps,
            samples=self.samples,
            data_wait_s=self._wait_s,
            sum_s=self._sum_s,
            max_s=self._max_s,
            buckets=self._take_buckets(),
            done_s=done_s,
        )
        self._clear()
        return tally
