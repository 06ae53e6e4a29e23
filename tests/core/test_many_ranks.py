"""Thousands of ranks that speak at one moment cost each the same as some do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core.accounting import JobFold
from ett_core.accounting.attempt import Attempt
from ett_core.accounting.presence import Presence
from ett_core.accounting.ranks import Ranks
from ett_core.events import Heartbeat


def heartbeat(rank: int, writer: str = "", at: float = 100.0) -> Heartbeat:
    return Heartbeat(job_id="j", writer=writer or f"w{rank}", seq=0, attempt=0, rank=rank, time=at)


@pytest.mark.parametrize("ranks", [500, 2000])
def test_marks_copy_each_rank_some_times_however_many_there_are(ranks, monkeypatch):
    """What is copied into the marks of a fold grows with the ranks, not with their square."""
    copied = []
    mark = Ranks.mark

    def counted(self):
        made = mark(self)
        copied.append(len(made.at_hand))
        return made

    monkeypatch.setattr(Ranks, "mark", counted)
    fold = JobFold("j")
    for rank in range(ranks):
        fold.add([heartbeat(rank)])
    account = fold.account(200.0)
    assert account is not None
    assert copied
    assert sum(copied) < 4 * ranks


def test_attempts_that_lie_packed_are_not_unpacked_by_looking_at_them(monkeypatch):
    """Each of very many attempts is unpacked once at most while others come and all are looked at."""
    unpacked = []
    take_rest = Attempt._take_rest

    def counted(self, *rest):
        unpacked.append(self)
        take_rest(self, *rest)

    monkeypatch.setattr(Attempt, "_take_rest", counted)
    fold = JobFold("j")
    for attempt in range(1200):
        fold.add(
            [Heartbeat(job_id="j", writer="w", seq=attempt, attempt=attempt, rank=0, time=1e6 + attempt)]
        )
    for later in range(3):
        assert fold.account(1e6 + 1300.0 + later) is not None
    assert 0 < len(unpacked) < 1200


@given(st.lists(st.tuples(st.integers(-1, 3), st.sampled_from("abcd")), max_size=12), st.integers(0, 12))
def test_an_attempt_is_divided_where_its_lowest_rank_has_several_writers(spoken, packed_after):
    """Whatever order they speak in, and whether it was packed in between."""
    presence = Presence()
    for place, (rank, writer) in enumerate(spoken):
        if place == packed_after:
            presence.pack()
        presence.note(place, heartbeat(rank, writer))
        known = {pair for pair in spoken[: place + 1] if pair[0] >= 0}
        lowest = min((rank for rank, _ in known), default=0)
        assert presence.divided == (len({writer for rank, writer in known if rank == lowest}) > 1)
