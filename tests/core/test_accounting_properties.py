"""What must hold of the accounting for any soup of events."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest
from event_soup import EPOCH, soups
from hypothesis import given, settings
from hypothesis import strategies as st

from ett_core.accounting import JobFold, Settings, lane_fold

EXAMPLES = int(os.environ.get("ETT_TEST_EXAMPLES", "60"))
NOWS = st.sampled_from([EPOCH, EPOCH + 30, EPOCH + 1000, EPOCH + 30_000])


NEAR = 1e-5
"""Seconds: a lifetime of them, as hostile clocks tell, is summed to half a microsecond."""


def fold_of(events, **more):
    fold = JobFold("soup", **more)
    fold.add(events)
    return fold


@given(soups, NOWS)
@settings(max_examples=EXAMPLES, deadline=None)
def test_components_partition_the_wall_time(events, now):
    """Components add up to the wall time, and none is negative."""
    account = fold_of(events).account(now)
    if account is None:
        return
    assert sum(account.components.values()) == pytest.approx(account.wall_s, abs=NEAR)
    assert min(account.components.values(), default=0.0) >= 0
    assert account.wall_s >= 0


@given(soups, NOWS)
@settings(max_examples=EXAMPLES, deadline=None)
def test_timeline_covers_the_wall_time_once(events, now):
    """Stretches follow each other without gap or overlap and hold the same totals."""
    fold = fold_of(events)
    account = fold.account(now)
    if account is None:
        return
    stretches = fold.timeline(now)
    assert all(s.end_ns > s.start_ns for s in stretches)
    assert all(sum(amount for _, amount in s.shares) == s.end_ns - s.start_ns for s in stretches)
    assert all(a.end_ns == b.start_ns for a, b in pairwise(stretches))
    totals = {}
    for stretch in stretches:
        for component, amount in stretch.shares:
            totals[component] = totals.get(component, 0) + amount / 1e9
    assert {k: v for k, v in totals.items() if v} == pytest.approx(dict(account.components), abs=NEAR)


@given(soups, NOWS, st.lists(st.floats(-50, 1100), min_size=1, max_size=4))
@settings(max_examples=EXAMPLES, deadline=None)
def test_adjoining_windows_add_up(events, now, cuts):
    """Windows that meet hold together what the window over all of them holds."""
    fold = fold_of(events)
    edges = sorted([EPOCH - 60, *(EPOCH + cut for cut in cuts), EPOCH + 40_000])
    whole = fold.window(edges[0], edges[-1], now)
    parts = {}
    for begin, end in pairwise(edges):
        for component, amount in fold.window(begin, end, now).items():
            parts[component] = parts.get(component, 0.0) + amount
    assert {k: v for k, v in parts.items() if abs(v) > 1e-7} == pytest.approx(
        {k: v for k, v in whole.items() if abs(v) > 1e-7}, abs=NEAR
    )


def in_pieces(events, now, source, fold, given):
    """The fold, given the events shuffled, in small batches, and asked after each."""
    left = [*events, *source.sample(events, len(events) // 2)]
    source.shuffle(left)
    while left:
        size = source.randint(1, 5)
        given.extend(left[:size])
        fold.add(left[:size])
        fold.account(now)
        del left[:size]
    return fold


@given(soups, NOWS, st.randoms(use_true_random=False))
@settings(max_examples=EXAMPLES, deadline=None)
def test_order_repeats_and_batching_change_nothing(events, now, source):
    """Shuffled, repeated and asked for on the way, the account is the same to the bit."""
    assert in_pieces(events, now, source, JobFold("soup"), []).account(now) == fold_of(events).account(now)


@given(soups, NOWS, st.randoms(use_true_random=False))
@settings(max_examples=EXAMPLES, deadline=None)
def test_streaming_equals_recomputation(events, now, source):
    """With hardly any memory of its own, and a history to ask, the fold still says the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lane_fold, "TRIM_AT", 3)
        patch.setattr(lane_fold, "MARK_EVERY", 2)
        brief = Settings(late_window_s=5.0)
        given = []
        fold = JobFold("soup", settings=brief, history=lambda: given)
        in_pieces(events, now, source, fold, given)
        assert fold.account(now) == fold_of(events).account(now)
