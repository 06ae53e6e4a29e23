"""What a fold puts away and closes to save memory changes none of its answers."""

from __future__ import annotations

import gc
import os
import random
from contextlib import contextmanager
from itertools import pairwise

import pytest
from event_soup import EPOCH, soups
from hypothesis import given, settings
from hypothesis import strategies as st
from plausible import plausible

from ett_core import events as ev
from ett_core.accounting import JobFold, Settings, blocks, columns, job_lanes, lane_fold, loop
from ett_core.accounting.columns import Columns

EXAMPLES = int(os.environ.get("ETT_TEST_EXAMPLES", "60"))
SEEDS = 1500 if os.environ.get("ETT_FULL") == "1" else 150
LATER = (0, 30, 1000, 30_000)
SHORT = Settings(late_window_s=4.0)


class Dropping:
    """An archive that counts what it holds."""

    def __init__(self):
        self.held = {}
        self.puts = 0

    def put(self, data):
        self.puts += 1
        self.held[self.puts] = data
        return self.puts

    def get(self, handle, begin=0, end=None):
        return self.held[handle][begin:end]

    def drop(self, handle):
        del self.held[handle]


@contextmanager
def constants(block, mark_every, trim_at, rest_every):
    """Folds close blocks of so many reports, and look so often for what they can put away."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (columns, loop):
            patch.setattr(module, "BLOCK", block)
        patch.setattr(blocks, "MERGED", 2)
        patch.setattr(blocks, "YOUNG", 2)
        patch.setattr(lane_fold, "MARK_EVERY", mark_every)
        patch.setattr(lane_fold, "TRIM_AT", trim_at)
        patch.setattr(job_lanes, "REST_EVERY", rest_every)
        yield


def answers(fold, end):
    found = []
    for now in (end + later for later in LATER):
        cuts = [end - 400, end - 120.25, end - 33.3, now]
        windows = [fold.window(a, b, now) for a, b in pairwise(cuts)]
        found.append((fold.account(now), fold.timeline(now), windows))
    return found


def check(events, end, source):
    """A fold that puts away, and is asked in between, answers as one that keeps everything at hand."""
    archive = Dropping()
    with constants(3, 2, 6, 8):
        got = told_in_parts(events, end, source, archive)
    with constants(512, 64, 10**9, 10**9):
        whole = JobFold("job", settings=SHORT)
        whole.add(events)
        assert answers(whole, end) == got
    return archive


def told_in_parts(events, end, source, archive):
    told = []
    fold = JobFold("job", settings=SHORT, history=lambda: told, archive=archive)
    while len(told) < len(events):
        part = events[len(told) : len(told) + source.randint(1, 6)]
        told += part
        fold.add(part)
        if source.random() < 0.3:
            fold.window(end - 300, end - source.randint(0, 200), end)
    return answers(fold, end)


def renamed(event):
    return ev.decode(ev.encode(event).replace(b'"soup"', b'"job"'))


@pytest.mark.parametrize("late", [0, 3, 30])
def test_plausible_histories(late):
    """Whatever a job may write, in order, a little late or very late."""
    puts = 0
    for seed in range(SEEDS):
        source = random.Random(seed)
        events, now = plausible(source)
        events.sort(key=lambda event, source=source: event.time + source.uniform(0, late))
        puts += check(events, now, source).puts
    assert puts > SEEDS


@given(soups, st.randoms(use_true_random=False))
@settings(max_examples=EXAMPLES, deadline=None)
def test_soups(events, source):
    """The same for any events at all."""
    check([renamed(event) for event in events], EPOCH + 900, source)


rows = st.lists(
    st.tuples(
        st.integers(0, 10**12),
        st.integers(0, 10**11),
        st.integers(0, 10**10),
        st.integers(0, 10**10),
        st.integers(0, 10**6),
        st.integers(0, 100),
    ),
    min_size=1,
    max_size=40,
)


@given(rows, st.integers(0, 2 * 10**18), st.sampled_from([0, 64]))
def test_packed_columns_come_back(rows, begin, block):
    """Columns that are packed and unpacked hold the same rows, squeezed or not."""
    held, at = Columns(), begin
    for length, *rest in rows:
        at += length
        held.append(at, *rest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "BLOCK", block)
        again = Columns.unpacked(held.packed(begin), begin)
    assert all(getattr(again, name) == getattr(held, name) for name in columns.COLUMNS)
    assert again.in_order == held.in_order


def test_an_archive_holds_nothing_for_folds_that_are_gone():
    """What a fold put into an archive goes with it."""
    source = random.Random(7)
    archives = [check(*plausible(source), source) for _ in range(20)]
    gc.collect()
    assert sum(archive.puts for archive in archives) > 0
    assert [archive.held for archive in archives] == [{}] * 20
