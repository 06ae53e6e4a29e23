"""The watch: what counts as a step, where training resumed."""

from __future__ import annotations

import pytest

from ett_trainer_hooks.auto.passes import Passes
from ett_trainer_hooks.auto.recorder import AutomaticRecorder
from ett_trainer_hooks.auto.watch import Watch, steps_before
from ett_trainer_hooks.recording.facts import BATCHES_SEEN


class Optimizer:
    """What the watch reads of an optimizer."""

    def __init__(self, count=None):
        self.param_groups = [{"params": ["weight"]}]
        self.state = {} if count is None else {"weight": {"step": count}}


@pytest.mark.parametrize(("order", "steps"), [("aaa", 3), ("abab", 2), ("aab", 2), ("abcabca", 3)])
def test_several_optimizers_of_a_batch_are_one_step(order, steps):
    """The one that repeats begins the next step."""
    watch = Watch(AutomaticRecorder(), {})
    optimizers = {letter: Optimizer() for letter in order}
    for letter in order:
        watch.stepped(optimizers[letter])
    assert watch.recorder.step == steps


@pytest.mark.parametrize(("count", "before"), [(None, None), (1, None), (101.0, 100)])
def test_the_optimizers_own_count_tells_where_training_resumed(count, before):
    """No count, or a fresh one, tells nothing."""
    assert steps_before(Optimizer(count)) == before


class Loader:
    """An iterator of a loader, to which a pass is tied."""


def test_a_long_pass_without_steps_shows_that_it_goes_on(monkeypatch):
    """Once a minute, with the batches so far; a pass that brings steps needs no such sign."""
    recorder = AutomaticRecorder()
    told = []
    monkeypatch.setattr(recorder, "counters", told.append)
    passes = Passes(recorder, gradients=lambda: None)
    recorder.loop_began(0.0, None, None)
    training, evaluation = Loader(), Loader()
    for second in range(0, 200, 10):
        passes.delivered(training, second, second)
        recorder.step_seen(0.0)
    assert told == []
    for second in range(200, 400, 10):
        passes.delivered(evaluation, second, second)
    assert told == [{BATCHES_SEEN: batches} for batches in (25.0, 31.0, 37.0)]
