"""Lines of many jobs in one body: together on disk, each job by itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from ett_core.events import Clock, Heartbeat, encode
from ett_exporter.jobs import BusyError
from ett_exporter.settings import Limits

NOW = 1_764_000_200.0


def body(jobs, seqs=(0,)):
    lines = (
        Heartbeat(job_id=job, writer=f"w-{job}", seq=seq, attempt=0, rank=0, time=NOW - 9)
        for job in jobs
        for seq in seqs
    )
    return b"".join(encode(line) + b"\n" for line in lines)


def names(count):
    return [f"job-{number}" for number in range(count)]


@contextmanager
def transactions(service):
    """How often something is made durable."""
    counted, writing = [], service.store.transactions.writing

    def count():
        counted.append(1)
        return writing()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.store.transactions, "writing", count)
        yield counted


def test_a_thousand_jobs_are_made_durable_in_some_transactions(service):
    """With their clocks, which are off; and all of it is there after the next start."""
    opened = service()
    with transactions(opened) as counted:
        answer = opened.ingest_events(body(names(1000), (0, 1)), clock_offset_s=60.0)
    assert (answer.accepted, answer.duplicates) == (2000, 0)
    assert len(counted) <= 12
    assert opened.ingest_events(body(names(1000), (0, 1, 2)), clock_offset_s=60.0).accepted == 1000
    again = service()
    assert again.job_count == 1000
    for name in names(1000)[::250]:
        events = [event for batch in again.store.events(name) for event in batch]
        assert sum(type(event) is Heartbeat for event in events) == 3
        assert [event.offset_s for event in events if type(event) is Clock] == [60.0]


def test_jobs_before_the_one_that_is_too_many_are_taken_in(service):
    """The answer is that there is no room; those that have some count, and count once when sent again."""
    opened = service(limits=Limits(jobs=5))
    for _ in range(2):
        with pytest.raises(BusyError, match="holds 5 jobs"):
            opened.ingest_events(body(names(8)))
        assert opened.stats.events == 5
    assert opened.job_count == 5


def test_senders_of_the_same_jobs_in_other_orders_do_not_wait_for_each_other(service):
    """Each line counts once, however the bodies of several threads lie across each other."""
    opened = service()
    orders = [names(60), names(60)[::-1], names(60)[20:] + names(60)[:20], names(60)[::7]]

    def send(turn):
        seqs = range(turn // 4, turn // 4 + 2)
        return opened.ingest_events(body(orders[turn % 4], seqs), clock_offset_s=float(turn)).accepted

    with ThreadPoolExecutor(8) as pool:
        accepted = sum(pool.map(send, range(24)))
    assert accepted == 60 * 7
    for name in names(60):
        assert opened.view(name, NOW) is not None
        events = [event for batch in opened.store.events(name) for event in batch]
        assert sorted(e.seq for e in events if type(e) is Heartbeat) == list(range(7))
