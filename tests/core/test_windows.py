"""Windows that adjoin, asked for at once, are what each is by itself."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from plausible import plausible

from ett_core.accounting import JobFold


@pytest.mark.parametrize("seed", range(40))
def test_windows_that_adjoin_are_those_that_are_asked_for_one_by_one(seed):
    """Wherever they are cut, before, within and after the attempts of a job."""
    source = random.Random(seed)
    events, now = plausible(source)
    fold, fresh = JobFold("job"), JobFold("job")
    fold.add(events)
    fresh.add(events)
    account = fold.account(now)
    reach = account.end - account.start + 60
    edges = sorted(account.start - 30 + source.random() * reach for _ in range(12))
    edges.insert(4, edges[4])
    assert fold.windows(edges, now) == [fresh.window(low, high, now) for low, high in pairwise(edges)]
