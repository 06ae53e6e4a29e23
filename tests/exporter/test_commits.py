"""Group commit: everybody gets their own result, and one bad item fails alone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ett_exporter.commits import MOST_AT_ONCE, GroupCommit


def test_those_who_come_during_a_write_are_written_together():
    batches: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def write(items):
        batches.append(len(items))
        begun.set()
        assert go_on.wait(60)
        return items

    group = GroupCommit(write)
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(group.submit, 0)
        assert begun.wait(60)
        others = [pool.submit(group.submit, n) for n in range(1, 9)]
        while len(group._waiting) < 8:
            pass
        go_on.set()
        assert [each.result() for each in (first, *others)] == list(range(9))
    assert batches == [1, 8]


def test_one_bad_item_fails_alone():
    def write(items):
        if 3 in items:
            raise ValueError("three")
        return items

    group = GroupCommit(write)
    group._waiting = []

    def submit(n):
        try:
            return group.submit(n)
        except ValueError as error:
            return str(error)

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(submit, range(6))) == [0, 1, 2, "three", 4, 5]
    with pytest.raises(ValueError, match="three"):
        group.submit(3)


def test_where_the_whole_database_is_away_nobody_is_tried_alone():
    """Each try takes a time-out: two hundred of them, one after the other, would take half an hour."""
    tries = []

    def write(items):
        tries.append(len(items))
        raise TimeoutError("away") if 3 in items else ValueError("odd")

    group = GroupCommit(write, lambda error: isinstance(error, ValueError))
    assert {str(error) for _, error in group.submit_all([1, 2, 3])} == {"away"}
    assert tries == [3]
    assert {str(error) for _, error in group.submit_all([1, 2])} == {"odd"}
    assert tries == [3, 2, 1, 1]


def test_those_who_come_while_the_database_is_away_fail_with_it():
    """They do not wait for a time-out of their own."""
    tries, begun, go_on = [], threading.Event(), threading.Event()

    def write(items):
        tries.append(items)
        begun.set()
        assert go_on.wait(60)
        raise TimeoutError("away")

    group = GroupCommit(write, lambda error: isinstance(error, ValueError))
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(group.submit, 0)
        assert begun.wait(60)
        others = [pool.submit(group.submit, n) for n in range(1, 9)]
        while len(group._waiting) < 8:
            pass
        go_on.set()
        assert [str(each.exception()) for each in (first, *others)] == ["away"] * 9
    assert tries == [[0]]


def test_a_batch_is_bounded():
    sizes = []

    def write(items):
        sizes.append(len(items))
        return items

    group = GroupCommit(write)
    with ThreadPoolExecutor(32) as pool:
        assert sorted(pool.map(group.submit, range(2000))) == list(range(2000))
    assert max(sizes) <= MOST_AT_ONCE
