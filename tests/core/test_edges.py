"""A window that moves along: what is held of where it begins gives what the whole attempt gives."""

from __future__ import annotations

import random

import pytest
from plausible import plausible

from ett_core.accounting import JobFold, edge


@pytest.mark.parametrize("held_s", [1, 40, 10_000])
def test_a_trailing_window_moves_through_a_job(held_s, monkeypatch):
    """Forwards in small steps, and back again; a fold that keeps edges answers as one that asks once."""
    monkeypatch.setattr(edge, "HELD_NS", held_s * 10**9)
    edges = 0
    for seed in range(25):
        source = random.Random(seed)
        events, now = plausible(source)
        fold, fresh = JobFold("job"), JobFold("job")
        fold.add(events)
        fresh.add(events)
        account = fold.account(now)
        begin, end = account.start, account.end
        whole = fold.window(begin, end, now)
        for place in [*range(40), *range(39, 0, -5)]:
            at = begin + (place + source.random()) * (end - begin) / 40
            fresh._lanes.earlier = fresh._known_chain = None
            late, early = fold.window(at, end, now), fold.window(begin, at, now)
            assert late == fresh.window(at, end, now)
            names = {*late, *early}
            together = {name: late.get(name, 0.0) + early.get(name, 0.0) for name in names}
            assert together == pytest.approx(whole, abs=1e-6)
        edges += len(fold._lanes.earlier._edges)
    assert edges > 10
