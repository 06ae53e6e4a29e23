"""What was made of the data lies ready for the next start on the host, unless that start was cancelled."""

from __future__ import annotations

import tempfile
import threading

import numpy as np
import pytest

from ett_trainer_hooks.reference.settings import Settings
from ett_trainer_hooks.reference.source import Source

FAR_S = 3600.0
"""Seconds until a source gives batches that no test waits for."""


@pytest.fixture
def first_batch(bench, tmp_path, monkeypatch):
    """The first batch of a source on a host with a temporary directory of its own; and what it tells."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    told = bench()

    def ask(*, keeps, is_cancelled=False, **settings):
        cancelled = threading.Event()
        if is_cancelled:
            cancelled.set()
        source = Source(Settings(rows=50, batch_size=4, **settings), told.recorder, keeps=keeps)
        return source.samples(1, cancelled)(0)

    ask.told = lambda: [event.why for event in told.of("decision")]
    return ask


def are_equal(one, two):
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ("dense", "ids", "clicked"))


def test_the_next_start_on_a_host_need_not_wait_for_its_data(first_batch):
    """And its batches are those of a trainer that keeps nothing."""
    made = first_batch(keeps=True)
    found = first_batch(keeps=True, data_warmup_s=FAR_S)
    assert are_equal(found, made)
    assert are_equal(found, first_batch(keeps=False))
    assert first_batch.told() == ["signal: made: there was nothing yet", "signal: used again"]


def test_another_data_set_is_made_anew(first_batch):
    first_batch(keeps=True)
    assert are_equal(first_batch(keeps=True, seed=7), first_batch(keeps=False, seed=7))
    assert first_batch.told()[1] == "signal: made: since the last time, seed was 2026, is 7"


def test_a_start_that_is_cancelled_neither_waits_nor_keeps(first_batch, tmp_path):
    """The next one would take for warm what never was."""
    first_batch(keeps=True, is_cancelled=True, data_warmup_s=FAR_S)
    assert list(tmp_path.rglob("signal.npz")) == []


def test_nothing_is_kept_where_others_can_write(first_batch, tmp_path):
    """Whatever lies there may be somebody else's."""
    first_batch(keeps=True)
    (place,) = tmp_path.glob("ett-kept-*")
    place.chmod(0o777)
    assert are_equal(first_batch(keeps=True), first_batch(keeps=False))
    assert first_batch.told()[1].startswith("signal: not kept, as this is no place for it: others may write")
