"""The prefetcher: order, faults and the end."""

import threading

import pytest

from ett_trainer_hooks.reference.prefetch import Prefetcher


def test_batches_come_in_the_order_of_their_steps():
    """What is made ahead is taken in order, from the step that was resumed."""
    with Prefetcher(lambda step: step, first=40, end=90, depth=3) as batches:
        assert list(batches) == list(range(40, 90))


def test_what_making_a_batch_raises_is_raised_in_the_loop():
    """A fault in the thread is no silent end of the data."""

    def make(step):
        if step == 2:
            raise OSError("the file is gone")
        return step

    with Prefetcher(make, first=0, end=5) as batches:
        taken = iter(batches)
        assert [next(taken), next(taken)] == [0, 1]
        with pytest.raises(OSError, match="the file is gone"):
            next(taken)


def test_leaving_early_stops_the_thread():
    """A loop that ends before its data leaves no thread behind."""
    with Prefetcher(lambda step: step, first=0, end=10**9, depth=2) as batches:
        batches.warm_up()
    assert "prefetch" not in [thread.name for thread in threading.enumerate()]


def test_warm_up_takes_nothing():
    """The first batch is still there after the warm-up."""
    with Prefetcher(lambda step: step, first=3, end=5) as batches:
        batches.warm_up()
        assert list(batches) == [3, 4]
