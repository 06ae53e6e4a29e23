"""Threads that go on whatever happens, until they are told to end."""

from __future__ import annotations

import logging
import threading

from ett_exporter.errors import StoreError
from ett_exporter.repeated import Repeated


def run_until_done(outcomes):
    """Calls that end in these ways, one after the other; an exception is raised, anything else returned."""
    left, done = iter(outcomes), threading.Event()

    def work():
        outcome = next(left, None)
        if outcome is None:
            done.set()
            return False
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    repeated = Repeated("worker", work, 0.001)
    repeated.start()
    assert done.wait(60)
    repeated.stop()
    assert not repeated.goes_on()


def test_a_store_that_is_away_is_told_once_and_its_return_as_well(caplog):
    """However often work fails because of the store, the log says so once, and once that it works."""
    with caplog.at_level(logging.WARNING):
        run_until_done([StoreError("gone"), StoreError("gone"), StoreError("still gone"), True, False])
    assert [record.getMessage() for record in caplog.records] == ["worker waits: gone", "worker works again"]


def test_work_that_raises_is_tried_again(caplog):
    """An error of our own is logged with its place and ends no thread."""
    run_until_done([ValueError("ours"), True])
    assert "worker failed" in caplog.text
    assert "ValueError: ours" in caplog.text


def test_work_goes_on_as_long_as_its_context_and_no_longer():
    """A call that returns nothing is made again later; after the end none is made."""
    calls = threading.Semaphore(0)
    with Repeated("worker", calls.release, 0.001) as repeated:
        assert calls.acquire(timeout=60)
        assert calls.acquire(timeout=60)
    assert not repeated._thread.is_alive()
