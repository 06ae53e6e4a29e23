"""Events that are held in order, many of them of one moment."""

from __future__ import annotations

import random

import pytest

from ett_core.accounting.held import HeldEvents, packed
from ett_core.events import Heartbeat


class Counting(HeldEvents):
    """Counts how often it compares keys."""

    looks = 0

    def _key(self, at_hand):
        self.looks += 1
        return super()._key(at_hand)


def put(held, key):
    at_ns, rank, writer, seq = key
    event = Heartbeat(job_id="j", writer=writer, seq=seq, attempt=0, rank=rank, time=at_ns / 1e9)
    return held.put(at_ns, packed(event), rank, writer, seq)


@pytest.mark.parametrize("seed", range(20))
def test_keys_are_in_order_whatever_came_when_and_lies_in_chunks(seed):
    """Places are those of the sorted keys; what is put away comes back where something belongs among it."""
    source = random.Random(seed)
    keys = [
        (source.randrange(6) * 10**9, source.randrange(2), source.choice("ab"), seq) for seq in range(200)
    ]
    held, known = HeldEvents("j", 0), []
    for key in keys:
        known = sorted([*known, key])
        assert put(held, key) == known.index(key)
        if source.random() < 0.1:
            held.put_away_before([source.randrange(len(known))])
    for key in source.sample(keys, 20):
        assert held.place_of(key) == known.index(key)
    assert held.place_of((3 * 10**9, -1, "", -1)) == sum(key[0] < 3 * 10**9 for key in known)
    assert held.keys() == known


def test_many_events_of_one_moment_are_compared_with_few():
    """A clock that tells whole seconds, or a sender of one time only, costs no look at all of the others."""
    held = Counting("j", 0)
    for seq in range(2000):
        put(held, (10**9, 0, "w", seq))
    assert held.looks < 2000 * 20
