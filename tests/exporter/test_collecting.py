"""Cycles are freed: new ones at each look, and those that were put aside before by a look at everything."""

from __future__ import annotations

import gc
import weakref

import pytest

from ett_exporter.collecting import WHOLE_EVERY_S, Collector


class Knot:
    """An object that holds itself."""

    def __init__(self):
        self.me = self


@pytest.fixture
def collector():
    """A collector and the time it goes by; Python's own looks at nothing meanwhile."""
    now = [0.0]
    made = Collector(lambda: now[0])
    gc.disable()
    yield made, now
    gc.enable()
    gc.unfreeze()


def test_a_new_cycle_is_freed_at_the_next_look(collector):
    made, _ = collector
    knot = weakref.ref(Knot())
    made.look()
    assert knot() is None


def test_a_cycle_that_was_put_aside_in_use_is_freed_by_a_look_at_everything(collector):
    """Small looks do not see it; the large one comes after its time."""
    made, now = collector
    knot = Knot()
    gone = weakref.ref(knot)
    made.look()
    assert gc.get_freeze_count() > 0
    del knot
    made.look()
    assert gone() is not None
    now[0] = WHOLE_EVERY_S
    made.look()
    assert gone() is None


def test_what_is_no_cycle_is_freed_at_once(collector):
    """Being put aside keeps nothing alive."""
    made, _ = collector
    plain = type("Plain", (), {})()
    gone = weakref.ref(plain)
    made.look()
    del plain
    assert gone() is None
