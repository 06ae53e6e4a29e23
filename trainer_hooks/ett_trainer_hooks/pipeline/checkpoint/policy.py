"""When a trainer should save: the interval is chosen anew after each save, from what it has measured.

The rank that leads asks `is_due` and lets the others know in the all-reduce by which they agree on other
things anyway; ranks that looked at clocks of their own would come to different answers. `durable` and
`learn` may be called from any thread, everything else on the training thread. Needs no torch.

    policy = CheckpointPolicy(recorder, before=supposed(nodes))
    policy.begin()                                # the loop trains from now on
    ...
    if agreed(policy.is_due()):
        with policy.saving(step):
            checkpointer.save(step, ...)          # what blocks
    ...
    policy.durable(step)                          # once the save would survive the death of the job
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from ett_core.interval_choice import (
    Before,
    Bounds,
    Choice,
    Measured,
    Rate,
    Seen,
    choose,
    failure_rate,
    supposed,
)
from ett_core.leaving import Standing
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.pace import Pace

LATEST = 9
"""Saves of which the middle one counts."""


class CheckpointPolicy:
    """The interval between saves of one job, in seconds of training.

    Args:
        recorder: is told of each new interval, and why.
        bounds: between which intervals the choice is free.
        before: what is known of the rate of failures; by default what is supposed of one node.
        leads: whether this rank decides; on the others no save is ever due, and nothing is told.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        leads: bool = True,
        bounds: Bounds | None = None,
        before: Before | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recorder = recorder
        self._leads = leads
        self._bounds = bounds or Bounds()
        self._before = before or supposed(1)
        self._watch = _Watch(clock)
        self._clock = clock
        self._earlier = Seen()
        self._blocked_s: deque[float] = deque(maxlen=LATEST)
        self._uploads_s: deque[float] = deque(maxlen=LATEST)
        self._slowed_s: deque[float] = deque(maxlen=LATEST)
        self._pace = Pace()
        self._in_flight: dict[int, _Save] = {}
        self._lock = threading.Lock()
        self._saved_at_s = self._safe_at_s = 0.0
        self._choice = choose(None, self._rate, self._bounds)

    @property
    def interval_s(self) -> float:
        """Seconds of training between two saves, as of now."""
        return self._choice.interval_s

    @property
    def own(self) -> Seen:
        """Failures of this job and the seconds in which it trained, all its attempts together."""
        return Seen(failures=self._earlier.failures, train_s=self._earlier.train_s + self._watch.seconds)

    def begin(self) -> None:
        """The loop trains from now on."""
        self._watch.go()
        self._tell(self._choice)

    def is_due(self) -> bool:
        """Whether it is time to save, as the rank that leads says; ask after as many steps each time."""
        if not self._leads:
            return False
        trained_s = self._watch.seconds
        with self._lock:
            saving = bool(self._in_flight)
        slowed_s = self._pace.asked(trained_s, saving=saving)
        if slowed_s is not None:
            self._slowed_s.append(slowed_s)
        return trained_s - self._saved_at_s >= self.interval_s

    @contextmanager
    def saving(self, step: int) -> Iterator[None]:
        """The save of a step as far as the trainer waits for it; one that raises is not measured."""
        self._watch.stop()
        self._pace.saving()
        began_s, save = self._clock(), _Save(self._watch.seconds)
        with self._lock:
            self._in_flight[step] = save
        try:
            yield
        except BaseException:
            self.failed(step)
            raise
        else:
            save.ended_s = self._clock()
            self._blocked_s.append(save.ended_s - began_s)
        finally:
            self._saved_at_s = save.holds_s
            self._watch.go()
        self._reconsider()

    def durable(self, step: int) -> None:
        """The save of a step would now survive the death of the job; from any thread."""
        now_s = self._clock()
        with self._lock:
            save = self._in_flight.pop(step, None)
            if save is not None:
                self._safe_at_s = max(self._safe_at_s, save.holds_s)
                self._uploads_s.append(0.0 if save.ended_s is None else now_s - save.ended_s)

    def failed(self, step: int) -> None:
        """The save of a step will never be durable; from any thread."""
        with self._lock:
            self._in_flight.pop(step, None)

    def learn(self, before: Before) -> None:
        """What is known of failures elsewhere; it counts from the next save on. From any thread."""
        self._before = before

    def standing(self) -> Standing:
        """How this job would stand if it had to leave now."""
        with self._lock:
            trained_s = self._watch.seconds
            save = max(self._in_flight.values(), key=lambda each: each.holds_s, default=None)
            known = bool(self._blocked_s and self._uploads_s)
            block_s, upload_s = max(self._blocked_s, default=0.0), max(self._uploads_s, default=0.0)
        left_s = None
        if save is not None and known:
            left_s = upload_s if save.ended_s is None else max(save.ended_s + upload_s - self._clock(), 0.0)
        return Standing(
            unsaved_s=trained_s - self._safe_at_s,
            save_s=block_s + upload_s if known else None,
            in_flight_s=left_s,
            since_capture_s=0.0 if save is None else trained_s - save.holds_s,
        )

    def state_dict(self, *, leaving: bool = False) -> dict[str, float]:
        """What the next attempt should know; with `leaving`, that no failure lies between the two."""
        own, measured = self.own, self._measured or Measured(blocking_s=0.0)
        return {
            "failures": own.failures,
            "train_s": own.train_s,
            "blocking_s": measured.blocking_s,
            "upload_s": measured.upload_s,
            "slowed_s": measured.slowed_s,
            "interval_s": self.interval_s,
            "left": float(leaving),
        }

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Go on from what an earlier attempt saved; it failed since, unless it had said that it would leave.

        The training that it lost is not known: half an interval of it is reckoned with. Attempts that failed
        before they had saved anything leave no trace here.
        """
        failed = not state["left"]
        lost_s = failed * state["interval_s"] / 2.0
        self._earlier = Seen(failures=state["failures"] + failed, train_s=state["train_s"] + lost_s)
        if state["blocking_s"]:
            self._blocked_s.append(state["blocking_s"])
            self._uploads_s.append(state["upload_s"])
            self._slowed_s.append(state.get("slowed_s", 0.0))  # older checkpoints do not know it
        self._choice = choose(self._measured, self._rate, self._bounds)

    @property
    def _rate(self) -> Rate:
        return failure_rate(self.own, self._before)

    @property
    def _measured(self) -> Measured | None:
        with self._lock:
            if not self._blocked_s:
                return None
            return Measured(
                blocking_s=median(self._blocked_s),
                upload_s=median(self._uploads_s or [0.0]),
                slowed_s=median(self._slowed_s or [0.0]),
            )

    def _reconsider(self) -> None:
        self._choice = choose(self._measured, self._rate, self._bounds, self.interval_s)
        if self._choice.changed:
            self._tell(self._choice)

    def _tell(self, choice: Choice) -> None:
        what = f"a checkpoint every {choice.interval_s:,.0f} s of training"
        if self._leads:
            self._recorder.decision(what, choice.why, choice.values)


@dataclass
class _Save:
    """A save on its way: the seconds of training that it holds, and when the trainer went on."""

    holds_s: float
    ended_s: float | None = None


class _Watch:
    """Seconds of training so far; stands still while the trainer saves."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._before_s = 0.0
        self._since_s: float | None = None

    @property
    def seconds(self) -> float:
        """All of them."""
        since_s = self._since_s
        return self._before_s + (0.0 if since_s is None else self._clock() - since_s)

    def go(self) -> None:
        """Training goes on."""
        self._since_s = self._clock()

    def stop(self) -> None:
        """Training stands still."""
        self._before_s, self._since_s = self.seconds, None
