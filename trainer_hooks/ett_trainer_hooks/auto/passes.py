"""What the batches of data loaders tell: waits, where the first training batch was, evaluations.

A *pass* is one journey of one iterator over its loader. A pass in the loop that brought neither an
optimizer step nor a gradient is an evaluation; that is known when it is over, and said then. Used
by the thread that trains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ett_trainer_hooks.auto.recorder import AutomaticRecorder
from ett_trainer_hooks.recording.facts import BATCHES_SEEN

KEY = "_ett_pass"
TWO = 2
SIGN_EVERY_S = 60.0
"""A pass without steps, which may be a long evaluation, gives a sign of its progress this often."""


def nothing() -> None:
    """Do nothing."""


class Pass:
    """One journey over a loader; seconds are monotonic."""

    __slots__ = ("asked_s", "away_s", "batches", "first_s", "gradients", "last_s", "over", "step", "wait_s")

    def __init__(self, asked_s: float, step: int, away_s: float, gradients: object) -> None:
        self.asked_s = asked_s
        self.step = step
        self.away_s = away_s
        self.gradients = gradients
        self.first_s = asked_s
        self.last_s = asked_s
        self.wait_s = 0.0
        self.batches = 0
        self.over = False


class Passes:
    """Follows the passes of this thread; `gradients` gives a mark that changes with any backward."""

    def __init__(
        self,
        recorder: AutomaticRecorder,
        gradients: Callable[[], object],
        before: Callable[[], None] = nothing,
    ) -> None:
        self.before = before
        """Called whenever the program asks for a batch, before it gets one."""
        self.wait_s = 0.0
        """Seconds waited for batches since the last step."""
        self.batches = 0
        """Batches so far, of all passes."""
        self._recorder = recorder
        self._gradients = gradients
        self._current: Pass | None = None
        self._sign_due_s = 0.0

    @property
    def current(self) -> Pass | None:
        """The pass that brought the latest batch, None where it is over."""
        return self._current

    def started(self, iterator: Any, asked_s: float, now_s: float) -> None:  # noqa: ANN401 - torch's
        """A loader made an iterator, which took from `asked_s` to `now_s`."""
        fresh = self._fresh(iterator, asked_s)
        self._waited(fresh, now_s - asked_s)

    def delivered(self, iterator: Any, asked_s: float, now_s: float) -> None:  # noqa: ANN401 - torch's
        """A batch that was asked for at `asked_s` came at `now_s`."""
        now = iterator.__dict__.get(KEY) or self._fresh(iterator, asked_s)
        if now is not self._current:
            self._turn_to(now, asked_s)
        waited_s = now_s - asked_s
        now.wait_s += waited_s
        self.wait_s += waited_s
        self.batches += 1
        now.batches += 1
        now.last_s = now_s
        if now_s >= self._sign_due_s:
            self._give_sign(now, now_s)
        if now.batches == 1:
            now.first_s = now_s
            if not self._recorder.begun:
                self.wait_s = 0.0

    def exhausted(self, iterator: Any, asked_s: float, now_s: float) -> None:  # noqa: ANN401 - torch's
        """The pass is over: asked at `asked_s` for one more batch, it had none."""
        ended = iterator.__dict__.pop(KEY, None)
        if ended is None:
            return
        self._waited(ended, now_s - asked_s)
        if self._current is ended:
            self._current = None
        if ended.batches:
            self._end(ended, now_s)

    def finish(self) -> None:
        """Nothing follows: a pass that nobody exhausted ended with its last batch, as far as is known."""
        if self._current is not None and self._current.batches >= TWO:
            self._end(self._current, self._current.last_s)

    def _fresh(self, iterator: Any, asked_s: float) -> Pass:  # noqa: ANN401 - torch's
        recorder = self._recorder
        fresh = Pass(asked_s, recorder.step, recorder.away_s, self._gradients())
        iterator.__dict__[KEY] = fresh
        return fresh

    def _give_sign(self, now: Pass, now_s: float) -> None:
        """Say how many batches came so far, where no report of steps does; whoever watches sees progress."""
        self._sign_due_s = now_s + SIGN_EVERY_S
        if self._recorder.begun and self._recorder.step == now.step and now.batches >= TWO:
            self._recorder.counters({BATCHES_SEEN: float(self.batches)})

    def _waited(self, which: Pass, seconds: float) -> None:
        which.wait_s += seconds
        self.wait_s += seconds

    def _turn_to(self, now: Pass, asked_s: float) -> None:
        before, self._current = self._current, now
        if before is not None and before.batches >= TWO:
            self._end(before, asked_s)

    def _end(self, ended: Pass, now_s: float) -> None:
        """Say that a pass was an evaluation, if it was."""
        recorder = self._recorder
        trained = recorder.step != ended.step or self._gradients() != ended.gradients
        if ended.over or trained or not recorder.begun:
            return
        ended.over = True
        inside_s = recorder.away_s - ended.away_s
        recorder.past_phase("evaluation", ended.asked_s, now_s, inside_s=inside_s)
        self.wait_s = max(self.wait_s - ended.wait_s, 0.0)
